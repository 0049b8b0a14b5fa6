"""``ckpt rewrite`` as one call: a new checkpoint with the same state, kept by another provider or in other partitions.

A batch that is planned and not committed is refused: a sink that has its rows passes over it, and its state would be
missing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from os import fspath

from ckpt.copies.exchange import Exchange
from ckpt.copies.rewrite.dropping import NOTHING, Key, read_keys
from ckpt.copies.rewrite.moving import move_state
from ckpt.copies.rewrite.plan import Rewrite, RewrittenUnit, plan_rewrite
from ckpt.copies.rewrite.stores import Tally
from ckpt.copies.rewrite.writing import Watcher, make_new
from ckpt.errors import UsageError
from ckpt.model import Location
from ckpt.state.native.layout import layout_of
from ckpt.state.reading.reading import Chosen


def rewrite(
    checkpoint: Location,
    into: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    provider: str | None = None,
    partitions: int | None = None,
    format_version: int | None = None,
    drop_keys: str | Iterable[Key] = (),
    where: str | None = None,
    new_id: bool = False,
    plan: bool = False,
    jobs: int | None = None,
    by: Exchange | None = None,
    watcher: Watcher | None = None,
) -> Rewrite:
    """Write a new checkpoint with the state of this one, which is only read; without Spark.

    A query continues on the new one as it would on the old one, which is not to be started again. The rows of one store
    are in memory at once.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        into: A path or URI of a folder that does not exist, or holds no file.
        storage_options: For the file systems of both, where they are remote.
        provider: ``hdfs`` or ``rocksdb``; by default as it is.
        partitions: The new number of shuffle partitions; by default as it is.
        format_version: The state store checkpoint format, 1 or 2; by default as it is. Sessions must be set to it.
        drop_keys: Keys that are left out, with everything that operators keep for them: columns of the grouping key and
            their values as text, as of ``state_show``, None for NULL; or the path of a file of such JSON objects, one
            in a line. Operators that have no such columns keep all.
        where: Rows are kept where this condition in SQL on flat columns is true, such as ``key_user <> 'ann'``; DuckDB
            evaluates it. Rows of a join or transformWithState are judged by the grouping key alone, with everything
            that is kept for it; operators that have no such columns keep all.
        new_id: Give the new checkpoint a query id of its own.
        plan: Only say what would be written.
        jobs: Processes at a time, each with one partition of a store in memory; by default one for each core, where
            there is enough to do.
        by: Who moves the rows: by default processes of this machine, ``on_spark`` the executors of Spark.
        watcher: Called with the number of partitions written so far, and the number of all.

    Raises:
        NotACheckpoint, NotFound, StorageError: The old one cannot be read, or the new one not be written; nothing is
            left of it then, as far as it can be removed.
        StateDamaged: Files of that state are missing or damaged.
        CkptError: The bytes are not understood, or the new checkpoint is not what it should be.
        UsageError: A URI, option or condition is wrong, or one place is inside the other.

    >>> made = ckpt.rewrite("sample_checkpoints/aggregation-hdfs-4.2", "memory://new", partitions=5)
    >>> made.batch, made.new.partitions, [one.rows for one in made.units]
    (9, 5, [7])

    """
    uri, options = fspath(checkpoint), storage_options or {}
    if where is not None and drop_keys:
        raise UsageError("`where` or `drop_keys`: not both")
    keys = read_keys(drop_keys) if isinstance(drop_keys, str) else [*drop_keys]
    form = (provider, partitions, format_version)
    chosen, selection, rewrite = plan_rewrite(uri, into, options, form, keys, where, new_id=new_id)
    if plan or rewrite.refused:
        return rewrite
    tally = Tally()
    fill = partial(move_state, chosen, rewrite, options, tally, by, jobs)
    count = partial(_count_rows, chosen, rewrite, tally)
    writes = by is not None and by.writes
    return make_new(chosen, selection, rewrite, options, fill, count, watcher, tasks_write=writes)


def _count_rows(chosen: Chosen, rewrite: Rewrite, tally: Tally) -> Iterator[RewrittenUnit]:
    """How many rows of each unit were written, and how many left out."""
    for unit in rewrite.units:
        layout = layout_of(chosen, unit.unit)
        family = (unit.unit.operator, layout.store, layout.family)
        dropped = tally.dropped[family]
        leaving = rewrite.leaving.get(unit.unit.operator, NOTHING)
        yield replace(unit, rows=tally.rows[family] - dropped, dropped=dropped if leaving.applies else None)
