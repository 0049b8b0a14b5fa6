"""Rows that are left out of a new checkpoint: ``ckpt rewrite --where`` and ``--drop-keys``.

Rows that belong together go together. Where an operator keeps all of a key in one row, each row is judged alone, by its
key and value. A join keeps rows of two sides and their counts, transformWithState variables, timers and TTL indexes:
there the columns of the grouping key decide about everything that the key has.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ckpt.checkpoint.state.rewritable import is_single
from ckpt.errors import Undecodable, UsageError
from ckpt.formats.operators import OperatorName
from ckpt.formats.rows.arrow import structs
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.types import fields_of, named_fields, struct_of
from ckpt.model import Json, Operator
from ckpt.new.book import BOOK
from ckpt.new.rewrite.condition import Condition, can_take, join_names, match_columns, parse_condition
from ckpt.new.rewrite.spreading import Column, list_key_columns
from ckpt.new.rewrite.stored_rows import HdfsRows, RocksDBRows
from ckpt.state.native.entries import NOT_AS_WRITTEN, flat_schema, flatten_batch, make_raw
from ckpt.state.native.lookup import parse_typed
from ckpt.state.native.store_files import UnitLayout, layout_of
from ckpt.state.reading.columns import Column as FlatColumn, Columns, columns_of as columns_of_unit, flat_columns
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit
from ckpt.storage.local import ends

Key: TypeAlias = Mapping[str, str | None]
"""Columns of a grouping key and their values as text, as of ``state_show``; None is NULL."""

_PREFIX = "key_"  # of the flat shape
_NAN, _OTHER = object(), object()


Values: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Dropping:
    """The rows of one operator that are left out."""

    values: Mapping[tuple[str, ...], Mapping[Values, Sequence[int]]]
    """By the names of columns, then by their values: the places of the keys that have them."""
    seen: set[int] = field(default_factory=set)  # the places of those keys that a row has had

    @property
    def applies(self) -> bool:
        """True if any key can be one of the operator."""
        return bool(self.values)

    @property
    def of_keys(self) -> bool:
        """True if keys are left out, with everything that is kept for them."""
        return self.applies

    def find_left_out(self, rows: Sized, key: Iterable[Column], partition: int) -> np.ndarray:
        """Tell of each row whether it is left out, as a boolean array of numpy; ``key`` is the grouping key."""
        leaves = {name: array for name, _, array in _list_leaves(key)} if self.values else {}
        is_left_out: np.ndarray = np.zeros(len(rows), bool)
        for names, wanted in self.values.items():
            there = zip(*(_make_comparable(leaves[name]) for name in names), strict=True)
            for row, keys in enumerate(map(wanted.get, there)):
                if keys is not None:
                    is_left_out[row] = True
                    self.seen.update(keys)
        return is_left_out


NOTHING = Dropping({})


def choose_dropping(kinds: Iterable[tuple[str, Json]], keys: Iterable[Key]) -> Dropping:
    """Choose the keys that can be keys of an operator whose grouping key has these columns.

    Raises UsageError for a value that its column cannot have.
    """
    columns = list(list_leaf_types(kinds))
    types = dict(columns)
    numbers: dict[tuple[str, ...], dict[Values, list[int]]] = {}
    for number, key in enumerate(keys):
        named = _match_key(key, types)
        if named is not None:
            values = tuple(_parse_value(name, types[name], text) for name, text in named.items())
            numbers.setdefault(tuple(named), {}).setdefault(values, []).append(number)
    for name in {name for names in numbers for name in names}:
        if sum(name == column for column, _ in columns) > 1:
            raise UsageError.of("{--drop-keys}: two columns of the key are called {name}", name=name)
    return Dropping(numbers)


def check_known(keys: Iterable[Key], operators: Mapping[str, Sequence[tuple[str, Json]]]) -> None:
    """Raise UsageError for a key that no operator can have; ``operators`` are labels and columns of grouping keys."""
    known = {label: dict(list_leaf_types(kinds)) for label, kinds in operators.items()}
    for key in keys:
        if not key or all(_match_key(key, columns) is None for columns in known.values()):
            there = "; ".join(f"{label}: {join_names(columns)}" for label, columns in known.items())
            raise UsageError(BOOK.text("drop_keys_no_operator", names=join_names(key), there=there))


def _match_key(key: Key, columns: Mapping[str, Json]) -> dict[str, str | None] | None:
    """The columns that are meant, and their values; None where one of them is not there.

    Raises UsageError where one is given with ``key_`` and without.
    """
    texts: dict[str, str | None] = {}
    for name, text in key.items():
        known = next((spelling for spelling in (name, name.removeprefix(_PREFIX)) if spelling in columns), None)
        if known is None:
            return None
        if known in texts:
            raise UsageError.of("{--drop-keys}: a key has two values of {known}", known=known)
        texts[known] = text
    return texts


def list_leaf_types(kinds: Iterable[tuple[str, Json]]) -> Iterator[tuple[str, Json]]:
    """Names and types of columns; those in structs by their path, joined by ``_`` as in the flat shape."""
    for name, kind in kinds:
        if fields_of(kind):
            yield from list_leaf_types((f"{name}_{inner}", own) for inner, own in named_fields(kind))
        else:
            yield name, kind


def read_keys(path: str) -> list[Key]:
    """Keys from a file of JSON objects, one in a line. Raises UsageError, which names the line."""
    try:
        if not ends(path):
            raise UsageError(f"{path}: it is not a file")
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    keys: list[Key] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            key = json.loads(line, object_pairs_hook=_make_object, parse_float=str, parse_int=str, parse_constant=str)
        except (ValueError, RecursionError):
            key = None
        if not isinstance(key, dict) or not key or any(isinstance(value, dict | list) for value in key.values()):
            raise UsageError(f'{path}: line {number} is not a JSON object of columns and values, such as {{"key": 3}}')
        keys.append({name: str(own).lower() if isinstance(own, bool) else own for name, own in key.items()})
    if not keys:
        raise UsageError(f"{path}: it has no key")
    return keys


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises ValueError where it has a name twice, of which JSON would take the last."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError
    return members


def _parse_value(name: str, kind: Json, text: str | None) -> Any:
    return _make_comparable(
        pa.array([None if text is None else parse_typed(name, kind, text, "drop_keys")], arrow_type(kind))
    )[0]


def _make_comparable(array: Any) -> list[Any]:
    """Values that are equal where Spark's are: NaN is, and dates and times may be outside of Python's years."""
    kind = array.type
    if pa.types.is_nested(kind):
        return [None if value else _OTHER for value in array.is_null().to_pylist()]  # none of them can be typed
    if pa.types.is_floating(kind):
        return [_NAN if value is not None and math.isnan(value) else value for value in array.to_pylist()]
    if pa.types.is_temporal(kind) and kind != pa.month_day_nano_interval():
        array = array.view(f"int{kind.bit_width}")
    return list(array.to_pylist())


def _list_leaves(columns: Iterable[Column]) -> Iterator[Column]:
    for name, kind, array in columns:
        if fields_of(kind):
            inside = zip(named_fields(kind), array.flatten(), strict=True)
            yield from _list_leaves((f"{name}_{inner}", own, part) for (inner, own), part in inside)
        else:
            yield name, kind, array


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows of one operator that are kept."""

    condition: Condition
    columns: Columns  # that it uses
    missing: tuple[str, ...]  # that it uses, and the operator does not have: then all rows are kept
    unit: StateUnit | None  # whose rows are judged one by one; None: keys are, with all they have
    layout: UnitLayout | None  # of the unit

    @property
    def applies(self) -> bool:
        """True if the condition decides about anything."""
        return not self.missing

    @property
    def of_keys(self) -> bool:
        """True if the condition decides about keys, with everything that is kept for them."""
        return self.applies and self.unit is None

    def find_left_out(self, rows: HdfsRows | RocksDBRows, key: Sequence[Column], partition: int) -> np.ndarray:
        """Tell of each row whether it is left out, as a boolean array of numpy; ``key`` is the grouping key.

        Raises Undecodable; CkptError where the condition has no result for a row.
        """
        kept: np.ndarray = np.ones(len(rows), bool)
        if not self.applies:
            return ~kept
        if self.unit is None or self.layout is None:
            keys = structs([name for name, _, _ in key], [array for _, _, array in key], len(rows))
            batch = pa.RecordBatch.from_arrays([keys], names=["key"])
        else:
            try:
                batch = make_raw(self.unit, rows.decode_entries(self.layout, partition))
            except NOT_AS_WRITTEN as error:
                raise error if isinstance(error, Undecodable) else Undecodable(str(error)) from None
        kept = self.condition.holds(flatten_batch(self.columns, batch))
        return ~kept


def _is_time(path: tuple[str, ...]) -> bool:
    """Tell whether a column of a key is a time of a window, which is a struct, or of a session."""
    return path[-1] == "sessionStartTime" or (len(path) > 2 and path[-1] in ("start", "end"))


IN_NONE = "for which no condition is true, so that no new checkpoint has them"
IN_SEVERAL = "for which several conditions are true, so that several new checkpoints have them"


@dataclass(frozen=True, slots=True)
class SplitFilter:
    """The rows of one operator that one of several new checkpoints has."""

    filters: tuple[Filter, ...]  # of all new checkpoints, that of this one first

    @property
    def applies(self) -> bool:
        """True if all conditions decide about the operator."""
        return all(each.applies for each in self.filters)

    @property
    def of_keys(self) -> bool:
        """True if the conditions decide about keys, with everything that is kept for them."""
        return any(each.of_keys for each in self.filters)

    @property
    def beyond_sources(self) -> tuple[str, ...]:
        """The columns that rows of a source do not have: values, and times of windows and sessions.

        A new query leaves out by its filter the rows of keys that it does not have; it cannot do so by what state has
        made of several rows.
        """
        columns = {column.name: column.path for each in self.filters for column in each.columns.kept}
        return tuple(sorted(name for name, path in columns.items() if path[0] != "key" or _is_time(path)))

    @property
    def floats(self) -> tuple[str, ...]:
        """The columns of type FLOAT: DuckDB compares one with 0.1 as a FLOAT, Spark as a DOUBLE."""
        return tuple(
            sorted({column.name for each in self.filters for column in each.columns.kept if column.type == "float"})
        )

    def find_each(self, rows: HdfsRows | RocksDBRows, key: Sequence[Column], partition: int) -> list[np.ndarray]:
        """Tell for each new checkpoint which rows it leaves out, as ``Filter.find_left_out``. Raises as it does."""
        return [each.find_left_out(rows, key, partition) for each in self.filters]

    def find_left_out(self, rows: HdfsRows | RocksDBRows, key: Sequence[Column], partition: int) -> np.ndarray:
        """Tell which rows this one leaves out."""
        return self.find_each(rows, key, partition)[0]


def find_strays(left_out: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The rows that are not in exactly one of several new checkpoints: a mask of numpy for each reason."""
    kept: np.ndarray = (~np.array(left_out)).sum(axis=0)
    return {IN_NONE: kept == 0, IN_SEVERAL: kept > 1}


Leaving: TypeAlias = Dropping | Filter | SplitFilter
"""Rows that are left out of an operator: those of some keys, or those for which a condition is not true."""


def make_filters(chosen: Chosen, where: str) -> dict[int, Filter]:
    """Return the filters of a condition, by operator.

    Raises UsageError where it is none, or none on the columns that an operator has; Undecodable where the files do not
    say which columns these are.
    """
    condition = parse_condition(where)
    there = {
        _label(operator): (operator, *_choose_columns(chosen, operator)) for operator in chosen.checkpoint.operators
    }
    filters = {
        operator.id: _make_filter(chosen, condition, label, unit, columns)
        for label, (operator, unit, columns) in there.items()
    }
    if not any(row_filter.applies for row_filter in filters.values()):
        names = (f"{label}: {join_names(column.name for column in columns)}" for label, (*_, columns) in there.items())
        known, wanted = "; ".join(names) or "none", join_names(condition.names)
        raise UsageError(BOOK.text("where_no_operator", names=wanted, there=known))
    return filters


def _label(operator: Operator) -> str:
    return f"operator {operator.id}" + (f" ({operator.name})" if operator.name else "")


def _choose_columns(chosen: Chosen, operator: Operator) -> tuple[StateUnit | None, tuple[FlatColumn, ...]]:
    """The unit whose rows are judged one by one, if that is so; and the columns to judge by."""
    unnamed = operator.name is None and any(is_single(operator, store) for store in operator.stores)
    if operator.name == OperatorName.LIMIT or unnamed:  # without its count a limit lets as many rows pass anew
        return None, ()
    units = [unit for unit in chosen.units if unit.operator == operator.id and not unit.shown_elsewhere]
    families = [family for store in operator.stores for family in store.column_families]
    if len(units) == len(operator.stores) == 1 and not families and not operator.variables:
        return units[0], columns_of_unit(units[0]).kept
    key = struct_of(list_key_columns(operator, operator.stores[0]))
    return None, flat_columns(struct_of([("key", key)])).kept


def _make_filter(
    chosen: Chosen, condition: Condition, label: str, unit: StateUnit | None, columns: Sequence[FlatColumn]
) -> Filter:
    """Apply the condition to one operator. Raises UsageError."""
    used = match_columns(condition.names, {column.name: column for column in columns})
    known = {name.lower() for name in used}
    missing = tuple(name for name in condition.names if name.lower() not in known)
    if not missing:
        for column in used.values():
            if not can_take(column.type):
                own = f"{column.name}, by its type: {column.type}"
                raise UsageError.of("{--where}: for {label}: a condition cannot use {own}", label=label, own=own)
        condition.check(label, flat_schema(Columns(tuple(used.values()), ())))
    layout = layout_of(chosen, unit) if unit and not missing else None
    return Filter(condition, Columns(tuple(used.values()), ()), missing, unit, layout)
