"""The stores of a new checkpoint, filled with rows that were given: bytes of keys and values, and their partitions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from ckpt import settings
from ckpt.checkpoint.state.rewritable import Form, count_partitions, is_single, recognise_operator
from ckpt.errors import Undecodable
from ckpt.formats.operators import AGGREGATIONS, OperatorName
from ckpt.formats.rows import avro
from ckpt.formats.rows.arrow import fixed
from ckpt.formats.rows.keys import MakeRows, key_blobs, write_versioned_rows
from ckpt.formats.rows.unsafe_writer import memory, rows_from
from ckpt.formats.types import fields_of, name_and_type, named_fields, struct_of
from ckpt.model import Json, Operator, Provider, Store
from ckpt.new.book import BOOK
from ckpt.new.fill.contents import Joined, StoreContent, find_matches, is_timed, make_contents, put_event_times
from ckpt.new.fill.fitting import Misfit, make_struct, replace_elements
from ckpt.new.fill.frames import Taken
from ckpt.new.rewrite.spreading import find_grouping, find_unit_grouping, hash_rows
from ckpt.new.rewrite.stored_rows import Stored, join_stored, make_stored
from ckpt.new.rewrite.stores import Families, StoredForm, list_forms, read_families
from ckpt.new.rewrite.writing import NewState
from ckpt.state.native.store_files import delimiter_of, find_store_files
from ckpt.state.reading.columns import holds_void
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit, UnitKind

_NORMALISED = frozenset(
    {
        *AGGREGATIONS,
        OperatorName.DEDUPLICATION,
        OperatorName.DEDUPLICATION_WITHIN_WATERMARK,
        OperatorName.JOIN,
        OperatorName.SESSIONS,
        None,  # before Spark 4.0 an aggregation or a deduplication
    }
)
"""Operators in whose keys Spark has no -0.0 (``NormalizeFloatingNumbers``); those with functions of users keep it."""
_FLOATS = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}


@dataclass
class Filling:
    """The rows of one operator in one partition that were given, on their way into stores."""

    chosen: Chosen
    old_partitions: int
    new: Form
    operator: Operator
    rows: Sequence[Taken]  # of each unit of the operator
    partition: int
    numbers: dict[tuple[int, str], Families]  # of column families, by store: kept for other partitions
    joined: dict[str, Joined]  # of join sides whose partitions change, by label: likewise

    def make_files(self, store: Store, state: NewState | None) -> Mapping[str, bytes]:
        """Return the files of a store; none where nothing is to be written. Raises CkptError."""
        operator, has_families = self.operator, bool(store.column_families)
        families = self._number_families(store) if has_families else Families()
        count = count_partitions(operator, store, self.new.partitions)
        stored_rows: list[Stored] = []
        places: list[Any] = [np.zeros(0, np.int64)]
        for name, form in list_forms(store).items():
            for taken, content in self._contents.get(name, []):
                number = families.numbers[name].to_bytes(2, "little") if has_families else b""
                keys, values = self._encode_pairs(form, taken, content)
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
    def _contents(self) -> dict[str, list[tuple[Taken, StoreContent]]]:
        """The stored rows, by store or family. Raises CkptError."""
        contents: dict[str, list[tuple[Taken, StoreContent]]] = {}
        for rows in self.rows:
            try:
                for content in self._make_contents(rows):
                    contents.setdefault(content.name, []).append((rows, content))
            except Misfit as misfit:
                raise rows.make_error(misfit) from None
            except KeyError as missing:
                raise Undecodable(f"{rows.unit.label}: no state schema describes {missing.args[0]}") from None
        return contents

    def _make_contents(self, rows: Taken) -> Iterator[StoreContent]:
        operator, unit = self.operator, rows.unit
        forms = [form for store in operator.stores for form in list_forms(store).items()]
        schemas = {name: (form.key, form.value) for name, form in forms}
        columns = _normalise_keys(operator, rows)
        if is_timed(unit):
            columns[0] = put_event_times(unit, columns)
        check_repeated_keys(operator, self.chosen.recorded, unit, columns)
        matched = None
        if unit.kind is UnitKind.SIDE and _has_matched(unit, schemas):
            same = self.old_partitions == self.new.partitions
            only, joined = (self.partition, {}) if same else (None, self.joined)
            matched = find_matches(self.chosen, unit, columns, rows.matched, only, joined)
        delimiter = delimiter_of(self.chosen.recorded)
        normalised = replace(rows, columns=columns, matched=matched)
        own = dict(forms).get(unit.variable or "")
        yield from make_contents(normalised, schemas, delimiter, self._choose_encoder(own.generation if own else 0))

    def _choose_encoder(self, generation: int = 0) -> MakeRows:
        """Return the encoder of rows for RocksDB; in Avro they name a generation of their schema."""
        if not self.operator.variables or self.chosen.recorded.get(settings.ENCODING_FORMAT) != "avro":
            return write_versioned_rows
        return partial(avro.write_rows, generation=generation) if generation else avro.write_rows

    def _encode_pairs(self, form: StoredForm, rows: Taken, content: StoreContent) -> tuple[list[bytes], list[bytes]]:
        """Keys without the number of their family, and values."""
        bare, make = self.new.provider is Provider.HDFS, self._choose_encoder()
        own, values = content.keys, content.values
        keys = rows_from(form.key, own).to_list() if bare else key_blobs(form.key, form.encoder, own, make)
        if content.unique:
            _check_duplicates(keys, rows)
        if not isinstance(values, list):
            encode = self._choose_encoder(form.generation)
            values = rows_from(form.value, values).to_list() if bare else encode(form.value, values, True)
        return keys, values

    def _number_families(self, store: Store) -> Families:
        """The numbers that families have: those of the old store. Raises Undecodable where it lacks a needed one."""
        at = (self.operator.id, store.name)
        if at not in self.numbers:
            self.numbers[at] = read_families(find_store_files(self.chosen, *at))
        families = self.numbers[at]
        for name in self._contents:
            if name not in families.numbers:
                uri, id_ = self.chosen.checkpoint.uri, self.operator.id
                raise Undecodable(BOOK.text("fill_no_number", uri=uri, id=id_, family=name))
        return families


def find_partitions(operator: Operator, store: Store, rows: Taken, count: int) -> Any:
    """The partition of each row of a unit, of ``count`` that the store has, as an int64 array. Raises Undecodable."""
    if is_single(operator, store):
        return np.zeros(len(rows), np.int64)
    key = _normalise_keys(operator, rows)[0]
    columns = find_unit_grouping(operator, rows.unit).take_columns(_key_of(rows.unit), key)
    return hash_rows(columns, len(rows), count)


def _normalise_keys(operator: Operator, rows: Taken) -> list[Any]:
    """The columns of a unit, its keys as Spark compares them."""
    columns = list(rows.columns)
    if recognise_operator(operator) in _NORMALISED:
        columns[0] = _normalise(_key_of(rows.unit), columns[0])
    return columns


def is_keyless(unit: StateUnit) -> bool:
    """Tell whether there is one row, whatever the query has read: of a limit, or of an aggregation without keys."""
    return all(holds_void(kind) for _, kind in named_fields(_key_of(unit)))


def _key_of(unit: StateUnit) -> Json:
    return next(kind for name, kind in named_fields(unit.schema) if name == "key")


def _has_matched(unit: StateUnit, schemas: dict[str, tuple[Json, Json]]) -> bool:
    """Tell whether the rows of a join side are stored with whether they were joined."""
    shown = [kind for name, kind in named_fields(unit.schema) if name == "value"]
    stored = schemas[unit.buffer.name][1] if unit.buffer else None
    return len(fields_of(stored) or ()) > len(fields_of(shown[0]) or ())


def _check_duplicates(keys: list[bytes], rows: Taken) -> None:
    """Raise CkptError for a key that is there twice."""
    if len(set(keys)) == len(keys):
        return
    first_rows: dict[bytes, int] = {}
    for row, key in enumerate(keys):
        if (first := first_rows.setdefault(key, row)) != row:
            raise rows.make_error(Misfit(row, "its key is that of", first))


def _normalise(kind: Json, array: Any) -> Any:
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


def check_repeated_keys(operator: Operator, recorded: Mapping[str, str], unit: StateUnit, columns: list[Any]) -> None:
    """Raise Misfit for a row whose value says another key than its own.

    Values of session windows begin with the session and what it is grouped by, those of aggregations in state format 1
    with the key. ``recorded`` are the settings in the offsets, ``columns`` key and value.
    """
    if recognise_operator(operator) == OperatorName.SESSIONS:
        _check_columns(unit, columns, 1)
        _check_equal(columns[0].field(columns[0].type.num_fields - 1), columns[1].field(0).field(0), "timestamp")
    elif operator.name == OperatorName.AGGREGATION and recorded.get(settings.AGGREGATION_FORMAT) == "1":
        _check_columns(unit, columns, 0)


def _check_columns(unit: StateUnit, columns: list[Any], first: int) -> None:
    """From which column on the value repeats the key."""
    key, value = (list(named_fields(kind)) for _, kind in named_fields(unit.schema))
    for ordinal, (name, kind) in enumerate(key[: len(key) - first]):
        at = ordinal + first
        if at >= len(value) or _describe_field(value[at]) != _describe_field((name, kind)):
            raise Undecodable(f"{unit.label}: its values are not those that ckpt knows of {unit.operator_name}")
        _check_equal(columns[0].field(ordinal), columns[1].field(at), kind)


def _describe_field(field: tuple[str, Json]) -> tuple[str, str]:
    return name_and_type({"name": field[0], "type": field[1]})


def _check_equal(own: Any, other: Any, kind: Json) -> None:
    rows = struct_of([("key", kind)])
    both = (rows_from(rows, make_struct(rows, [column])).to_list() for column in (own, other))
    for row, (first, second) in enumerate(zip(*both, strict=True)):
        if first != second:
            raise Misfit(row, "its value repeats the key, but the two differ")
