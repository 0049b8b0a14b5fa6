"""Arrow arrays made what a schema of Spark says, or refused: types, names of fields, and NULL where none may be.

A value is never changed: an integer may become wider, or narrower if it fits; a number is never made of a text. Times
without a zone are in UTC where Spark's type is an instant.
"""

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial

import ckpt.formats.rows  # isort: skip  # noqa: F401  (which says in one line what is not installed)

import numpy as np
import pyarrow as pa

from ckpt.formats.rows.arrow import validity
from ckpt.formats.rows.types import TypeShape, arrow_type, own_type, shape_of
from ckpt.formats.types import fields_of, named_fields
from ckpt.model import Json
from ckpt.state.reading.columns import type_names

_SIMPLER = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary(), pa.date64(): pa.date32()}


class Misfit(Exception):
    """A row, by its place in what was given, and why it cannot be state; None where it is all of them."""

    def __init__(self, row: int | None, why: str, other: int | None = None) -> None:
        """Rows are named by who knows where they came from; ``why`` ends in "that of" if there is another row."""
        super().__init__(why)
        self.row, self.why, self.other = row, why, other


def fit_array(kind: Json, array: pa.Array, rows: np.ndarray, name: str) -> pa.Array:
    """An array made one of the Arrow type of ``kind``, a type in Spark's JSON.

    ``rows`` has for each value the row that it is in, for a refusal, in which the column is called ``name``. Raises
    Misfit where it is of another type, or has a value that the type does not have.
    """
    kind = own_type(kind)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_type(kind))
    if shape_of(kind) is TypeShape.NESTED and isinstance(kind, dict):
        return _fit_nested(kind, array, rows, name)
    return _fit_simple(kind, array, rows, name)


def check_not_null(field: Json, array: pa.Array, rows: np.ndarray, name: str, there: np.ndarray | None = None) -> None:
    """Raise Misfit where a field may not be NULL and is, in rows that are ``there``."""
    if isinstance(field, dict) and field.get("nullable") is False:
        wrong = np.asarray(array.is_null())
        _refuse(wrong if there is None else wrong & there, rows, f"{name} is NULL, but must not be")


def make_struct(kind: Json, columns: Sequence[pa.Array], there: np.ndarray | None = None) -> pa.StructArray:
    """An array of structs from the columns of its fields; NULL where it is not ``there``, without that nowhere."""
    there = np.ones(len(columns[0]), bool) if there is None else there
    fields = [pa.field(name, column.type) for (name, _), column in zip(named_fields(kind), columns, strict=True)]
    return pa.Array.from_buffers(
        pa.struct(fields), len(there), [validity(~there)], int((~there).sum()), children=list(columns)
    )


def _refuse(wrong: np.ndarray, rows: np.ndarray, why: str) -> None:
    if wrong.any():
        raise Misfit(int(rows[np.argmax(wrong)]), why)


def _fit_nested(kind: dict[str, Json], array: pa.Array, rows: np.ndarray, name: str) -> pa.Array:
    match kind:
        case {"type": "struct"} if pa.types.is_struct(array.type):
            return _fit_struct(kind, array, rows, name)
        case {"type": "array", "elementType": element} if _is_list(array.type):
            plain = array.cast(pa.list_(array.type.value_type))
            inner = _repeat_rows(plain, rows)
            values = fit_array(element, plain.flatten(), inner, f"{name}[]")
            check_not_null({"nullable": kind.get("containsNull")}, values, inner, f"{name}[]")
            return replace_elements(plain, values)
        case {"type": "map", "keyType": key, "valueType": value} if pa.types.is_map(array.type):
            plain = array.take(pa.array(range(len(array)), pa.int64()))
            inner = _repeat_rows(plain, rows)
            keys = fit_array(key, plain.keys, inner, f"{name}.key")
            check_not_null({"nullable": False}, keys, inner, f"{name}.key")
            values = fit_array(value, plain.items, inner, f"{name}.value")
            check_not_null({"nullable": kind.get("valueContainsNull")}, values, inner, f"{name}.value")
            entries = pa.StructArray.from_arrays([keys, values], names=["key", "value"])
            return _rebuild(arrow_type(kind), plain, entries)
    raise _make_misfit(array, kind, name)


def replace_elements(array: pa.Array, values: pa.Array) -> pa.Array:
    """Return the lists with other elements."""
    return _rebuild(pa.list_(pa.field("item", values.type)), array, values)


def _rebuild(kind: pa.DataType, array: pa.Array, values: pa.Array) -> pa.Array:
    bounds = np.asarray(array.offsets)
    there = np.asarray(array.is_valid())
    buffers = [validity(~there), pa.py_buffer(np.ascontiguousarray(bounds - bounds[0]).astype(np.int32))]
    return pa.Array.from_buffers(kind, len(array), buffers, int((~there).sum()), children=[values])


def _repeat_rows(array: pa.Array, rows: np.ndarray) -> np.ndarray:
    return np.repeat(rows, np.diff(np.asarray(array.offsets)))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _fit_struct(kind: Json, array: pa.Array, rows: np.ndarray, name: str) -> pa.Array:
    """Fit the fields of a struct by name; where names repeat, or are none, by place."""
    wanted = [own for own, _ in named_fields(kind)]
    names = [array.type.field(ordinal).name for ordinal in range(array.type.num_fields)]
    if names != wanted and (sorted(names) != sorted(wanted) or len(set(wanted)) < len(wanted)):
        raise Misfit(None, f"{name} has the fields {', '.join(names) or 'none'}, but Spark's are {', '.join(wanted)}")
    parts = array.flatten()
    ordered = parts if names == wanted else [parts[names.index(own)] for own in wanted]
    there = np.asarray(array.is_valid())
    columns = []
    for field, part in zip(fields_of(kind) or (), ordered, strict=True):
        own = str(field.get("name")) if isinstance(field, dict) else ""
        column = fit_array(field.get("type") if isinstance(field, dict) else None, part, rows, f"{name}.{own}")
        check_not_null(field, column, rows, f"{name}.{own}", there)
        columns.append(column)
    return make_struct(kind, columns, there)


def _fit_simple(kind: Json, array: pa.Array, rows: np.ndarray, name: str) -> pa.Array:
    target = arrow_type(kind)
    if array.type == target:
        return array
    if not _are_alike(array.type, target):
        raise _make_misfit(array, kind, name)
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        at = bisect_left(range(len(array)), True, key=partial(_has_wrong, array, target))
        why = f"{name} has a value that does not fit {next(type_names(kind))}: {array[at]}"
        raise Misfit(int(rows[at]), why) from None


def _are_alike(source: pa.DataType, target: pa.DataType) -> bool:
    """Tell whether all values of one type can be made another without a doubt."""
    types = pa.types
    if types.is_timestamp(source) and types.is_timestamp(target):
        return source.tz is None or target.tz is not None  # without a zone they are in UTC, as pandas reads INT96
    if types.is_duration(target) or types.is_time64(target):
        same = types.is_duration if types.is_duration(target) else types.is_time
        return bool(source == pa.int64() or same(source))
    return any(
        (
            types.is_integer(source) and types.is_integer(target),
            types.is_float32(source) and types.is_float64(target),
            types.is_decimal(source) and types.is_decimal(target),
            types.is_date(source) and types.is_date(target),
            _SIMPLER.get(source, source) == target,
            types.is_fixed_size_binary(source) and types.is_binary(target),
        )
    )


def _has_wrong(array: pa.Array, target: pa.DataType, last: int) -> bool:
    """Tell whether a value up to this one cannot be cast."""
    try:
        array.slice(0, last + 1).cast(target)
    except pa.ArrowInvalid:
        return True
    return False


def _make_misfit(array: pa.Array, kind: Json, name: str) -> Misfit:
    return Misfit(None, f"{name} has the Arrow type {array.type}, but Spark's type is {next(type_names(kind))}")
