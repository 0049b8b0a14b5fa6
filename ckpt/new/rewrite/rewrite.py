"""The calls ``rewrite``, ``merge`` and ``split``: new checkpoints with the state of old ones, in other forms or parts.

Where a batch is planned and not committed, a start runs it again, or a sink that has its rows skips it and the
next one reads its state: so that is moved too, if every partition has it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import combinations
from os import PathLike, fspath
from typing import Unpack

from ckpt.advice import words
from ckpt.errors import UsageError
from ckpt.model import Location
from ckpt.new.book import BOOK
from ckpt.new.exchange import Exchange
from ckpt.new.placing import Watcher, check_apart
from ckpt.new.request import Key, NewCheckpoint, Rewriting
from ckpt.new.rewrite.filtering import NOTHING, read_keys
from ckpt.new.rewrite.plan import PlannedRewrite, Rewrite, RewrittenUnit, plan_merge, plan_rewrite, plan_split
from ckpt.new.rewrite.state import Tally, rewrite_state
from ckpt.new.rewrite.writing import make_new
from ckpt.query.description import QueryDescription, read_query
from ckpt.state.native.store_files import layout_of


def rewrite(
    checkpoint: Location,
    new: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    to_storage_options: Mapping[str, str] | None = None,
    provider: str | None = None,
    partitions: int | None = None,
    format_version: int | None = None,
    drop_keys: str | Iterable[Key] = (),
    where: str | None = None,
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

    A query continues on the new one as on the old one; do not start the old one again. The rows of one store
    are in memory at once.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        new: A path or URI of a folder that does not exist, or contains no file.
        storage_options: For the file system of the checkpoint, and for that of ``new``, as for ``copy``.
        to_storage_options: For the file system of ``new``, instead of ``storage_options``.
        provider: ``hdfs`` or ``rocksdb``; by default unchanged.
        partitions: The new number of shuffle partitions; by default unchanged.
        format_version: The state store checkpoint format, 1 or 2; by default unchanged. Sessions must be set to it.
        drop_keys: Keys to leave out, with everything that operators keep for them: columns of the grouping key and
            their values as text, as for ``state_show``, None for NULL; or the path of a file of such JSON objects, one
            in a line. Operators that have no such columns keep all.
        where: Rows are kept where this condition in SQL on flat columns is true, such as ``key_user <> 'ann'``; DuckDB
            evaluates it. Rows of a join or transformWithState are judged by the grouping key alone, with everything
            that is kept for it; operators that have no such columns keep all.
        new_id: Give the new checkpoint its own query id.
        salvage: Where state is damaged, take every partition of an operator that can be read: as of the newest batch at
            which all can be, else as of the one at which fewest are lost.
        accept_loss: Accept that a salvage loses keys, or that batches are read again; without it nothing is written.
        accept_fewer_versions: Accept that a Spark version that may be in use can start the old one but not the new one;
            without it nothing is written.
        schema: A file with the schemas of state without any, as written by Spark before 3.1: a ``query.json``, or
            columns by operator and store, or by operator and side of a join.
        plan: Only report what would be written or refused; the rows are not read.
        jobs: Processes at a time, each with one partition of a store in memory; by default one for each core, where
            there is enough to do.
        engine: By default processes on this machine move the rows; ``ckpt.types.Executors()`` uses Spark's.
        watcher: Called with the number of partitions written so far, and the number of all.

    Raises:
        NotACheckpoint, NotFound, StorageError: The old one cannot be read, or the new one not be written; in that
            case it is removed as far as possible.
        StateDamaged: Files of that state are missing or damaged.
        CkptError: The bytes are not understood, or the new checkpoint is wrong.
        UsageError: A URI, option or condition is wrong, or one place is inside the other.

    >>> made = ckpt.rewrite("sample_checkpoints/aggregation-hdfs-4.2", "memory://new", partitions=5)
    >>> made.batch, made.new.partitions, [unit.rows for unit in made.units]
    (9, 5, [7])
    """
    keys = _list_keys(drop_keys, where)
    if salvage and schema is not None:
        raise UsageError.of("{--salvage} and {--schema} exclude each other")
    how: Rewriting = {"provider": provider, "partitions": partitions, "format_version": format_version, "plan": plan}
    how |= {"to_storage_options": to_storage_options}
    how |= {"accept_loss": accept_loss, "accept_fewer_versions": accept_fewer_versions}
    how |= {"jobs": jobs, "engine": engine, "watcher": watcher}
    wanted = NewCheckpoint(
        uri=fspath(new),
        old=fspath(checkpoint),
        options=storage_options or {},
        keys=keys,
        where=where,
        new_id=new_id,
        **how,
    )
    return _write([(wanted, plan_rewrite(wanted.old, wanted, schema=schema, salvage=salvage))])[0]


def merge(
    checkpoints: Sequence[Location],
    new: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    drop_keys: str | Iterable[Key] = (),
    where: str | None = None,
    expect: QueryDescription | str | None = None,
    combine: bool = False,
    **how: Unpack[Rewriting],
) -> Rewrite:
    """Merge checkpoints of queries that do the same with different sources.

    A query that reads all of their sources, in this order, continues on it. The old ones are only read.

    Args:
        checkpoints: Two or more, each as for ``rewrite``.
        new: A path or URI of a folder that does not exist, or contains no file.
        storage_options: For the file systems of all, as for ``copy``.
        drop_keys: As for ``rewrite``.
        where: As for ``rewrite``.
        expect: The description of the new query, or a file of it: the sources are put in its order, and it must not
            read others.
        combine: Merge what several keep for the same key, as the functions that ``expect`` describes merge groups;
            without it such a key is refused.
        how: The form of the new one, and how it is written; see ``Rewriting``.

    Raises:
        StateDamaged, CkptError, UsageError: As for ``rewrite``, and where the checkpoints do not fit together.

    >>> ckpt.merge(["sample_checkpoints/kafka-4.2"], "memory://merged")
    Traceback (most recent call last):
    ckpt.errors.UsageError: name two or more checkpoints to merge
    """
    old = [fspath(each) for each in checkpoints] if not isinstance(checkpoints, str | PathLike) else []
    if len(old) < 2:
        raise UsageError("name two or more checkpoints to merge")
    keys = _list_keys(drop_keys, where)
    query = read_query(expect)
    wanted = NewCheckpoint(
        uri=fspath(new), old=old[0], options=storage_options or {}, keys=keys, where=where, new_id=True, **how
    )
    return _write([(wanted, plan_merge(old, wanted, query, combine=combine))])[0]


def split(
    checkpoint: Location,
    new: Sequence[Location],
    *,
    where: Sequence[str],
    storage_options: Mapping[str, str] | None = None,
    **how: Unpack[Rewriting],
) -> Rewrite:
    """Split a checkpoint into several, for queries that together replace the old one.

    Each has its own query id. The old one is only read; do not start it again.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        new: Two or more paths or URIs of folders that do not exist, or contain no file.
        where: A condition for each of them, as for ``rewrite``; exactly one must be true for each row.
        storage_options: For the file systems of all, as for ``copy``.
        how: The form of the new ones, and how they are written; see ``Rewriting``.

    Raises:
        StateDamaged, CkptError, UsageError: As for ``rewrite``, and where conditions do not divide the rows.

    >>> parts = ["key_key < 3", "key_key >= 3"]
    >>> new = ["memory://split/low", "memory://split/high"]
    >>> made = ckpt.split("sample_checkpoints/aggregation-hdfs-4.2", new, where=parts)
    >>> [[unit.rows for unit in part.units] for part in made.parts]
    [[3], [4]]
    """
    if isinstance(new, str | PathLike) or len(new) < 2:
        raise UsageError("name two or more new checkpoints")
    if len(where) != len(new):
        raise UsageError.of("{--where}: name one condition for each new checkpoint")
    uris = [fspath(each) for each in new]
    for uri, other in combinations(uris, 2):
        check_apart(uri, other)
    old, options = fspath(checkpoint), storage_options or {}
    into = [
        NewCheckpoint(uri=uri, old=old, options=options, where=own, new_id=True, **how)
        for uri, own in zip(uris, where, strict=True)
    ]
    made = _write([*zip(into, plan_split(old, into), strict=True)])
    return replace(made[0], parts=made)


def _list_keys(drop_keys: str | Iterable[Key], where: str | None) -> tuple[Key, ...]:
    keys = tuple(read_keys(drop_keys) if isinstance(drop_keys, str) else drop_keys)
    if where is not None and keys:
        raise UsageError.of("{--where} and {--drop-keys} exclude each other")
    return keys


def _write(planned: Sequence[tuple[NewCheckpoint, PlannedRewrite]]) -> tuple[Rewrite, ...]:
    """Write what was planned, all of it or nothing; the first one says why it was refused."""
    results = [_refuse_losses(new, plan.rewrite) for new, plan in planned]
    refused = next((rewrite.refused for rewrite in results if rewrite.refused), None)
    if planned[0][0].plan or refused is not None:
        return replace(results[0], refused=refused), *results[1:]
    results = []
    with ExitStack() as placings:
        for new, plan in planned:
            placing, tally = placings.enter_context(new.open()), Tally()
            made = make_new(plan, placing, partial(rewrite_state, plan, new, tally), new.watcher)
            results.append(replace(made, units=tuple(_count_rows(plan, tally))))
    return tuple(results)


def _refuse_losses(new: NewCheckpoint, rewrite: Rewrite) -> Rewrite:
    """Refuse a rewrite that costs something that is not accepted."""
    if rewrite.refused:
        return rewrite
    if rewrite.salvage and rewrite.salvage.costs and not new.accept_loss:
        return replace(rewrite, refused=words("{costs}: {--accept-loss} accepts that", costs=rewrite.salvage.costs))
    if rewrite.stopped and not new.accept_fewer_versions:
        fewer = BOOK.text("rewrite_fewer_versions", versions=" and ".join(rewrite.stopped))
        return replace(rewrite, refused=fewer)
    return rewrite


def _count_rows(plan: PlannedRewrite, tally: Tally) -> Iterator[RewrittenUnit]:
    """How many rows of each unit were written, and how many left out."""
    for unit in plan.rewrite.units:
        layout = layout_of(plan.chosen, unit.unit)
        family = (unit.unit.operator, layout.store, layout.family)
        dropped = tally.dropped[family]
        leaving = plan.rewrite.leaving.get(unit.unit.operator, NOTHING)
        yield replace(unit, rows=tally.rows[family] - dropped, dropped=dropped if leaving.applies else None)
