"""Keys that are looked for: what was typed, as values of the key's columns, and in which partition they can be."""

import base64
import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from math import isnan
from typing import Any

import pyarrow as pa

from ckpt.advice import Option
from ckpt.errors import Undecodable, UsageError
from ckpt.formats.operators import BY_WHOLE_KEY, TRANSFORM_WITH_STATE, OperatorName
from ckpt.formats.rows.arrow import structs
from ckpt.formats.rows.partitions import partitions_of
from ckpt.formats.rows.types import FIXED, arrow_type, unscaled
from ckpt.formats.rows.unsafe_writer import rows_from
from ckpt.formats.statefiles import JOIN_ROWS
from ckpt.formats.types import fields_of, named_fields, struct_of
from ckpt.model import Json
from ckpt.settings import STRICT_DISTRIBUTION
from ckpt.state.book import BOOK
from ckpt.state.native.store_files import context_of
from ckpt.state.reading.columns import Column, Columns, walk_leaves
from ckpt.state.reading.reading import ChosenState
from ckpt.state.reading.units import StateUnit, UnitKind

_KEY = "key_"
_EVENT_TIME = "__event_time"


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One column of a key, and the value that it shall have, as an Arrow array of one; it may be NULL."""

    column: Column
    value: Any


def parse_key_parts(columns: Columns, texts: Mapping[str, str | None]) -> tuple[KeyPart, ...]:
    """Turn typed text into values of columns, and None into NULL.

    Raises UsageError for a column that is not there, and for a wrong value.
    """
    known = {column.name: column for column in columns.kept if column.of_key}
    parts = []
    for name, text in texts.items():
        column = known.get(name) or known.get(_KEY + name)
        if column is None:
            raise UsageError(BOOK.text("lookup_no_column", column=name, known=", ".join(known)))
        parts.append(KeyPart(column, _parse_value(column, text)))
    return tuple(parts)


def _parse_value(column: Column, text: str | None) -> Any:
    """An Arrow array of one value; an array is typed in JSON. Raises UsageError."""
    kind = column.type
    if text is None:
        return pa.nulls(1, arrow_type(kind))
    if not (isinstance(kind, dict) and kind.get("type") == "array"):
        return _make_array(kind, parse_typed(column.name, kind, text))
    try:
        document: Json = json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        raise UsageError.of("{--key}: {text} is not a JSON array for {name}", text=text, name=column.name) from None
    return pa.array([_parse_elements(column.name, kind, document)], arrow_type(kind))


def _parse_elements(column: str, kind: Json, value: Json) -> Any:
    if value is None:
        return None
    if isinstance(kind, dict) and kind.get("type") == "array":
        if not isinstance(value, list):
            raise UsageError.of("{--key}: {given} is not an array for {column}", given=json.dumps(value), column=column)
        return [_parse_elements(column, kind.get("elementType"), element) for element in value]
    return parse_typed(column, kind, value if isinstance(value, str) else json.dumps(value))


def parse_typed(column: str, kind: Json, text: str, argument: str = "key") -> Any:
    """A value as it was typed, as one of a type: dates in days, times in microseconds since 1970. Raises UsageError."""
    name = str(kind).partition("(")[0]
    parse = _PARSERS.get(name)
    if parse is None or not isinstance(kind, str):
        shown = kind.get("type") if isinstance(kind, dict) else kind
        raise UsageError(BOOK.text("lookup_type", given=Option(argument), column=column, shown=str(shown)))
    try:
        value = parse(text)
        if isinstance(value, Decimal):
            value = value if unscaled(kind, value) else Decimal(0)
        if name in _INTEGERS and not -(1 << 8 * _INTEGERS[name] - 1) <= value < 1 << 8 * _INTEGERS[name] - 1:
            raise OverflowError
        if name == "float":
            struct.pack("<f", value)
        if isinstance(value, str):
            value.encode()
        return value
    except (ValueError, InvalidOperation, OverflowError):
        parts = {"given": Option(argument), "text": text, "kind": name, "column": column}
        raise UsageError(BOOK.text("lookup_value", **parts)) from None


def _make_array(kind: Json, value: Any) -> Any:
    """An Arrow array of one value; ``pyarrow.array`` imports pandas, which takes longer than finding a key."""
    data = value.encode() if isinstance(value, str) else value
    if isinstance(data, bytes):
        buffers = [struct.pack("<ii", 0, len(data)), data]
    elif isinstance(data, Decimal):
        buffers = [unscaled(str(kind), data).to_bytes(16, "little", signed=True)]
    else:
        buffers = [bytes([data]) if isinstance(data, bool) else FIXED[str(kind)][0].type(data).tobytes()]
    return pa.Array.from_buffers(arrow_type(kind), 1, [None, *map(pa.py_buffer, buffers)], 0)


def _micros(text: str) -> int:
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


_INTEGERS = {"byte": 1, "short": 2, "integer": 4, "long": 8}  # and their bytes
_PARSERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), _micros),
    **dict.fromkeys(("float", "double"), lambda text: float(text) + 0.0),  # as a key, zero has one sign
    **dict.fromkeys(("string", "char", "varchar"), str),
    "boolean": lambda text: bool(("false", "true").index(text)),
    "date": lambda text: (date.fromisoformat(text) - date(1970, 1, 1)).days,
    "decimal": Decimal,
    "binary": lambda text: base64.b64decode(text, validate=True),
}


def filter_matching(parts: Sequence[KeyPart], columns: Columns, batch: Any) -> Any:
    """The rows of a flat batch whose key has these values."""
    places = {column.name: index for index, column in enumerate(columns.kept)}
    for part in parts:
        batch = batch.filter(compare_with(part, batch.column(places[part.column.name])))
    return batch


def compare_with(part: KeyPart, column: Any) -> Any:
    """Tell which values of a column are the one asked for; NaN is one value, as Spark groups it, and so is NULL."""
    import pyarrow.compute as pc  # not at the top: it takes as long as finding a key by its bytes

    wanted = part.value[0]
    if not wanted.is_valid:
        return column.is_null()
    if pa.types.is_list(wanted.type):
        kind = struct_of([("", part.column.type)])
        (own,), rows = (rows_from(kind, structs([""], [array], len(array))).to_list() for array in (part.value, column))
        return pa.array([row == own for row in rows], pa.bool_())
    if pa.types.is_floating(wanted.type) and isnan(wanted.as_py()):
        return pc.is_nan(column)
    return pc.equal(column, wanted)


def encode_key_row(kind: Json, parts: Iterable[KeyPart]) -> bytes | None:
    """The key as the row that Spark stores; None where not all of it is given, or a whole struct may be NULL."""
    parts = [*parts]
    if any(part.value.null_count and len(part.column.places) > 2 for part in parts):
        return None
    key = _make_struct(kind, (0,), {part.column.places: part.value for part in parts})
    return None if key is None else rows_from(kind, key).to_list()[0]


def _make_struct(kind: Json, at: tuple[int, ...], values: Mapping[tuple[int, ...], Any]) -> Any | None:
    """A struct as an array of one, from the values of its leaves; None where one is not given."""
    names, fields = [], []
    for ordinal, (name, own) in enumerate(named_fields(kind)):
        here = (*at, ordinal)
        names.append(name)
        fields.append(_make_struct(own, here, values) if fields_of(own) else values.get(here))
    return structs(names, fields, 1) if fields and all(field is not None for field in fields) else None


def find_partition(chosen: ChosenState, unit: StateUnit, parts: Iterable[KeyPart]) -> int | None:
    """Find the one partition that can have a key; None where that is not known."""
    leaves = {part.column.places: part.value for part in parts}
    return next(iter(find_partitions(unit, leaves, spread_over(chosen)) or ()), None)


def spread_over(chosen: ChosenState) -> int | None:
    """The number of partitions over which rows are spread by their whole key; None where that is not recorded.

    A query that began before Spark 3.3 (``useStrictDistribution`` is not recorded) may spread them by a part of it.
    """
    strict = chosen.recorded.get(STRICT_DISTRIBUTION) == "true"
    return context_of(chosen).shuffle_partitions if strict else None


def find_partitions(unit: StateUnit, leaves: Mapping[tuple[int, ...], Any], partitions: int | None) -> list[int] | None:
    """The partition of each key, from arrays of the leaves of its schema by their places.

    None where that is not known, or a leaf is not given.
    """
    spread = _spread_by(unit)
    if spread is None or not partitions or not all(places in leaves for places, _ in spread):
        return None
    columns = [(kind, leaves[places]) for places, kind in spread]
    try:
        numbers: list[int] = partitions_of(columns, len(columns[0][1]), partitions).tolist()
    except Undecodable:
        return None
    return numbers


def _spread_by(unit: StateUnit) -> list[tuple[tuple[int, ...], Json]] | None:
    """Places and types of the columns by which an operator's rows are spread; None where that is not known.

    Measured on all samples with operator metadata (``tests/state/native``).
    """
    name = unit.operator_name
    key = [leaf for leaf in walk_leaves(unit.schema) if leaf.path[0] == "key"]
    if name == OperatorName.JOIN:
        indexed = unit.kind is UnitKind.STORE and unit.stores[0].endswith(JOIN_ROWS)
        key = key[:-1] if indexed else [leaf for leaf in key if leaf.path[-1] != _EVENT_TIME]
    elif name == OperatorName.SESSIONS:
        key = key[:-1]
    elif name not in BY_WHOLE_KEY | TRANSFORM_WITH_STATE:
        return None
    return [(leaf.places, leaf.type) for leaf in key] or None
