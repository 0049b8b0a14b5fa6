"""Stored form of an operator's rows: the keys and values of each store or column family.

Beside what a unit shows there is what Spark derives from it: how many rows a join side has for a key, when values
expire, timers by time. ``ckpt.state.native.contradictions`` compares the same things.

Whether a row of a join side was joined, Spark's reader leaves out, so it is not in an export: an outer join emits
those that were not when they expire. It is known for rows that the old checkpoint has, and for those that say so in a
column ``matched``; it is never guessed.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ckpt.formats.operators import TTL
from ckpt.formats.rows.arrow import whole
from ckpt.formats.rows.keys import MakeRows
from ckpt.formats.rows.unsafe_writer import rows_from
from ckpt.formats.statefiles import JOIN_COUNTS, TIMED_KEYS, TIMED_ROWS
from ckpt.formats.types import fields_of, named_fields
from ckpt.model import Json
from ckpt.new.fill.frames import MATCHED, UnitRows
from ckpt.new.fitting import Misfit, make_struct
from ckpt.new.rewrite.stored_rows import StoredForm
from ckpt.state.native.entries import entries_of, make_raw
from ckpt.state.native.groups import first_of_each, number_groups, number_occurrences
from ckpt.state.reading.reading import ChosenState
from ckpt.state.reading.units import StateUnit, UnitKind

_LENGTH = 4
_WATERMARK = "spark.watermarkDelayMs"  # in the metadata of a column


@dataclass(frozen=True, slots=True)
class StoreContent:
    """The contents of one store or column family."""

    name: str
    keys: pa.StructArray
    values: pa.StructArray | list[bytes]
    unique: bool = False  # each row of the unit is one of them, and no key may be there twice


@dataclass(frozen=True, slots=True)
class UnitContents:
    """Everything that is stored for the rows of a unit."""

    rows: UnitRows  # keys are as Spark compares them, and ``matched`` is None where it is not stored
    forms: Mapping[str, StoredForm]  # by store or column family
    delimiter: bytes  # between the rows of a list
    make: MakeRows  # encodes the rows of a list

    def __iter__(self) -> Iterator[StoreContent]:
        """Make the contents of each store and column family. Raises Misfit."""
        unit = self.rows.unit
        match unit.kind:
            case UnitKind.SIDE:
                yield from self._make_timed_side() if is_timed(unit) else self._make_join_side()
            case UnitKind.LIST:
                yield from self._make_list()
            case UnitKind.TIMERS:
                yield from self._make_timers()
            case UnitKind.MAP | UnitKind.VALUE:
                *parts, value = self.rows.columns
                name = unit.variable or ""
                key = make_struct(self.forms[name].key, parts) if parts[1:] else parts[0]
                yield StoreContent(name, key, value, unique=True)
                if unit.ttl:
                    yield self._make_index(name, key, _read_expiry_times(name, value))
            case _:
                key, value = self.rows.columns
                yield StoreContent(unit.stores[0], key, value, unique=True)

    def _make_empty(self, name: str, count: int) -> pa.StructArray:
        """Values of an index, which hold nothing."""
        kind = self.forms[name].value
        return make_struct(kind, [pa.nulls(count) for _ in named_fields(kind)], np.ones(count, bool))

    def _make_index(self, variable: str, keys: pa.StructArray, times: pa.Array) -> StoreContent:
        """Return the entries that expire, by time."""
        name = f"$ttl_{variable}"
        return StoreContent(name, make_struct(self.forms[name].key, [times, keys]), self._make_empty(name, len(keys)))

    def _make_timers(self) -> Iterator[StoreContent]:
        key, times = self.rows.columns
        name = next((own for own in self.forms if own.endswith("_keyToTimestamp")), "_keyToTimestamp")
        index = name.replace("_keyToTimestamp", "_timestampToKey")
        for own, columns in ((name, [key, times]), (index, [times, key])):
            keys = make_struct(self.forms[own].key, columns)
            yield StoreContent(own, keys, self._make_empty(own, len(key)), unique=True)

    def _make_list(self) -> Iterator[StoreContent]:
        """A list is one value, its elements in the order of the rows; also their number, and when the first expires."""
        name, (keys, elements) = self.rows.unit.variable or "", self.rows.columns
        groups, own = _group_keys(keys)
        yield StoreContent(name, own, self._join_rows(name, groups, len(own), elements))
        counter = f"$count_{name}" if f"$count_{name}" in self.forms else f"$rowCounter_{name}"
        if counter in self.forms:
            yield self._count_rows(counter, groups, own)
        if self.rows.unit.ttl:
            times = np.full(len(own), np.iinfo(np.int64).max)
            np.minimum.at(times, groups, np.asarray(_read_expiry_times(name, elements)))
            least = whole(pa.int64(), times)
            yield self._make_index(name, own, least)
            yield StoreContent(f"$min_{name}", own, make_struct(self.forms[f"$min_{name}"].value, [least]))

    def _make_timed_side(self) -> Iterator[StoreContent]:
        """Join state format 4: the rows of a key and time are one value, and as many empty rows are found by time.

        ``SymmetricHashJoinStateManagerV4.append``: it keeps those by time where the input has event time.
        """
        name, stored = self._take_side()
        by_time = name.replace(TIMED_ROWS, TIMED_KEYS)
        groups, own = _group_keys(self.rows.columns[0])
        for each, values in ((name, stored), (by_time, self._make_empty(by_time, len(groups)))):
            yield StoreContent(each, own, self._join_rows(each, groups, len(own), values))

    def _make_join_side(self) -> Iterator[StoreContent]:
        """The rows of a key have numbers from 0 on, and how many there are is kept beside them."""
        name, stored = self._take_side()
        keys = self.rows.columns[0]
        groups, own = _group_keys(keys)
        numbers = whole(pa.int64(), number_occurrences(groups))
        yield StoreContent(name, make_struct(self.forms[name].key, [*keys.flatten(), numbers]), stored)
        yield self._count_rows(f"{self.rows.unit.side}-{JOIN_COUNTS}", groups, own)

    def _take_side(self) -> tuple[str, pa.StructArray]:
        """Take the values of a side of a join as they are stored, and the name of their store."""
        name = self.rows.unit.buffer.name if self.rows.unit.buffer else ""
        values, matched = self.rows.columns[1], self.rows.matched
        kind = self.forms[name].value
        return name, values if matched is None else make_struct(kind, [*values.flatten(), matched])

    def _count_rows(self, name: str, groups: np.ndarray, keys: pa.StructArray) -> StoreContent:
        counts = whole(pa.int64(), np.bincount(groups, minlength=len(keys)).astype(np.int64))
        return StoreContent(name, keys, make_struct(self.forms[name].value, [counts]))

    def _join_rows(self, name: str, groups: np.ndarray, count: int, values: pa.StructArray) -> list[bytes]:
        """Encode the value of each of so many keys: the rows of its group, each behind its length."""
        rows_by_key: list[list[bytes]] = [[] for _ in range(count)]
        for group, row in zip(groups.tolist(), self.make(self.forms[name].value, values, True), strict=True):
            rows_by_key[group].append(len(row).to_bytes(_LENGTH, "little") + row)
        return [self.delimiter.join(parts) for parts in rows_by_key]


def _read_expiry_times(variable: str, values: pa.StructArray) -> pa.Array:
    """When values expire, in ms. Raises Misfit for NULL."""
    times = values.field(TTL)
    missing = np.asarray(times.is_null())
    if missing.any():
        raise Misfit(int(np.argmax(missing)), f"{TTL} is NULL, but each value of {variable} has a time to live")
    return times


def _group_keys(keys: pa.StructArray) -> tuple[np.ndarray, pa.StructArray]:
    """For each row the number of its key, counted as they come, and each key once."""
    codes = whole(pa.int64(), number_groups([keys], len(keys)))
    ranks = np.asarray(codes.dictionary_encode().indices).astype(np.int64)
    return ranks, keys.take(whole(pa.int64(), first_of_each(ranks)))


def is_timed(unit: StateUnit) -> bool:
    """Tell whether a unit is a side of a join in state format 4, whose keys have the time of the row."""
    return unit.buffer is not None and unit.buffer.name.endswith((TIMED_ROWS, TIMED_KEYS))


def put_event_times(unit: StateUnit, columns: Sequence[pa.StructArray]) -> pa.StructArray:
    """The keys of a side of a join in state format 4, with the event time of each row, which exports lack.

    ``SymmetricHashJoinStateManagerV4`` takes it from the column of the watermark: of a window it is the end. Raises
    Misfit where that column is not known, or NULL.
    """
    (_, key), (_, value) = named_fields(unit.schema)
    fields = list(named_fields(key))
    of_watermark = [n for n, field in enumerate(fields_of(value) or ()) if _WATERMARK in json.dumps(field)]
    if len(of_watermark) != 1 or "timestamp" in json.dumps([kind for _, kind in fields[:-1]]):
        why = "for joins in state format 4, ckpt only writes those with the time in one value column and not in the key"
        raise Misfit(None, why)
    times = columns[1].flatten()[of_watermark[0]]
    if pa.types.is_struct(times.type):
        times = times.flatten()[1]
    missing = np.asarray(times.is_null())
    if missing.any():
        raise Misfit(int(np.argmax(missing)), "its event time is NULL")
    return make_struct(key, [*columns[0].flatten()[:-1], times.cast(pa.int64())])


Joined: TypeAlias = dict[bytes, list[bool]]
"""Of each row of the old checkpoint whether it was joined, in the order of its numbers."""


def find_matches(
    chosen: ChosenState,
    unit: StateUnit,
    columns: Sequence[pa.StructArray],
    column: pa.BooleanArray,
    only: int | None,
    joined: dict[str, Joined],
) -> pa.BooleanArray:
    """For each row whether it was joined, as booleans without NULL. Raises Misfit where nothing says so.

    ``columns`` are keys and values, ``column`` is what the column ``matched`` says, or NULL; ``only`` is the old
    partition that has all of these keys, where there is one. ``joined`` keeps what was read, by unit.
    """
    if not column.null_count:
        return column
    matched = column.to_pylist()
    own = _encode_rows(unit, columns)
    if unit.label not in joined:
        joined[unit.label] = _read_joined(chosen, unit, only)
    every, known = joined[unit.label], dict[bytes, list[bool]]()
    counts = Counter(name for name, is_matched in zip(own, matched, strict=True) if is_matched is None)
    for row, name in enumerate(own):
        if matched[row] is None:
            flags = known.setdefault(name, [*every.get(name, ())])
            if len(set(flags)) == 1:
                matched[row] = flags[0]
            elif len(flags) == counts[name]:
                matched[row] = flags.pop(0)
                counts[name] -= 1
            else:
                why = "rows like it differ in this" if flags else "the checkpoint has no such row"
                raise Misfit(row, f"it is unknown whether it was already joined ({why}): add a column {MATCHED}")
    return pa.array(matched, pa.bool_())


def _read_joined(chosen: ChosenState, unit: StateUnit, only: int | None) -> Joined:
    numbered: dict[bytes, list[tuple[int, bool]]] = {}
    for entries in entries_of(chosen, unit, only):
        names = _encode_rows(unit, make_raw(unit, entries).columns[:2])
        numbers = np.arange(len(entries.keys)) if is_timed(unit) else entries.keys.flatten()[-1]
        flags = entries.values.flatten()[-1]
        for name, number, flag in zip(names, np.asarray(numbers).tolist(), flags.to_pylist(), strict=True):
            numbered.setdefault(name, []).append((number, flag))
    return {name: [flag for _, flag in sorted(flags)] for name, flags in numbered.items()}


def _encode_rows(unit: StateUnit, columns: Sequence[pa.StructArray]) -> list[bytes]:
    """Rows as bytes that are equal where keys and values are."""
    kinds: list[Json] = [kind for _, kind in named_fields(unit.schema)]
    keys, values = (rows_from(kind, column).to_list() for kind, column in zip(kinds, columns, strict=True))
    return [key + value for key, value in zip(keys, values, strict=True)]
