"""The move of state into a new checkpoint: store by store and partition by partition, by processes or executors.

Where rows stay in their partition, one task reads an old partition and makes the new one. Where they change it,
each old partition is first divided, and each new one made of its pieces. Of several old checkpoints each has its own
``Move``, and the first one makes the new partitions of the pieces of all.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ckpt import settings
from ckpt.advice import words
from ckpt.checkpoint.state.rewritable import Form, count_partitions, is_single
from ckpt.errors import one_line
from ckpt.formats.rows.unsafe import VERSION, rows_of, structs_of
from ckpt.formats.types import struct_of
from ckpt.model import Operator, Provider, Store
from ckpt.new.exchange import Exchange, ThroughFiles, pack_batch, unpack_batch
from ckpt.new.rewrite.filtering import NOTHING, Dropping, Key, Leaving
from ckpt.new.rewrite.merging import RowMerging, feeds_another
from ckpt.new.rewrite.plan import (
    CannotRewrite,
    Rewrite,
    choose_leaving,
)
from ckpt.new.rewrite.spreading import list_key_columns
from ckpt.new.rewrite.stored_rows import Stored, divide_rows, find_shared, join_stored
from ckpt.new.rewrite.stores import SHOWN, Families, Moving, Reshaping, Tally, name_keys, read_families
from ckpt.new.rewrite.writing import NewState, write_files
from ckpt.processes import Processes
from ckpt.state.native.entries import count_processes
from ckpt.state.native.store_files import StoreFiles, delimiter_of, find_store_files
from ckpt.state.reading.reading import Chosen
from ckpt.texts import plural

_WORTH_A_PROCESS = 2 << 20  # bytes of files: what takes twice as long to write as a process takes to start


def _name_piece(checkpoint: int, *, planned: bool) -> list[str]:
    """Name the columns of a piece: rows of one of the checkpoints, before or after the batch that is planned."""
    return [f"{column} {checkpoint} {planned}" for column in ("keys", "values", "groups")]


class Task(NamedTuple):
    """One store in one partition."""

    operator: int
    store: str
    partition: int
    checkpoint: int = 0  # the place of the old one among those that are merged


class TaskOutcome(NamedTuple):
    """The files that came of a task, or the bytes of those it has written; and what was counted."""

    files: Mapping[str, bytes | int] | None  # None: a partition was divided, and no file made yet
    tally: Tally
    keys_seen: frozenset[int] = frozenset()  # the places of keys to be left out that a row has had


@dataclass
class Move:
    """The move of all state: everything that its tasks share. One that is pickled opens the old checkpoint again."""

    chosen: Chosen
    old: Form
    state: NewState
    keys: tuple[Key, ...]  # that are left out
    where: str | tuple[str, ...] | None  # which are kept; several: of all new checkpoints, this one first
    into: str  # the new checkpoint
    options: Mapping[str, str]  # for its file system
    writes: bool  # tasks write files themselves
    reshapings: Mapping[tuple[int, str], Reshaping | None] | None = None  # of these stores; None: all, as they are
    others: tuple["Move", ...] = ()  # of other checkpoints into the same new one
    combining: Mapping[tuple[int, str], RowMerging] = field(default_factory=dict)
    """By store how rows of several checkpoints with the same key become one; of others they are refused."""
    _numbered: dict[tuple[int, str], Families] = field(default_factory=dict)
    _files: dict[tuple[int, str, bool], dict[int, StoreFiles]] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        for operator, store in self.stores:
            self._merge_families(Task(operator.id, store.name, 0))
        form, new = (self.old, self.state, self.keys, self.where), (self.into, dict(self.options), self.writes)
        merged = (self.others, self.combining)
        return Move, (self.chosen, *form, *new, self.reshapings, *merged, self._numbered)

    @property
    def moves(self) -> tuple["Move", ...]:
        """The moves of all checkpoints, this one first."""
        return (self, *self.others)

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
        """The old partitions whose rows change their partition."""
        return [
            Task(operator.id, store.name, partition, number)
            for number, move in enumerate(self.moves)
            for operator, store in move.stores
            if move.spreads(operator, store)
            for partition in move.find_files(operator.id, store.name)
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
        move, families, tally = self.moves[task.checkpoint], self._merge_families(task), Tally()
        for planned in self.versions:
            moved_rows = list(move._move_rows(task, families, tally, planned=planned, grouped=bool(self.others)))
            places = [np.zeros(0, np.int64), *(places for places, _ in moved_rows)]
            count = self.count_new(*self.find_store(task))
            order, starts = divide_rows(np.concatenate(places), count)
            rows = join_stored(rows for _, rows in moved_rows).take(order)
            columns = [column for column in rows.columns if column is not None]
            batch = pa.record_batch(columns, names=_name_piece(task.checkpoint, planned=planned)[: len(columns)])
            for partition, (start, end) in enumerate(pairwise(starts)):
                if end > start:
                    piece = pack_batch(batch.slice(start, end - start))
                    yield self.targets[task._replace(partition=partition, checkpoint=0)], piece
        yield None, move._make_outcome(task, tally, None)

    def make(self, task: Task, pieces: Iterable[Any]) -> Iterator[TaskOutcome]:
        """The files of a new partition. Raises Undecodable, StorageError."""
        operator, store = self.find_store(task)
        parts: dict[str, list[Stored]] = defaultdict(list)
        for batch in map(unpack_batch, pieces):
            parts[batch.schema.names[0]].append(Stored(*batch.columns))
        tally, families = Tally(), self._merge_families(task)
        rows = []
        for planned in self.versions:
            of_each = []
            for number, move in enumerate(self.moves):
                own = parts[_name_piece(number, planned=planned)[0]]
                if not move.spreads(operator, store):
                    moved = move._move_rows(task, families, tally, planned=planned, grouped=bool(self.others))
                    own += (rows for _, rows in moved)
                of_each.append(join_stored(own))
            rows.append(self._merge_rows(operator, store, of_each, tally))
        reshaping = self.find_reshaping(operator, store)
        if reshaping is not None:
            rows = [reshaping.merge(part) for part in rows]
            families = reshaping.rename(families)
        files = self.state.make_files(operator, store, task.partition, rows[0], families, *rows[1:])
        yield self._make_outcome(task, tally, write_files(self.into, self.options, files) if self.writes else files)

    def _merge_rows(self, operator: Operator, store: Store, parts: Sequence[Stored], tally: Tally) -> Stored:
        """Join the rows of each checkpoint in a new partition; keys that several have are combined, or counted."""
        rows = join_stored(parts)
        shared = find_shared(parts)
        if not len(shared):
            return rows
        if (combining := self.combining.get((operator.id, store.name))) is not None:
            merged = combining.merge(rows)
            tally.rows[operator.id, store.name, None] -= len(rows) - len(merged)
            return merged
        kind = struct_of(list_key_columns(operator, store))
        rocksdb = self.state.provider is Provider.ROCKSDB and rows.groups is None
        groups = [(b"" if rocksdb else VERSION) + group for group in shared.slice(0, SHOWN).to_pylist()]
        names = name_keys(structs_of(kind, rows_of(groups), "key"))
        feeds = feeds_another(operator, self.chosen.checkpoint.operators)
        own = "and have passed to other operators" if feeds else words("which only {--combine} merges")
        why = words("operator {id} with keys that several checkpoints have, {own}", id=operator.id, own=own)
        tally.refuse(why, len(shared), names)
        return rows

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

    def _make_outcome(self, task: Task, tally: Tally, files: Mapping[str, bytes | int] | None) -> TaskOutcome:
        leaving = (move.leaving.get(task.operator) for move in self.moves)
        keys = (dropping.seen for dropping in leaving if isinstance(dropping, Dropping))
        return TaskOutcome(files, tally, frozenset().union(*keys))

    def _merge_families(self, task: Task) -> Families:
        """The numbers of column families: those of all old partitions together, of all checkpoints."""
        families = self._numbered.get(task[:2])
        if families is None:
            has_any = bool(self.find_store(task)[1].column_families)
            both = product(self.moves, self.versions) if has_any else ()
            own = (move.find_files(*task[:2], planned=planned).values() for move, planned in both)
            families = self._numbered[task[:2]] = read_families(chain.from_iterable(own))
        return families

    def _move_rows(
        self, task: Task, families: Families, tally: Tally, *, planned: bool, grouped: bool
    ) -> Iterator[tuple[Any, Stored]]:
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
            families=families,
            reshaping=self.find_reshaping(operator, store),
            tally=Tally() if planned else tally,
            grouped=grouped,
        )
        every = self.find_files(task.operator, task.store, planned=planned)
        for partition in every if is_single(operator, store) else every.keys() & {task.partition}:
            yield from moving.move_rows(every[partition])


def move_state(
    chosen: Chosen,
    rewrite: Rewrite,
    options: Mapping[str, str],
    tally: Tally,
    engine: Exchange | None,
    jobs: int | None,
    state: NewState,
    *,
    accept_loss: bool = False,
) -> Iterator[Mapping[str, bytes | int]]:
    """The files of each store in each new partition; ``tally`` counts rows. Raises Undecodable, StorageError.

    By default they are moved in ``jobs`` processes of this machine; None is as many as are worth it.
    """
    union, provider = rewrite.union, state.provider
    rest = (
        state,
        rewrite.keys,
        rewrite.among or rewrite.where,
        rewrite.into,
        options,
        engine is not None and engine.writes,
    )
    move = Move(chosen, rewrite.old, *rest)
    if union is not None:
        others = zip(union.chosen[1:], rewrite.merged[1:], strict=True)
        move.others = tuple(Move(other, plan.old, *rest) for other, plan in others)
        move.combining = {store: RowMerging(columns, provider) for store, columns in union.combining.items()}
    for task, outcome in run_move(move, engine, jobs):
        tally.add(outcome.tally)
        dropping = rewrite.leaving.get(task.operator)
        if isinstance(dropping, Dropping):
            dropping.seen.update(outcome.keys_seen)
        if outcome.files is not None:
            yield outcome.files
    for why, refused in tally.refused.items():
        if accept_loss and refused.in_none:
            continue
        more = ", ..." if refused.count > len(refused.names) else ""
        parts = {"rows": plural(refused.count, "row"), "names": one_line(", ".join(refused.names) + more)}
        raise CannotRewrite.of("{rows} of {why}: {names}", why=why, **parts)


def run_move(move: Move, engine: Exchange | None, jobs: int | None) -> Iterator[tuple[Task, TaskOutcome]]:
    """Move all stores, by default in ``jobs`` processes of this machine. Raises Undecodable, StorageError."""
    if engine is None:
        of_stores = (each.find_files(operator.id, store.name) for each in move.moves for operator, store in each.stores)
        files = [file for of_store in of_stores for file in of_store.values()]
        engine = ThroughFiles(Processes(count_processes(move.chosen, files, jobs, _WORTH_A_PROCESS)))
    yield from engine.exchange(move, move.sources, [*move.targets])
