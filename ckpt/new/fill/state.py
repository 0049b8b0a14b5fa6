"""State made of rows that were given, file by file and partition by partition: for executors that each have some.

A source is a file of the export, a table, or some rows of a DataFrame: which of its rows belong to which partition? A
target is an operator in one partition: all of its rows are checked, and their state is written.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ckpt import settings
from ckpt.checkpoint.state.rewritable import Form, count_partitions, is_single, recognise_operator
from ckpt.errors import Undecodable, UsageError
from ckpt.formats.operators import BY_WHOLE_KEY, RUN_FUNCTIONS, OperatorName
from ckpt.formats.rows import avro
from ckpt.formats.rows.arrow import fixed, whole
from ckpt.formats.rows.keys import MakeRows, key_blobs, write_versioned_rows
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.rows.unsafe_writer import memory, rows_from
from ckpt.formats.types import fields_of, named_fields, struct_of, type_named
from ckpt.model import Json, Operator, Provider, Store
from ckpt.new.book import BOOK
from ckpt.new.exchange import FrameSource, ThroughFiles, unpack_batch
from ckpt.new.fill.contents import Joined, StoreContent, UnitContents, find_matches, is_timed, put_event_times
from ckpt.new.fill.export_folder import Export
from ckpt.new.fill.frames import Frames, UnitRows, check_table, table_of
from ckpt.new.fitting import Misfit, make_struct, replace_elements
from ckpt.new.request import NewCheckpoint
from ckpt.new.rewrite.plan import PlannedRewrite
from ckpt.new.rewrite.spreading import GroupingKey, find_grouping, hash_rows
from ckpt.new.rewrite.stored_rows import (
    Families,
    Stored,
    StoredForm,
    divide_batch,
    join_stored,
    list_forms,
    make_stored,
    read_families,
)
from ckpt.new.rewrite.writing import NewState, StateWriting
from ckpt.processes import Processes
from ckpt.state.native.store_files import delimiter_of, find_store_files
from ckpt.state.reading.columns import holds_void
from ckpt.state.reading.reading import ChosenState
from ckpt.state.reading.units import StateUnit, UnitKind
from ckpt.storage.locations import is_in_memory

_WORTH_A_PROCESS = 2 << 20  # bytes of an export: what takes longer to encode than a process to start
_NORMALISED = BY_WHOLE_KEY - RUN_FUNCTIONS | {OperatorName.JOIN, OperatorName.SESSIONS, None}
"""Operators in whose keys Spark has no -0.0 (``NormalizeFloatingNumbers``); those with functions of users keep it.

None is an aggregation or a deduplication before Spark 4.0.
"""
_FLOATS = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}


class OperatorInPartition(NamedTuple):
    """One operator in one partition: a target."""

    operator: int
    partition: int


class RowsSource(NamedTuple):
    """Rows of a unit: a source, which is a file of the export, or a table in memory."""

    label: str
    order: int  # of the source, among those of the unit
    name: str | None  # of the file, or of the part of a frame
    table: pa.Table | None = None  # None: the file is not read yet
    first: int = 0  # the number of the first row in its part of a frame


@dataclass
class StateImport(StateWriting):
    """Given rows that become the state of a new checkpoint."""

    chosen: ChosenState
    old: Form
    new: Form
    source_name: str
    export: Export | None
    state: NewState | None  # None: rows are only checked
    families: dict[tuple[int, str], Families] = field(default_factory=dict)
    """The numbers of column families that the old stores have, of those that were asked for already."""
    joined: dict[str, Joined] = field(default_factory=dict)
    """Of join sides whose partitions change, by label: what was read for one partition, kept for others."""

    @cached_property
    def units(self) -> dict[str, StateUnit]:
        """The units of state by their label."""
        return {unit.label: unit for unit in self.chosen.units if not unit.shown_elsewhere}

    @cached_property
    def operators(self) -> dict[int, list[tuple[Operator, Store]]]:
        """The stores of each operator."""
        return {
            number: [*stores] for number, stores in groupby(self.chosen.checkpoint.stores(), lambda store: store[0].id)
        }

    def list_targets(self) -> Iterator[OperatorInPartition]:
        """Yield every operator in every partition."""
        for operator, stores in self.operators.items():
            for partition in range(count_partitions(*stores[0], self.new.partitions)):
                yield OperatorInPartition(operator, partition)

    def divide(self, source: RowsSource) -> Iterator[tuple[int, bytes]]:
        """Rows of a source by the operators and partitions that they belong to. Raises CkptError.

        Each piece has the name of the file that its rows were in, and their places there.
        """
        label, order, name, table, first = source
        exported = None
        if self.export is not None and name is not None:
            table, exported = self.export.read_file(label, name), self.export.units[label].columns
        rows = check_table(self.source_name, self.units[label], exported, name, table)
        operator, store = self.operators[rows.unit.operator][0]
        count = count_partitions(operator, store, self.new.partitions)
        columns = [*rows.columns, rows.matched, whole(pa.int64(), np.arange(len(rows)) + first)]
        kinds = {str(at): column.type for at, column in enumerate(columns)}
        batch = pa.record_batch(columns, schema=pa.schema(kinds, {"of": json.dumps([label, order, name])}))
        for partition, piece in divide_batch(batch, find_partitions(operator, store, rows, count), count):
            yield self.targets[OperatorInPartition(operator.id, partition)], piece

    def make(
        self, target: OperatorInPartition, pieces: Iterable[bytes | pa.Buffer]
    ) -> Iterator[tuple[Mapping[str, bytes | int], Mapping[str, int]]]:
        """The files of each store of an operator in one partition, or their bytes; and once the rows of each unit.

        Raises CkptError.
        """
        rows = self._gather_rows(target.operator, pieces)
        counts = {own.unit.label: len(own) for own in rows}
        stores = self.operators[target.operator]
        encoding = _PartitionEncoding(self, stores[0][0], rows, target.partition)
        for number, (_, store) in enumerate(stores):
            yield self.deliver(encoding.make_files(store)), {} if number else counts

    def number_families(self, operator: Operator, store: Store, names: Iterable[str]) -> Families:
        """The numbers that families have: those of the old store. Raises Undecodable where it lacks a needed one."""
        at = (operator.id, store.name)
        if at not in self.families:
            self.families[at] = read_families(find_store_files(self.chosen, *at))
        families = self.families[at]
        for name in names:
            if name not in families.numbers:
                uri = self.chosen.checkpoint.uri
                raise Undecodable(BOOK.text("fill_no_number", uri=uri, id=operator.id, family=name))
        return families

    def _gather_rows(self, operator: int, pieces: Iterable[bytes | pa.Buffer]) -> list[UnitRows]:
        """The rows of an operator's units in one partition, in the order in which they were given."""
        parts: dict[str, list[tuple[int, str | None, pa.RecordBatch]]] = defaultdict(list)
        for piece in pieces:
            batch = unpack_batch(piece)
            label, order, name = json.loads(batch.schema.metadata[b"of"])
            parts[label].append((order, name, batch))
        gathered = []
        for label, unit in self.units.items():
            if unit.operator != operator:
                continue
            ordered = sorted(parts[label], key=lambda part: (part[0], part[2].columns[-1][0].as_py()))
            if ordered:
                *columns, matched, _ = (
                    pa.concat_arrays(own) for own in zip(*(batch.columns for *_, batch in ordered), strict=True)
                )
            else:
                columns = [pa.array([], arrow_type(kind)) for _, kind in named_fields(unit.schema)]
                matched = pa.array([], pa.bool_())
            places = [(name, np.asarray(batch.columns[-1])) for _, name, batch in ordered]
            gathered.append(UnitRows(unit, columns, matched, self.source_name, places))
        return gathered


@dataclass
class _PartitionEncoding:
    """The given rows of one operator in one partition, encoded as its stores hold them."""

    work: StateImport
    operator: Operator
    rows: Sequence[UnitRows]  # of each unit of the operator
    partition: int

    def make_files(self, store: Store) -> Mapping[str, bytes]:
        """Return the files of a store; none where nothing is to be written. Raises CkptError."""
        operator, has_families, state = self.operator, bool(store.column_families), self.work.state
        families = self.work.number_families(operator, store, self._contents) if has_families else Families()
        count = count_partitions(operator, store, self.work.new.partitions)
        stored_rows: list[Stored] = []
        places: list[np.ndarray] = [np.zeros(0, np.int64)]
        for name, form in list_forms(store).items():
            for rows, content in self._contents.get(name, []):
                number = families.numbers[name].to_bytes(2, "little") if has_families else b""
                keys, values = self._encode_pairs(form, rows, content)
                stored_rows.append(make_stored([number + key for key in keys], values))
                if is_single(operator, store):
                    places.append(np.zeros(len(keys), np.int64))
                else:
                    grouping = find_grouping(operator, store, name if has_families else None)
                    places.append(hash_rows(grouping.take_columns(form.key, content.keys), len(keys), count))
        if (np.concatenate(places) != self.partition).any():
            raise Undecodable(f"operator {operator.id}: ckpt does not know how it partitions the rows of {store.name}")
        return state.make_files(operator, store, self.partition, join_stored(stored_rows), families) if state else {}

    @cached_property
    def _contents(self) -> dict[str, list[tuple[UnitRows, StoreContent]]]:
        """The stored rows, by store or family. Raises CkptError."""
        contents: dict[str, list[tuple[UnitRows, StoreContent]]] = {}
        for rows in self.rows:
            try:
                for content in self._make_contents(rows):
                    contents.setdefault(content.name, []).append((rows, content))
            except Misfit as misfit:
                raise rows.make_error(misfit) from None
            except KeyError as missing:
                raise Undecodable(f"{rows.unit.label}: no state schema describes {missing.args[0]}") from None
        return contents

    def _make_contents(self, rows: UnitRows) -> Iterator[StoreContent]:
        operator, unit = self.operator, rows.unit
        forms = dict(form for store in operator.stores for form in list_forms(store).items())
        columns = _normalise_keys(operator, rows)
        if is_timed(unit):
            columns[0] = put_event_times(unit, columns)
        check_repeated_keys(operator, self.work.chosen.recorded, unit, columns)
        matched = None
        if unit.kind is UnitKind.SIDE and _has_matched(unit, forms):
            same = self.work.old.partitions == self.work.new.partitions
            only, joined = (self.partition, {}) if same else (None, self.work.joined)
            matched = find_matches(self.work.chosen, unit, columns, rows.matched, only, joined)
        delimiter = delimiter_of(self.work.chosen.recorded)
        normalised = replace(rows, columns=columns, matched=matched)
        own = forms.get(unit.variable or "")
        yield from UnitContents(normalised, forms, delimiter, self._choose_encoder(own.generation if own else 0))

    def _choose_encoder(self, generation: int = 0) -> MakeRows:
        """Return the encoder of rows for RocksDB; in Avro they name a generation of their schema."""
        if not self.operator.variables or self.work.chosen.recorded.get(settings.ENCODING_FORMAT) != "avro":
            return write_versioned_rows
        return partial(avro.write_rows, generation=generation) if generation else avro.write_rows

    def _encode_pairs(self, form: StoredForm, rows: UnitRows, content: StoreContent) -> tuple[list[bytes], list[bytes]]:
        """Keys without the number of their family, and values."""
        bare, make = self.work.new.provider is Provider.HDFS, self._choose_encoder()
        own, values = content.keys, content.values
        keys = rows_from(form.key, own).to_list() if bare else key_blobs(form.key, form.encoder, own, make)
        if content.unique:
            _check_duplicates(keys, rows)
        if not isinstance(values, list):
            encode = self._choose_encoder(form.generation)
            values = rows_from(form.value, values).to_list() if bare else encode(form.value, values, True)
        return keys, values


def make_state(
    plan: PlannedRewrite,
    new: NewCheckpoint,
    source: Export | Frames,
    counts: Counter[str],
    state: NewState | None,
) -> Iterator[Mapping[str, bytes | int]]:
    """Check all rows and, unless ``state`` is None, make their files, or have tasks write them: then their bytes.

    ``counts`` gets the rows of each unit. Raises CkptError.
    """
    chosen, _, rewrite = plan
    engine = new.engine or ThroughFiles(Processes(_count_processes(chosen, source, new.jobs)))
    export = source if isinstance(source, Export) else None
    into, forms = (new.uri, dict(new.own_options), new.tasks_write), (rewrite.old, rewrite.new)
    work = StateImport(*into, chosen, *forms, source.place, export, state)
    sources: list[RowsSource] = []
    frames = []
    for label in work.units:
        if isinstance(source, Export):
            sources += (RowsSource(label, order, name) for order, name in enumerate(source.list_files(label)))
        elif hasattr(frame := source.units[label], "mapInArrow"):
            frames.append(FrameSource(frame, partial(_wrap_batch, label)))
        else:
            sources.append(RowsSource(label, 0, None, table_of(frame)))
    for _, (files, rows) in engine.exchange(work, sources, [*work.targets], frames):
        counts.update(rows)
        yield files


def _count_processes(chosen: ChosenState, source: Export | Frames, jobs: int | None) -> int:
    """How many processes pay for an export; frames in memory stay in this one. Raises UsageError."""
    if jobs is not None and jobs < 1:
        raise UsageError.of("{--jobs} must be at least 1")
    if isinstance(source, Frames) or any(map(is_in_memory, (source.place, chosen.question.checkpoint))):
        return 1
    return max(min(jobs or os.cpu_count() or 1, source.listing.bytes // _WORTH_A_PROCESS), 1)


def _wrap_batch(label: str, partition: int, first: int, batch: pa.RecordBatch) -> RowsSource:
    name, table = f"partition {partition} of the DataFrame", pa.Table.from_batches([batch])
    return RowsSource(label, partition, name, table, first)


def find_partitions(operator: Operator, store: Store, rows: UnitRows, count: int) -> np.ndarray:
    """The partition of each row of a unit, of ``count`` that the store has, as an int64 array. Raises Undecodable."""
    if is_single(operator, store):
        return np.zeros(len(rows), np.int64)
    key = _normalise_keys(operator, rows)[0]
    ends_in_time = recognise_operator(operator) == OperatorName.SESSIONS or is_timed(rows.unit)
    grouping = GroupingKey((), -1 if ends_in_time else None)
    return hash_rows(grouping.take_columns(type_named(rows.unit.schema, "key"), key), len(rows), count)


def _normalise_keys(operator: Operator, rows: UnitRows) -> list[pa.StructArray]:
    """The columns of a unit, its keys as Spark compares them."""
    columns = list(rows.columns)
    if recognise_operator(operator) in _NORMALISED:
        columns[0] = _normalise(type_named(rows.unit.schema, "key"), columns[0])
    return columns


def is_keyless(unit: StateUnit) -> bool:
    """Tell whether there is one row, whatever the query has read: of a limit, or of an aggregation without keys."""
    return all(holds_void(kind) for _, kind in named_fields(type_named(unit.schema, "key")))


def _has_matched(unit: StateUnit, forms: Mapping[str, StoredForm]) -> bool:
    """Tell whether the rows of a join side are stored with whether they were joined."""
    shown, stored = type_named(unit.schema, "value"), forms[unit.buffer.name].value if unit.buffer else None
    return len(fields_of(stored) or ()) > len(fields_of(shown) or ())


def _check_duplicates(keys: list[bytes], rows: UnitRows) -> None:
    if len(set(keys)) == len(keys):
        return
    first_rows: dict[bytes, int] = {}
    for row, key in enumerate(keys):
        if (first := first_rows.setdefault(key, row)) != row:
            raise rows.make_error(Misfit(row, "its key is that of", first))


def _normalise(kind: Json, array: pa.Array) -> pa.Array:
    """Values as Spark compares keys: zero has one sign, and NaN one form."""
    there = np.asarray(array.is_valid())
    if fields_of(kind):
        parts = zip(named_fields(kind), array.flatten(), strict=True)
        return make_struct(kind, [_normalise(own, part) for (_, own), part in parts], there)
    if isinstance(kind, dict) and kind.get("type") == "array":
        whole = array.take(pa.array(range(len(array)), pa.int64()))
        return replace_elements(whole, _normalise(kind.get("elementType"), whole.values))
    if isinstance(kind, str) and kind in _FLOATS:
        values = memory(array, _FLOATS[kind]) + _FLOATS[kind].type(0)
        values[np.isnan(values)] = np.nan
        return fixed(array.type, values, ~there)
    return array


def check_repeated_keys(
    operator: Operator, recorded: Mapping[str, str], unit: StateUnit, columns: list[pa.StructArray]
) -> None:
    """Raise Misfit for a row whose value says another key than its own.

    Values of session windows begin with the session and what it is grouped by, those of aggregations in state format 1
    with the key. ``recorded`` are the settings in the offsets, ``columns`` key and value.
    """
    if recognise_operator(operator) == OperatorName.SESSIONS:
        _check_columns(unit, columns, 1)
        _check_equal(columns[0].field(columns[0].type.num_fields - 1), columns[1].field(0).field(0), "timestamp")
    elif operator.name == OperatorName.AGGREGATION and recorded.get(settings.AGGREGATION_FORMAT) == "1":
        _check_columns(unit, columns, 0)


def _check_columns(unit: StateUnit, columns: list[pa.StructArray], first: int) -> None:
    """From which column on the value repeats the key."""
    key, value = (list(named_fields(kind)) for _, kind in named_fields(unit.schema))
    for ordinal, (name, kind) in enumerate(key[: len(key) - first]):
        at = ordinal + first
        if at >= len(value) or value[at] != (name, kind):
            raise Undecodable(f"{unit.label}: ckpt does not know the values of this {unit.operator_name}")
        _check_equal(columns[0].field(ordinal), columns[1].field(at), kind)


def _check_equal(own: pa.Array, other: pa.Array, kind: Json) -> None:
    rows = struct_of([("key", kind)])
    both = (rows_from(rows, make_struct(rows, [column])).to_list() for column in (own, other))
    for row, (first, second) in enumerate(zip(*both, strict=True)):
        if first != second:
            raise Misfit(row, "its value repeats the key, but the two differ")
