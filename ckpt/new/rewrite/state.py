"""The state of a new checkpoint, made of the bytes of old ones: store by store and partition by partition.

Where rows stay in their partition, one task reads an old partition and makes the new one. Where they change it, each
old partition is first divided, and each new one made of its pieces. Of several old checkpoints all put their rows into
the same new partitions.

No value is decoded; of keys only what decides the partition. HDFS-backed stores hold bare rows, RocksDB a version byte
before each and the first columns of some keys as a row of their own (``PrefixKeyScanStateEncoder``).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from ckpt import settings
from ckpt.advice import Words, words
from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.checkpoint.state.chains import context_of
from ckpt.checkpoint.state.rewritable import Form, count_partitions, is_single
from ckpt.errors import Undecodable, one_line
from ckpt.formats.rows.arrow import whole
from ckpt.formats.rows.avro import elements
from ckpt.formats.rows.unsafe import VERSION, rows_of, structs_of
from ckpt.formats.statefiles import TIMED_ROWS
from ckpt.formats.types import struct_of
from ckpt.model import Operator, Provider, Store
from ckpt.new.book import BOOK
from ckpt.new.evolve.state import StatePlan
from ckpt.new.exchange import Exchange, ThroughFiles, unpack_batch
from ckpt.new.placing import Placing
from ckpt.new.request import Key, NewCheckpoint
from ckpt.new.rewrite import filtering, stored_rows
from ckpt.new.rewrite.merging import feeds_another
from ckpt.new.rewrite.plan import CannotRewrite, PlannedRewrite
from ckpt.new.rewrite.reshaping import ColumnReshaping
from ckpt.new.rewrite.snapshots import read_file_form
from ckpt.new.rewrite.spreading import Column, find_grouping, hash_rows, list_key_columns
from ckpt.new.rewrite.writing import NewState, StateWriting
from ckpt.processes import Processes
from ckpt.state.native.entries import count_processes, split_elements
from ckpt.state.native.json_values import make_plain
from ckpt.state.native.store_files import StoreFiles, context_of as context_of_chosen, delimiter_of, find_store_files
from ckpt.state.reading.reading import ChosenState
from ckpt.texts import plural

Family: TypeAlias = tuple[int, str, str | None]
"""Operator, store, and column family; None where the store has none."""

_LIST = "ListState"
_SHOWN = 5  # keys that a refusal names
_WORTH_A_PROCESS = 2 << 20  # bytes of files: what takes twice as long to write as a process takes to start


@dataclass(slots=True)
class RefusedKeys:
    """Keys for which a checkpoint is not written."""

    in_none: bool  # each new checkpoint leaves them out
    count: int = 0
    names: list[str] = field(default_factory=list)  # some of them, as JSON


@dataclass(slots=True)
class Tally:
    """How many rows families have, and how many of them are left out; of lists every element is one."""

    rows: Counter[Family] = field(default_factory=Counter)
    dropped: Counter[Family] = field(default_factory=Counter)
    refused: dict[str | Words, RefusedKeys] = field(default_factory=dict)  # by what is wrong with them
    keys_seen: set[int] = field(default_factory=set)  # the places of keys to be left out that a row has had

    def add(self, other: "Tally") -> None:
        """Add the counts of more rows."""
        self.rows.update(other.rows)
        self.dropped.update(other.dropped)
        self.keys_seen.update(other.keys_seen)
        for why, keys in other.refused.items():
            self.refuse(why, keys.count, keys.names, in_none=keys.in_none)

    def refuse(self, why: str | Words, count: int, names: Iterable[str], *, in_none: bool = False) -> None:
        """Count keys for which nothing is written; ``names`` are those of some of them, or of all."""
        known = self.refused.setdefault(why, RefusedKeys(in_none))
        known.count += count
        known.names = sorted({*known.names, *names})[:_SHOWN]


@dataclass
class StoreRewriting:
    """One store of an old checkpoint, and what it becomes."""

    chosen: ChosenState
    old: Form
    state: NewState
    operator: Operator
    store: Store
    leaving: filtering.Leaving
    reshaping: ColumnReshaping | None  # the new columns of the store
    grouped: bool  # rows keep their grouping key, where it is not all of the key

    def __post_init__(self) -> None:
        self.forms = stored_rows.list_forms(self.store)
        self.single = is_single(self.operator, self.store)
        has_no_key = self.reshaping is not None and self.reshaping.columns.has_no_key
        self.partitions = 1 if has_no_key else count_partitions(self.operator, self.store, self.state.partitions)
        """In how many partitions the new state has the store."""
        moves = self.reshaping is not None and self.reshaping.columns.key is not None
        self.spreads = not self.single and (moves or self.state.partitions != self.old.partitions)
        """True if rows change their partition."""
        self.avro = self.chosen.recorded.get(settings.ENCODING_FORMAT) == "avro" and bool(self.operator.variables)
        self.delimiter = delimiter_of(self.chosen.recorded)
        self._files: dict[bool, Mapping[int, StoreFiles]] = {}

    def find_files(self, *, planned: bool = False) -> Mapping[int, StoreFiles]:
        """The files by old partition, of the version of the planned batch too. Raises StateDamaged, StorageError."""
        if planned not in self._files:
            stores = find_store_files(self.chosen, self.operator.id, self.store.name, planned=planned)
            self._files[planned] = {files.place.partition: files for files in stores}
        return self._files[planned]

    def move_rows(
        self, partition: int, families: stored_rows.Families, tally: Tally, *, planned: bool
    ) -> Iterator[tuple[np.ndarray, stored_rows.Stored]]:
        """The rows of an old partition, if it has any, some at a time; of a store with rows in one only, of all.

        Their new partitions as an int64 array, and what is stored. Raises Undecodable, StorageError.
        """
        counts, every = Tally() if planned else tally, self.find_files(planned=planned)
        for own in every if self.single else every.keys() & {partition}:
            files = every[own]
            for rows in stored_rows.read_rows(files, self.old.provider):
                try:
                    if len(rows):
                        yield self._move_batch(rows, own, families, counts)
                except Undecodable as error:
                    raise files.refused(files.place.folder, error) from None
        if isinstance(self.leaving, filtering.Dropping):
            tally.keys_seen.update(self.leaving.seen)

    def _move_batch(
        self, rows: stored_rows.OldRows, partition: int, families: stored_rows.Families, tally: Tally
    ) -> tuple[np.ndarray, stored_rows.Stored]:
        count, form, sources = len(rows), partial(self._find_form, rows), np.arange(len(rows))
        grouping = partial(find_grouping, self.operator, self.store, rows.family)
        grouped = self.grouped and (rows.family is not None or not grouping().is_whole)
        columns: list[Column] = []
        if self.spreads or grouped or self.leaving.of_keys:
            columns = grouping().take_columns(form().key, self._decode_keys(rows))
        strays = self.spreads and (hash_rows(columns, count, self.old.partitions) != partition).any()
        if strays or (self.single and partition):
            raise Undecodable(BOOK.text("rewrite_strays"))
        if self.reshaping is not None and self.reshaping.columns.key is not None:
            sources, columns = self.reshaping.make_key(columns, count)
            count = len(sources)
        places = hash_rows(columns, count, self.partitions) if self.spreads else np.full(count, partition, np.int64)
        if isinstance(self.leaving, filtering.SplitFilter):
            left_out = [each.find_left_out(rows, columns, partition) for each in self.leaving.filters]
            self._count_strays(rows, filtering.find_strays(left_out), tally)
            dropped = left_out[0]
        else:
            dropped = self.leaving.find_left_out(rows, columns, partition)
        family, sizes = (self.operator.id, self.store.name, rows.family), self._count_state_rows(rows)
        tally.rows[family] += int(sizes.sum())
        tally.dropped[family] += int(sizes[dropped].sum())
        if rows.family is not None:
            stored = stored_rows.renumber_family(rows, families.numbers[rows.family])
        elif self.reshaping is not None:
            return places, self.reshaping.reshape(rows, columns, self.store, sources)
        else:
            stored = stored_rows.convert_rows(rows, form(), self.old.provider, self.state.provider)
        if self.reshaping is not None and rows.family is not None:
            old_keys = partial(self._decode_keys, rows)
            reshaped = self.reshaping.reshape_family(rows.family, stored, self.delimiter, columns, old_keys)
            return (places[:0], stored_rows.make_stored([], [])) if reshaped is None else (places, reshaped)
        if grouped:
            schema = struct_of((name, kind) for name, kind, _ in columns)
            groups = stored_rows.encode_rows(schema, [array for _, _, array in columns], count, Provider.HDFS)
            stored = replace(stored, groups=groups)
        return places[~dropped], stored.leave_out(dropped)

    def _count_strays(self, rows: stored_rows.OldRows, strays: Mapping[str, np.ndarray], tally: Tally) -> None:
        """Count the rows that are not in exactly one of several new checkpoints, and name some."""
        for why, mask in strays.items():
            if mask.any():
                keys = self._decode_keys(rows).take(whole(pa.int64(), np.flatnonzero(mask)[:_SHOWN]))
                what = f"operator {self.operator.id} {why}"
                tally.refuse(what, int(mask.sum()), name_keys(keys), in_none=why == filtering.IN_NONE)

    def _count_state_rows(self, rows: stored_rows.OldRows) -> np.ndarray:
        """As how many rows of state each counts: lists as their elements. Raises Undecodable."""
        lists = {variable.name for variable in self.operator.variables if variable.kind == _LIST}
        several = rows.family is not None and (rows.family in lists or rows.family.endswith(TIMED_ROWS))
        sizes: np.ndarray = np.ones(len(rows), np.int64)
        if isinstance(rows, stored_rows.HdfsRows) or not several:
            return sizes
        parts = split_elements
        if self.avro:
            parts = partial(elements, generations=range(self._find_form(rows).generation + 1))
        sizes = np.fromiter((len(parts(value)) for _, value in rows.pairs), np.int64, len(rows))
        return sizes

    def _decode_keys(self, rows: stored_rows.OldRows) -> pa.StructArray:
        return rows.decode_keys(self._find_form(rows), avro=self.avro)

    def _find_form(self, rows: stored_rows.OldRows) -> stored_rows.StoredForm:
        form = self.forms.get(rows.family or self.store.name)
        if form is None:
            raise Undecodable(f"no state schema describes the column family {rows.family}")
        return form


def name_keys(keys: pa.StructArray) -> list[str]:
    """Name keys as JSON."""
    return [json.dumps(key, ensure_ascii=False) for key in make_plain(keys)]


class StoreInPartition(NamedTuple):
    """One store in one partition."""

    operator: int
    store: str
    partition: int
    checkpoint: int = 0  # the place of the old one among those that are merged


class TaskOutcome(NamedTuple):
    """The files that came of a task, or the bytes of those it has written; and what was counted."""

    files: Mapping[str, bytes | int] | None  # None: a partition was divided, and no file made yet
    tally: Tally


def _name_piece(checkpoint: int, *, planned: bool) -> list[str]:
    """Name the columns of a piece: rows of one of the checkpoints, before or after the batch that is planned."""
    return [f"{column} {checkpoint} {planned}" for column in ("keys", "values", "groups")]


@dataclass
class StateRewriting(StateWriting):
    """The state of old checkpoints that becomes that of a new one."""

    old: tuple[tuple[ChosenState, Form], ...]  # each old checkpoint, and how it keeps state
    state: NewState
    keys: tuple[Key, ...] = ()  # that are left out
    where: str | tuple[str, ...] | None = None  # which are kept; several: of all new checkpoints, this one first
    reshapings: Mapping[tuple[int, str], ColumnReshaping | None] | None = None  # of these stores; None: all stay
    combining: Mapping[tuple[int, str], ColumnReshaping] = field(default_factory=dict)
    """By store how rows of several checkpoints with the same key become one; of others they are refused."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "families": self.families}

    @cached_property
    def stores(self) -> list[dict[tuple[int, str], StoreRewriting]]:
        """The stores that are rewritten, by operator and name; of each checkpoint."""
        every = []
        for chosen, old in self.old:
            leaving = filtering.choose_leaving(chosen, self.keys, self.where)
            stores = {}
            for operator, store in chosen.checkpoint.stores():
                at = operator.id, store.name
                if self.reshapings is None or at in self.reshapings:
                    columns = None if self.reshapings is None else self.reshapings[at]
                    own = leaving.get(operator.id, filtering.NOTHING)
                    grouped = len(self.old) > 1
                    stores[at] = StoreRewriting(chosen, old, self.state, operator, store, own, columns, grouped)
            every.append(stores)
        return every

    @cached_property
    def families(self) -> dict[tuple[int, str], stored_rows.Families]:
        """The column families of each store, those of all old partitions and checkpoints together."""
        numbered = {}
        for at, first in self.stores[0].items():
            has_any = bool(first.store.column_families)
            each = [(stores[at], planned) for stores in self.stores for planned in self.versions] if has_any else []
            files = (store.find_files(planned=planned).values() for store, planned in each)
            numbered[at] = stored_rows.read_families(chain.from_iterable(files))
        return numbered

    def list_targets(self) -> Iterator[StoreInPartition]:
        """Yield every store in every new partition."""
        for at, store in self.stores[0].items():
            yield from (StoreInPartition(*at, partition) for partition in range(store.partitions))

    def list_sources(self) -> Iterator[StoreInPartition]:
        """Yield the old partitions whose rows change their partition."""
        for number, stores in enumerate(self.stores):
            for at, store in stores.items():
                yield from (StoreInPartition(*at, own, number) for own in (store.find_files() if store.spreads else ()))

    @property
    def versions(self) -> tuple[bool, ...]:
        """The versions of each store that are moved: True is the one of the batch that is planned."""
        return (False, True) if self.state.of_planned else (False,)

    def divide(self, task: StoreInPartition) -> Iterator[tuple[int | None, Any]]:
        """The rows of an old partition for the new ones, and what was counted. Raises Undecodable, StorageError."""
        store, tally = self.stores[task.checkpoint][task[:2]], Tally()
        for planned in self.versions:
            moved = [*store.move_rows(task.partition, self.families[task[:2]], tally, planned=planned)]
            places = np.concatenate([np.zeros(0, np.int64), *(places for places, _ in moved)])
            columns = [
                column for column in stored_rows.join_stored(rows for _, rows in moved).columns if column is not None
            ]
            batch = pa.record_batch(columns, names=_name_piece(task.checkpoint, planned=planned)[: len(columns)])
            for partition, piece in stored_rows.divide_batch(batch, places, store.partitions):
                yield self.targets[StoreInPartition(*task[:2], partition)], piece
        yield None, TaskOutcome(None, tally)

    def make(self, task: StoreInPartition, pieces: Iterable[bytes | pa.Buffer]) -> Iterator[TaskOutcome]:
        """The files of a new partition. Raises Undecodable, StorageError."""
        first, families = self.stores[0][task[:2]], self.families[task[:2]]
        parts: dict[str, list[stored_rows.Stored]] = defaultdict(list)
        for batch in map(unpack_batch, pieces):
            parts[batch.schema.names[0]].append(stored_rows.Stored(*batch.columns))
        tally, rows = Tally(), []
        for planned in self.versions:
            of_each = []
            for number, stores in enumerate(self.stores):
                store, own = stores[task[:2]], parts[_name_piece(number, planned=planned)[0]]
                if not store.spreads:
                    own += (rows for _, rows in store.move_rows(task.partition, families, tally, planned=planned))
                of_each.append(stored_rows.join_stored(own))
            rows.append(self._merge_rows(first, of_each, tally))
        if first.reshaping is not None:
            rows, families = [first.reshaping.merge(part) for part in rows], first.reshaping.rename(families)
        files = self.state.make_files(first.operator, first.store, task.partition, rows[0], families, *rows[1:])
        yield TaskOutcome(self.deliver(files), tally)

    def _merge_rows(
        self, first: StoreRewriting, parts: Sequence[stored_rows.Stored], tally: Tally
    ) -> stored_rows.Stored:
        """Join the rows of each checkpoint in a new partition; keys that several have are combined, or counted."""
        operator, store, rows = first.operator, first.store, stored_rows.join_stored(parts)
        shared = stored_rows.find_shared(parts)
        if not len(shared):
            return rows
        if (combining := self.combining.get((operator.id, store.name))) is not None:
            merged = combining.merge(rows)
            tally.rows[operator.id, store.name, None] -= len(rows) - len(merged)
            return merged
        kind = struct_of(list_key_columns(operator, store))
        rocksdb = self.state.provider is Provider.ROCKSDB and rows.groups is None
        groups = [(b"" if rocksdb else VERSION) + group for group in shared.slice(0, _SHOWN).to_pylist()]
        names = name_keys(structs_of(kind, rows_of(groups), "key"))
        feeds = feeds_another(operator, first.chosen.checkpoint.operators)
        own = "and have passed to other operators" if feeds else words("which only {--combine} merges")
        why = words("operator {id} with keys that are in several checkpoints, {own}", id=operator.id, own=own)
        tally.refuse(why, len(shared), names)
        return rows

    def run(self, engine: Exchange | None, jobs: int | None) -> Iterator[TaskOutcome]:
        """Rewrite all stores, by default in ``jobs`` processes of this machine. Raises Undecodable, StorageError.

        None is as many processes as are worth it.
        """
        if engine is None:
            files = [file for own in self.stores for store in own.values() for file in store.find_files().values()]
            engine = ThroughFiles(Processes(count_processes(self.old[0][0], files, jobs, _WORTH_A_PROCESS)))
        return (outcome for _, outcome in engine.exchange(self, [*self.list_sources()], [*self.targets]))


def rewrite_state(
    plan: PlannedRewrite, new: NewCheckpoint, tally: Tally, state: NewState
) -> Iterator[Mapping[str, bytes | int]]:
    """The files of each store in each new partition; ``tally`` counts rows. Raises Undecodable, StorageError."""
    rewrite = plan.rewrite
    old: list[tuple[ChosenState, Form]] = [(plan.chosen, rewrite.old)]
    combining = {}
    if (union := rewrite.union) is not None:
        old += ((other, alone.old) for other, alone in zip(union.chosen[1:], rewrite.merged[1:], strict=True))
        combining = {store: ColumnReshaping(columns, state.provider) for store, columns in union.combining.items()}
    work = StateRewriting(
        new.uri,
        dict(new.own_options),
        new.tasks_write,
        tuple(old),
        state,
        rewrite.keys,
        rewrite.among or rewrite.where,
        combining=combining,
    )
    for outcome in work.run(new.engine, new.jobs):
        tally.add(outcome.tally)
        if outcome.files is not None:
            yield outcome.files
    for dropping in rewrite.leaving.values():
        if isinstance(dropping, filtering.Dropping):
            dropping.seen.update(tally.keys_seen)
    for why, refused in tally.refused.items():
        if new.accept_loss and refused.in_none:
            continue
        more = ", ..." if refused.count > len(refused.names) else ""
        parts = {"rows": plural(refused.count, "row"), "names": one_line(", ".join(refused.names) + more)}
        raise CannotRewrite.of("{rows} of {why}: {names}", why=why, **parts)


def make_evolved_state(
    checkpoint: Checkpoint, plan: StatePlan, made: Placing, options: Mapping[str, str], new: NewCheckpoint
) -> dict[str, int]:
    """Make the state files of a changed query that the old checkpoint lacks, and return their bytes by path.

    Those of new operators have no rows, others have their rows in other columns. Raises CkptError.
    ``options`` are for the file system of the checkpoint.
    """
    made.begin(f"{OFFSETS}/{checkpoint.offsets.latest}")
    sizes: dict[str, int] = {}
    for files in chain(_make_empty(checkpoint, plan), _make_rows(plan, made, options, new)):
        made.take(files)
        sizes |= {path: made.sizes[path] for path in files}
    return sizes


def _make_empty(checkpoint: Checkpoint, plan: StatePlan) -> Iterator[Mapping[str, bytes | int]]:
    """Make the files of operators that have seen no row."""
    context, batch = context_of(checkpoint.offsets, checkpoint.commits), checkpoint.commits.latest
    nothing = stored_rows.make_stored([], []), stored_rows.Families()
    for operator in plan.empty:
        assert context.shuffle_partitions is not None
        assert batch is not None
        state = NewState(context.provider, context.shuffle_partitions, batch, plan.ids, read_file_form(context))
        for store in operator.stores:
            for partition in range(count_partitions(operator, store, state.partitions)):
                yield state.make_files(operator, store, partition, *nothing)


def _make_rows(
    plan: StatePlan, made: Placing, options: Mapping[str, str], new: NewCheckpoint
) -> Iterator[Mapping[str, bytes | int]]:
    """Make the files of stores whose rows get other columns; of one that a task has written, give its bytes."""
    if plan.rows is None or plan.form is None:
        return
    chosen, form = replace(plan.rows, options=options), plan.form
    ids = {old: plan.ids[new] for old, new in plan.numbers.items() if new in plan.ids}
    file_form = read_file_form(context_of_chosen(chosen))
    state = NewState(form.provider, form.partitions, chosen.moment.batch, ids, file_form, numbers=plan.numbers)
    reshapings = {
        store: None if columns is None else ColumnReshaping(columns, form.provider)
        for store, columns in plan.columns.items()
    }
    into = made.storage.uri, dict(made.options), new.tasks_write
    work = StateRewriting(*into, ((chosen, form),), state, reshapings=reshapings)
    yield from (outcome.files for outcome in work.run(new.engine, new.jobs) if outcome.files is not None)
