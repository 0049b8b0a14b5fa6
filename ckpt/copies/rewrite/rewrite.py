"""``ckpt rewrite`` as one call: a new checkpoint with the same state, kept by another provider or in other partitions.

Where a batch is planned and not committed, a start runs it again, or a sink that has its rows skips it and the
next one reads its state: so that is moved too, if every partition has it.

State is moved store by store and partition by partition, by processes of this machine or by Spark's executors. Where
rows stay in their partition, one task reads an old partition and makes the new one. Where they are spread anew, each
old partition is first divided, and each new one made of its pieces.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, pairwise
from os import fspath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ckpt import settings
from ckpt.checkpoint.state.rewritable import Form
from ckpt.copies.copy.placing import Watcher
from ckpt.copies.exchange import Exchange, ThroughFiles, pack_batch, unpack_batch
from ckpt.copies.rewrite.filtering import NOTHING, Dropping, Key, Leaving, read_keys
from ckpt.copies.rewrite.plan import Rewrite, RewrittenUnit, choose_leaving, plan_rewrite
from ckpt.copies.rewrite.spreading import count_partitions, is_single
from ckpt.copies.rewrite.stored_rows import Stored, divide_rows, join_stored
from ckpt.copies.rewrite.stores import Families, Moving, Reshaping, Tally, read_families
from ckpt.copies.rewrite.writing import NewState, make_new, write_files
from ckpt.errors import UsageError, argument
from ckpt.model import Location, Operator, Store
from ckpt.processes import Processes
from ckpt.state.native.entries import count_processes
from ckpt.state.native.store_files import StoreFiles, delimiter_of, find_store_files, layout_of
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
    salvage: bool = False,
    accept_loss: bool = False,
    accept_fewer_versions: bool = False,
    schema: str | None = None,
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
        salvage: Where state is damaged, take every partition of an operator that can be read: as of the newest batch at
            which all can be, else as of the one at which fewest are lost.
        accept_loss: Accept that a salvage loses keys, or that batches are read again; without it nothing is written.
        accept_fewer_versions: Accept that a Spark version that may be in use, and can start the old one, cannot start
            the new one; without it nothing is written.
        schema: A file with the schemas of state that keeps none, as Spark before 3.1 wrote it: a ``query.json``, or
            columns by operator and store, or by operator and side of a join.
        plan: Only say what would be written, and refuse what would be refused; the rows are not read.
        jobs: Processes at a time, each with one partition of a store in memory; by default one for each core, where
            there is enough to do.
        by: Who moves the rows: by default processes of this machine, ``ckpt.types.Executors()`` those of Spark.
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
    uri, options = fspath(checkpoint), storage_options or {}
    if where is not None and drop_keys:
        raise UsageError("`where` or `drop_keys`: not both")
    if salvage and schema is not None:
        raise UsageError("`salvage` or `schema`: not both")
    keys = read_keys(drop_keys) if isinstance(drop_keys, str) else [*drop_keys]
    form = (provider, partitions, format_version)
    more = {"new_id": new_id, "salvage": salvage}
    chosen, selection, rewrite = plan_rewrite(uri, into, options, form, keys, where, schema=schema, **more)
    if rewrite.salvage and rewrite.salvage.costs and not (accept_loss or rewrite.refused):
        rewrite = replace(rewrite, refused=f"{rewrite.salvage.costs}: {argument('accept_loss', True)} accepts that")
    if rewrite.stopped and not (accept_fewer_versions or rewrite.refused):
        versions = f"Spark {' and '.join(rewrite.stopped)} can start the old checkpoint, and not the new one"
        rewrite = replace(rewrite, refused=f"{versions}: {argument('accept_fewer_versions', True)} accepts that")
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


_PIECES = {planned: [f"keys {planned}", f"values {planned}"] for planned in (False, True)}  # names of columns
_WORTH_A_PROCESS = 2 << 20  # bytes of files: what takes twice as long to write anew as a process to start


class Task(NamedTuple):
    """One store in one partition."""

    operator: int
    store: str
    partition: int


class TaskOutcome(NamedTuple):
    """The files that came of a task, or the bytes of those it has written; and what was counted."""

    files: Mapping[str, bytes | int] | None  # None: a partition was divided, and no file made yet
    tally: Tally
    keys_seen: frozenset[int] = frozenset()  # the places of keys to be left out that a row has had


@dataclass
class Move:
    """The move of all state: everything that its tasks share. One that is pickled opens the old checkpoint anew."""

    chosen: Chosen
    old: Form
    state: NewState
    keys: tuple[Key, ...]  # that are left out
    where: str | None  # which are kept
    into: str  # the new checkpoint
    options: Mapping[str, str]  # for its file system
    writes: bool  # tasks write files themselves
    reshapings: Mapping[tuple[int, str], Reshaping | None] | None = None  # of these stores; None: all, as they are
    _numbered: dict[tuple[int, str], Families] = field(default_factory=dict)
    _tally: Tally = field(default_factory=Tally)  # of the task at hand
    _files: dict[tuple[int, str, bool], dict[int, StoreFiles]] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        for operator, store in self.stores:
            self._merge_families(Task(operator.id, store.name, 0))
        form, new = (self.old, self.state, self.keys, self.where), (self.into, dict(self.options), self.writes)
        return Move, (self.chosen, *form, *new, self.reshapings, self._numbered)

    @property
    def stores(self) -> list[tuple[Operator, Store]]:
        """The stores that are moved."""
        only = self.reshapings
        stores = self.chosen.checkpoint.stores()
        return [(operator, store) for operator, store in stores if only is None or (operator.id, store.name) in only]

    @cached_property
    def leaving(self) -> Mapping[int, Leaving]:
        """The rows that each operator leaves out."""
        return choose_leaving(self.chosen, self.keys, self.where)

    @cached_property
    def targets(self) -> dict[Task, int]:
        """Every store in every new partition, by number."""
        tasks = (
            Task(operator.id, store.name, partition)
            for operator, store in self.stores
            for partition in range(self.count_new(operator, store))
        )
        return {task: number for number, task in enumerate(tasks)}

    @property
    def sources(self) -> list[Task]:
        """The old partitions whose rows are spread anew."""
        return [
            Task(operator.id, store.name, partition)
            for operator, store in self.stores
            if self.spreads(operator, store)
            for partition in self.find_files(operator.id, store.name)
        ]

    def find_files(self, operator: int, store: str, *, planned: bool = False) -> Mapping[int, StoreFiles]:
        """The files of a store by old partition. Raises StateDamaged, StorageError."""
        by_partition = self._files.get((operator, store, planned))
        if by_partition is None:
            stores = find_store_files(self.chosen, operator, store, planned=planned)
            by_partition = self._files[operator, store, planned] = {files.place.partition: files for files in stores}
        return by_partition

    @property
    def versions(self) -> tuple[bool, ...]:
        """The versions of each store that are moved: True is the one of the batch that is planned."""
        return (False, True) if self.state.of_planned else (False,)

    def divide(self, task: Task) -> Iterator[tuple[int | None, Any]]:
        """The rows of an old partition for the new ones, and what was counted. Raises Undecodable, StorageError."""
        self._tally = Tally()
        for planned in self.versions:
            moved_rows = list(self._move_rows(task, planned=planned))
            places = [np.zeros(0, np.int64), *(places for places, _ in moved_rows)]
            count = self.count_new(*self.find_store(task))
            order, starts = divide_rows(np.concatenate(places), count)
            rows = join_stored(rows for _, rows in moved_rows).take(order)
            batch = pa.record_batch([rows.keys, rows.values], names=_PIECES[planned])
            for partition, (start, end) in enumerate(pairwise(starts)):
                if end > start:
                    piece = pack_batch(batch.slice(start, end - start))
                    yield self.targets[task._replace(partition=partition)], piece
        yield None, self._make_outcome(task, None)

    def make(self, task: Task, pieces: Iterable[Any]) -> Iterator[TaskOutcome]:
        """The files of a new partition. Raises Undecodable, StorageError."""
        operator, store = self.find_store(task)
        self._tally = Tally()
        if self.spreads(operator, store):
            batches = [unpack_batch(piece) for piece in pieces]
            parts = [
                [Stored(*batch.columns) for batch in batches if batch.schema.names == _PIECES[planned]]
                for planned in self.versions
            ]
        else:
            parts = [[rows for _, rows in self._move_rows(task, planned=planned)] for planned in self.versions]
        rows = [join_stored(part) for part in parts]
        reshaping, families = self.find_reshaping(operator, store), self._merge_families(task)
        if reshaping is not None:
            rows = [reshaping.merge(part) for part in rows]
            families = reshaping.rename(families)
        files = self.state.make_files(operator, store, task.partition, rows[0], families, *rows[1:])
        yield self._make_outcome(task, write_files(self.into, self.options, files) if self.writes else files)

    def spreads(self, operator: Operator, store: Store) -> bool:
        """Tell whether rows change their partition."""
        reshaping = self.find_reshaping(operator, store)
        moves = reshaping is not None and reshaping.changes_keys
        return not is_single(operator, store) and (moves or self.state.partitions != self.old.partitions)

    def count_new(self, operator: Operator, store: Store) -> int:
        """In how many partitions the new state has a store."""
        reshaping = self.find_reshaping(operator, store)
        if reshaping is not None and reshaping.one_partition:
            return 1
        return count_partitions(operator, store, self.state.partitions)

    def find_reshaping(self, operator: Operator, store: Store) -> Reshaping | None:
        """The new columns of a store, where it gets any."""
        return (self.reshapings or {}).get((operator.id, store.name))

    def find_store(self, task: Task) -> tuple[Operator, Store]:
        """The store of a task."""
        return next(pair for pair in self.chosen.checkpoint.stores() if (pair[0].id, pair[1].name) == task[:2])

    def _make_outcome(self, task: Task, files: Mapping[str, bytes | int] | None) -> TaskOutcome:
        dropping = self.leaving.get(task.operator)
        return TaskOutcome(files, self._tally, frozenset(dropping.seen if isinstance(dropping, Dropping) else ()))

    def _merge_families(self, task: Task) -> Families:
        """The numbers of column families: those of all old partitions together."""
        families = self._numbered.get(task[:2])
        if families is None:
            has_any = bool(self.find_store(task)[1].column_families)
            own = (self.find_files(*task[:2], planned=planned).values() for planned in self.versions if has_any)
            families = self._numbered[task[:2]] = read_families(chain.from_iterable(own))
        return families

    def _move_rows(self, task: Task, *, planned: bool) -> Iterator[tuple[Any, Stored]]:
        """The rows of an old partition, if it has any; of a store with rows in one only, of all."""
        operator, store = self.find_store(task)
        recorded = self.chosen.recorded
        moving = Moving(
            operator=operator,
            store=store,
            old=self.old.provider,
            new=self.state.provider,
            before=self.old.partitions,
            partitions=self.count_new(operator, store) if self.spreads(operator, store) else None,
            avro=recorded.get(settings.ENCODING_FORMAT) == "avro" and bool(operator.variables),
            delimiter=delimiter_of(recorded),
            leaving=self.leaving.get(operator.id, NOTHING),
            families=self._merge_families(task),
            reshaping=self.find_reshaping(operator, store),
            tally=Tally() if planned else self._tally,
        )
        every = self.find_files(task.operator, task.store, planned=planned)
        for partition in every if is_single(operator, store) else every.keys() & {task.partition}:
            yield from moving.move_rows(every[partition])


def move_state(
    chosen: Chosen,
    rewrite: Rewrite,
    options: Mapping[str, str],
    tally: Tally,
    by: Exchange | None,
    jobs: int | None,
    state: NewState,
) -> Iterator[Mapping[str, bytes | int]]:
    """The files of each store in each new partition; ``tally`` counts rows. Raises Undecodable, StorageError.

    By default they are moved in ``jobs`` processes of this machine; None is as many as are worth it.
    """
    form = (rewrite.old, state, rewrite.keys, rewrite.where)
    move = Move(chosen, *form, rewrite.into, options, by is not None and by.writes)
    for task, outcome in run_move(move, by, jobs):
        tally.add(outcome.tally)
        dropping = rewrite.leaving.get(task.operator)
        if isinstance(dropping, Dropping):
            dropping.seen.update(outcome.keys_seen)
        if outcome.files is not None:
            yield outcome.files


def run_move(move: Move, by: Exchange | None, jobs: int | None) -> Iterator[tuple[Task, TaskOutcome]]:
    """Move all stores, by default in ``jobs`` processes of this machine. Raises Undecodable, StorageError."""
    if by is None:
        of_stores = (move.find_files(operator.id, store.name) for operator, store in move.stores)
        files = [file for of_store in of_stores for file in of_store.values()]
        by = ThroughFiles(Processes(count_processes(move.chosen, files, jobs, _WORTH_A_PROCESS)))
    yield from by.exchange(move, move.sources, [*move.targets])
