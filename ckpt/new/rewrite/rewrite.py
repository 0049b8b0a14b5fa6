"""``ckpt rewrite`` as one call: a new checkpoint with the same state, kept by another provider or in other partitions.

Where a batch is planned and not committed, a start runs it again, or a sink that has its rows skips it and the
next one reads its state: so that is moved too, if every partition has it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import combinations
from os import PathLike, fspath

from ckpt.advice import words
from ckpt.errors import UsageError
from ckpt.model import Location
from ckpt.new.book import BOOK
from ckpt.new.copy.placing import Watcher, check_apart
from ckpt.new.exchange import Exchange
from ckpt.new.rewrite.filtering import NOTHING, Key, read_keys
from ckpt.new.rewrite.move import move_state
from ckpt.new.rewrite.plan import (
    Rewrite,
    RewrittenUnit,
    plan_merge,
    plan_rewrite,
    plan_split,
)
from ckpt.new.rewrite.stores import Tally
from ckpt.new.rewrite.writing import make_new
from ckpt.query.description import QueryDescription
from ckpt.state.native.store_files import layout_of
from ckpt.state.reading.reading import Chosen


def rewrite(
    checkpoint: Location | Sequence[Location],
    new: str | Sequence[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    provider: str | None = None,
    partitions: int | None = None,
    format_version: int | None = None,
    drop_keys: str | Iterable[Key] = (),
    where: str | Sequence[str] | None = None,
    expect: QueryDescription | str | None = None,
    combine: bool = False,
    new_id: bool = False,
    salvage: bool = False,
    accept_loss: bool = False,
    accept_fewer_versions: bool = False,
    schema: str | None = None,
    plan: bool = False,
    jobs: int | None = None,
    engine: Exchange | None = None,
    watcher: Watcher | None = None,
) -> Rewrite:
    """Write a new checkpoint with the state of this one, which is only read; without Spark.

    A query continues on the new one as it would on the old one, which is not to be started again. The rows of one store
    are in memory at once.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``. Several of queries that do the
            same with other sources become one, of a query that reads the sources of all, those of the first first.
        new: A path or URI of a folder that does not exist, or holds no file. Several, each with its own ``where``,
            are parts of one old checkpoint, for queries that together do what the old one did.
        storage_options: For the file systems of both, where they are remote.
        provider: ``hdfs`` or ``rocksdb``; by default as it is.
        partitions: The new number of shuffle partitions; by default as it is.
        format_version: The state store checkpoint format, 1 or 2; by default as it is. Sessions must be set to it.
        drop_keys: Keys that are left out, with everything that operators keep for them: columns of the grouping key and
            their values as text, as of ``state_show``, None for NULL; or the path of a file of such JSON objects, one
            in a line. Operators that have no such columns keep all.
        where: Rows are kept where this condition in SQL on flat columns is true, such as ``key_user <> 'ann'``; DuckDB
            evaluates it. Rows of a join or transformWithState are judged by the grouping key alone, with everything
            that is kept for it; operators that have no such columns keep all. Of several, one for each new checkpoint,
            exactly one has to be true for each row.
        expect: The description of the new query, or a file of it, where several old checkpoints become one: their
            sources are put in its order, and it must not read others. Of one checkpoint a file of it is ``schema``.
        combine: Merge what several old checkpoints keep for the same key, as the functions that ``expect`` describes
            merge groups; without it such a key is refused.
        new_id: Give the new checkpoint a query id of its own; several always have one.
        salvage: Where state is damaged, take every partition of an operator that can be read: as of the newest batch at
            which all can be, else as of the one at which fewest are lost.
        accept_loss: Accept that a salvage loses keys, that batches are read again, or that no condition of several
            keeps a row; without it nothing is written.
        accept_fewer_versions: Accept that a Spark version that may be in use, and can start the old one, cannot start
            the new one; without it nothing is written.
        schema: A file with the schemas of state that keeps none, as Spark before 3.1 wrote it: a ``query.json``, or
            columns by operator and store, or by operator and side of a join.
        plan: Only say what would be written, and refuse what would be refused; the rows are not read.
        jobs: Processes at a time, each with one partition of a store in memory; by default one for each core, where
            there is enough to do.
        engine: Who moves the rows: by default processes of this machine, ``ckpt.types.Executors()`` those of Spark.
        watcher: Called with the number of partitions written so far, and the number of all.

    Raises:
        NotACheckpoint, NotFound, StorageError: The old one cannot be read, or the new one not be written; nothing is
            left of it then, as far as it can be removed.
        StateDamaged: Files of that state are missing or damaged.
        CkptError: The bytes are not understood, or the new checkpoint is not what it should be.
        UsageError: A URI, option or condition is wrong, or one place is inside the other.

    >>> made = ckpt.rewrite("sample_checkpoints/aggregation-hdfs-4.2", "memory://new", partitions=5)
    >>> made.batch, made.new.partitions, [unit.rows for unit in made.units]
    (9, 5, [7])

    """
    options, keys = storage_options or {}, read_keys(drop_keys) if isinstance(drop_keys, str) else [*drop_keys]
    old = [fspath(checkpoint)] if isinstance(checkpoint, str | PathLike) else [fspath(each) for each in checkpoint]
    new = [new] if isinstance(new, str) else [*new]
    conditions = [] if where is None else [where] if isinstance(where, str) else [*where]
    if len(old) == 1 and isinstance(expect, str) and schema is None:
        expect, schema = None, expect
    _check_options(old, new, conditions, keys, merges=combine or expect is not None, salvage=salvage, schema=schema)
    form = (provider, partitions, format_version)
    plans = []
    if len(old) > 1:
        query = QueryDescription.read(expect) if isinstance(expect, str) else expect
        only = next(iter(conditions), None)
        plans.append(plan_merge(old, new[0], options, form, keys, only, query, combine=combine))
    elif len(new) > 1:
        plans += plan_split(old[0], new, options, form, conditions)
    else:
        only, more = next(iter(conditions), None), {"new_id": new_id, "salvage": salvage}
        plans.append(plan_rewrite(old[0], new[0], options, form, keys, only, schema=schema, **more))
    plans = [
        (chosen, selection, _refuse_losses(rewrite, loss=accept_loss, fewer_versions=accept_fewer_versions))
        for chosen, selection, rewrite in plans
    ]
    results = [rewrite for *_, rewrite in plans]
    refused = next((rewrite.refused for rewrite in results if rewrite.refused), None)
    if not plan and refused is None:
        with ExitStack() as written:
            results = []
            for chosen, selection, rewrite in plans:
                tally = Tally()
                fill = partial(move_state, chosen, rewrite, options, tally, engine, jobs, accept_loss=accept_loss)
                count = partial(_count_rows, chosen, rewrite, tally)
                writes = engine is not None and engine.writes
                results.append(
                    make_new(
                        chosen, selection, rewrite, options, fill, count, watcher, tasks_write=writes, written=written
                    )
                )
            written.pop_all()
    first = replace(results[0], refused=refused)
    return replace(first, parts=tuple(results)) if len(new) > 1 else first


def _refuse_losses(rewrite: Rewrite, *, loss: bool, fewer_versions: bool) -> Rewrite:
    """Refuse a rewrite that costs something that is not accepted."""
    if rewrite.refused:
        return rewrite
    if rewrite.salvage and rewrite.salvage.costs and not loss:
        return replace(rewrite, refused=words("{costs}: {--accept-loss} accepts that", costs=rewrite.salvage.costs))
    if rewrite.stopped and not fewer_versions:
        fewer = BOOK.text("rewrite_fewer_versions", versions=" and ".join(rewrite.stopped))
        return replace(rewrite, refused=fewer)
    return rewrite


def _check_options(
    old: Sequence[str],
    new: Sequence[str],
    where: Sequence[str],
    keys: Sequence[Key],
    *,
    merges: bool,
    salvage: bool,
    schema: str | None,
) -> None:
    """Raise UsageError where options do not go together."""
    if where and keys:
        raise UsageError.of("{--where} or {--drop-keys}: not both")
    if salvage and schema is not None:
        raise UsageError.of("{--salvage} or {--schema}: not both")
    if not old or not new or (len(old) > 1 and len(new) > 1):
        raise UsageError("name one new checkpoint for several old ones, or several for one")
    if len(where) != len(new) and (len(new) > 1 or len(where) > 1):
        raise UsageError.of("{--where}: name one condition for each new checkpoint")
    if len(old) + len(new) > 2 and (salvage or schema is not None):
        raise UsageError.of("{--salvage} and {--schema} are for one checkpoint and its new one: rewrite each first")
    if merges and len(old) == 1:
        raise UsageError.of("{--expect} and {--combine} are for several checkpoints that become one")
    for uri, other in combinations(new, 2):
        check_apart(uri, other)


def _count_rows(chosen: Chosen, rewrite: Rewrite, tally: Tally) -> Iterator[RewrittenUnit]:
    """How many rows of each unit were written, and how many left out."""
    for unit in rewrite.units:
        layout = layout_of(chosen, unit.unit)
        family = (unit.unit.operator, layout.store, layout.family)
        dropped = tally.dropped[family]
        leaving = rewrite.leaving.get(unit.unit.operator, NOTHING)
        yield replace(unit, rows=tally.rows[family] - dropped, dropped=dropped if leaving.applies else None)
