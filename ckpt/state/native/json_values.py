"""Values of Arrow arrays as JSON holds them: exact, and readable."""

import base64
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa

from ckpt.model import Json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def make_plain(array: Any) -> list[Json]:
    """Each value: numbers, true and false, text, lists and objects; NULL is null.

    Times are ISO 8601 (UTC where they are instants), decimals and intervals text, binaries base64; a map is an object
    where its keys are text, and otherwise a list of objects {key, value}. Where a calendar has no such time, it is the
    number that is stored.
    """
    kind = array.type
    if pa.types.is_struct(kind):
        columns = [make_plain(inner) for inner in array.flatten()]
        names = [kind.field(index).name for index in range(kind.num_fields)]
        rows = zip(*columns, strict=True) if columns else ((),) * len(array)
        cells: list[Json] = [dict(zip(names, row, strict=True)) for row in rows]
    elif pa.types.is_map(kind):
        cells = _maps(array)
    elif pa.types.is_list(kind):
        cells = [list(part) for part in _parts(array, make_plain(array.values))]
    else:
        return _simple(array)
    return [value if there else None for value, there in zip(cells, _list_valid(array), strict=True)]


def _simple(array: Any) -> list[Json]:
    convert = _converter(array.type)
    if convert is None:
        values: list[Json] = array.to_pylist()
        return values
    stored = array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array
    stored = stored.cast(pa.int32()) if pa.types.is_date32(array.type) else stored
    stored = stored.cast(pa.int64()) if pa.types.is_duration(array.type) else stored
    return [None if value is None else convert(value) for value in stored.to_pylist()]


def _converter(kind: Any) -> Callable[[Any], Json] | None:
    """Return a function that makes JSON of a value that is not JSON already."""
    if pa.types.is_timestamp(kind):
        return _instant if kind.tz else _local
    for test, convert in (
        (pa.types.is_date32, _day),
        (pa.types.is_floating, _number),
        (pa.types.is_binary, lambda value: base64.b64encode(value).decode()),
        (pa.types.is_duration, lambda micros: str(timedelta(microseconds=micros))),
        (pa.types.is_decimal, lambda value: f"{value:f}"),
        (pa.types.is_time, str),
        (pa.types.is_interval, lambda value: f"{value.months} months {value.days} days {value.nanoseconds // 1000} us"),
    ):
        if test(kind):
            return convert
    return None


def _instant(micros: int) -> Json:
    local = _local(micros)
    return f"{local}Z" if isinstance(local, str) else local


def _local(micros: int) -> Json:
    try:
        return (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat(timespec="auto")
    except OverflowError:
        return micros


def _day(days: int) -> Json:
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return days


def _number(value: float) -> Json:
    """JSON has no NaN and no infinity."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _maps(array: Any) -> list[Json]:
    keys, values = make_plain(array.keys), make_plain(array.items)
    pairs = list(zip(keys, values, strict=True))
    if pa.types.is_string(array.type.key_type):
        return [{str(key): value for key, value in part} for part in _parts(array, pairs)]
    return [[{"key": key, "value": value} for key, value in part] for part in _parts(array, pairs)]


def _parts(array: Any, elements: list[Any]) -> list[list[Any]]:
    """The elements of each list or map."""
    bounds = array.offsets.to_pylist()
    return [elements[first:end] for first, end in pairwise(bounds)]


def _list_valid(array: Any) -> list[bool]:
    valid: list[bool] = array.is_valid().to_pylist()
    return valid
