"""The stores of a new checkpoint, filled with rows that were given: bytes of keys and values, and their partitions."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ckpt import settings
from ckpt.copies.fill.contents import StoreContent, UnitRows, make_contents
from ckpt.copies.fill.errors import Misfit
from ckpt.copies.fill.fitting import make_struct, replace_elements
from ckpt.copies.fill.join_matches import Joined, find_matches
from ckpt.copies.fill.repeated_keys import check_repeated_keys
from ckpt.copies.fill.rows import Taken
from ckpt.copies.rewrite.plan import Rewrite
from ckpt.copies.rewrite.spreading import count_partitions, find_grouping, find_unit_grouping, hash_rows, is_single
from ckpt.copies.rewrite.stored_rows import Stored, join_stored, make_stored
from ckpt.copies.rewrite.stores import Families, read_families
from ckpt.copies.rewrite.writing import NewState
from ckpt.formats.operators import OperatorName
from ckpt.formats.rows import avro
from ckpt.formats.rows.arrow import fixed
from ckpt.formats.rows.errors import Undecodable
from ckpt.formats.rows.keys import MakeRows, encoder_with_prefix, key_blobs, write_versioned_rows
from ckpt.formats.rows.unsafe_writer import memory, rows_from
from ckpt.formats.types import fields_of, named_fields
from ckpt.model import Json, Operator, Provider, Store
from ckpt.state.native.layout import delimiter_of
from ckpt.state.native.store_files import find_store_files
from ckpt.state.reading.columns import holds_void
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit, UnitKind

_NORMALISED = frozenset(
    {
        OperatorName.AGGREGATION,
        OperatorName.DEDUPLICATION,
        OperatorName.DEDUPLICATION_WITHIN_WATERMARK,
        OperatorName.JOIN,
        OperatorName.SESSIONS,
    }
)
"""Operators in whose keys Spark has no -0.0 (``NormalizeFloatingNumbers``); those with functions of users keep it."""
_FLOATS = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}


@dataclass(frozen=True, slots=True)
class _Stored:
    """How a store or column family holds its rows."""

    key: Json
    value: Json
    encoder: Json  # of keys in RocksDB
    evolved: bool = False


@dataclass(slots=True)
class Filling:
    """The rows of one partition that were given, on their way into stores."""

    chosen: Chosen
    found: Rewrite
    rows: Mapping[str, Taken]  # of each unit, by label
    partition: int
    counts: dict[str, int] = field(default_factory=dict)  # rows of each unit that was filled, by label
    numbers: dict[tuple[int, str], Families] = field(default_factory=dict)  # of column families, by store
    joined: dict[str, Joined] = field(default_factory=dict)  # of join sides whose partitions change, by label
    _filled: dict[int, dict[str, list[tuple[Taken, StoreContent]]]] = field(
        default_factory=dict
    )  # of the operator at hand

    def make_files(self, operator: Operator, store: Store, state: NewState | None) -> Mapping[str, bytes]:
        """Return the files of a store; none where nothing is to be written. Raises CkptError."""
        stored_as, contents = _stored(store), self._group_contents(operator)
        families = self._number_families(operator, store, contents) if store.column_families else Families()
        count = count_partitions(operator, store, self.found.new.partitions)
        stored_rows: list[Stored] = []
        places: list[Any] = [np.zeros(0, np.int64)]
        for name, how in stored_as.items():
            for taken_rows, content in contents.get(name, []):
                number = families.numbers[name].to_bytes(2, "little") if store.column_families else b""
                keys, values = self._encode_pairs(how, taken_rows, content, self._choose_encoder(operator, how))
                stored_rows.append(make_stored([number + key for key in keys], values))
                places.append(self._find_partitions(operator, store, how, content, count))
        if (np.concatenate(places) != self.partition).any():
            raise Undecodable(f"operator {operator.id}: ckpt does not know how it spreads the rows of {store.name}")
        return state.make_files(operator, store, self.partition, join_stored(stored_rows), families) if state else {}

    def _group_contents(self, operator: Operator) -> dict[str, list[tuple[Taken, StoreContent]]]:
        """Return what is stored for an operator, by store or family."""
        if operator.id not in self._filled:
            self._filled.clear()
            contents = self._filled[operator.id] = {}
            for unit in self.chosen.units:
                if unit.operator == operator.id and not unit.shown_elsewhere:
                    rows = self.rows[unit.label]
                    self.counts[unit.label] = len(rows)
                    for content in _apply_to_row(rows, partial(self._list_contents, operator, rows)):
                        contents.setdefault(content.name, []).append((rows, content))
        return self._filled[operator.id]

    def _list_contents(self, operator: Operator, rows: Taken) -> list[StoreContent]:
        try:
            return list(self._make_contents(operator, rows))
        except KeyError as missing:
            raise Undecodable(f"{rows.unit.label}: no state schema describes {missing.args[0]}") from None

    def _make_contents(self, operator: Operator, rows: Taken) -> Iterator[StoreContent]:
        schemas = {
            name: (family.key, family.value) for store in operator.stores for name, family in _stored(store).items()
        }
        columns = _normalise_keys(operator, rows)
        check_repeated_keys(operator, self.chosen.recorded, rows.unit, columns)
        matched = None
        if rows.unit.kind is UnitKind.SIDE and _has_matched(rows.unit, schemas):
            same = self.found.old.partitions == self.found.new.partitions
            only, joined = (self.partition, {}) if same else (None, self.joined)
            matched = find_matches(self.chosen, rows.unit, columns, rows.matched, only, joined)
        delimiter = delimiter_of(self.chosen.recorded)
        yield from make_contents(
            UnitRows(rows.unit, columns, matched), schemas, delimiter, self._choose_encoder(operator)
        )

    def _choose_encoder(self, operator: Operator, how: _Stored | None = None) -> MakeRows:
        """Return the encoder of rows for RocksDB. Raises Undecodable."""
        if not operator.variables or self.chosen.recorded.get(settings.ENCODING_FORMAT) != "avro":
            return write_versioned_rows
        if how is not None and how.evolved:
            raise Undecodable(f"operator {operator.id}: its state schema has changed, and is encoded as Avro")
        return avro.write_rows

    def _encode_pairs(
        self, how: _Stored, rows: Taken, content: StoreContent, make: MakeRows
    ) -> tuple[list[bytes], list[bytes]]:
        """Keys without the number of their family, and values."""
        bare = self.found.new.provider is Provider.HDFS
        own = content.keys
        keys = rows_from(how.key, own).to_list() if bare else key_blobs(how.key, how.encoder, own, make)
        if content.unique:
            _apply_to_row(rows, partial(_check_duplicates, keys))
        values = content.values
        if not isinstance(values, list):
            values = rows_from(how.value, values).to_list() if bare else make(how.value, values, True)
        return keys, values

    def _find_partitions(
        self, operator: Operator, store: Store, how: _Stored, content: StoreContent, count: int
    ) -> Any:
        """The partition of each row, as an int64 array."""
        if is_single(operator, store):
            return np.zeros(len(content.keys), np.int64)
        family = content.name if store.column_families else None
        columns = find_grouping(operator, store, family).take_columns(how.key, content.keys)
        return hash_rows(columns, len(content.keys), count)

    def _number_families(self, operator: Operator, store: Store, needed: Collection[str]) -> Families:
        """The numbers that families have: those of the old store. Raises Undecodable where it lacks a needed one."""
        if (operator.id, store.name) not in self.numbers:
            self.numbers[operator.id, store.name] = read_families(
                find_store_files(self.chosen, operator.id, store.name)
            )
        families = self.numbers[operator.id, store.name]
        missing = [name for name in needed if name not in families.numbers]
        if missing:
            raise Undecodable(
                f"{self.chosen.checkpoint.uri}: no snapshot of operator {operator.id} says which number the column "
                f"family {missing[0]} has"
            )
        return families


def find_partitions(operator: Operator, store: Store, rows: Taken, count: int) -> Any:
    """The partition of each row of a unit, of ``count`` that the store has, as an int64 array. Raises Undecodable."""
    if is_single(operator, store):
        return np.zeros(len(rows), np.int64)
    key = _normalise_keys(operator, rows)[0]
    columns = find_unit_grouping(operator).take_columns(_key_of(rows.unit), key)
    return hash_rows(columns, len(rows), count)


def _normalise_keys(operator: Operator, rows: Taken) -> list[Any]:
    """The columns of a unit, its keys as Spark compares them."""
    columns = list(rows.columns)
    if operator.name in _NORMALISED:
        columns[0] = _normalise(_key_of(rows.unit), columns[0])
    return columns


def _apply_to_row(rows: Taken, do: Callable[[], Any]) -> Any:
    """Return what a row gives; a row that is refused is named."""
    try:
        return do()
    except Misfit as misfit:
        raise rows.make_error(misfit) from None


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


def _stored(store: Store) -> dict[str, _Stored]:
    if store.column_families:
        return {
            family.name: _Stored(family.key_schema, family.value_schema, family.key_encoder, family.evolved)
            for family in store.column_families
        }
    return {store.name: _Stored(store.key_schema, store.value_schema, encoder_with_prefix(store.prefix_columns))}


def _check_duplicates(keys: list[bytes]) -> None:
    """Raise Misfit for a key that is there twice."""
    if len(set(keys)) == len(keys):
        return
    first_rows: dict[bytes, int] = {}
    for row, key in enumerate(keys):
        if (first := first_rows.setdefault(key, row)) != row:
            raise Misfit(row, "its key is that of", first)


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
