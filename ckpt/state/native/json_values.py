"""Values of Arrow arrays as JSON holds them: exact, and readable."""

import base64
import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa

from ckpt.model import Json


def make_plain(array: Any) -> list[Json]:
    """Each value: numbers, true and false, text, lists and objects; NULL is null.

    Times are ISO 8601 (UTC where they are instants), decimals and intervals text, binaries base64; a map is an object
    where its keys are text, and otherwise a list of objects {key, value}. Where a calendar has no such time, it is the
    number that is stored.
    """
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    kind = array.type
    if pa.types.is_struct(kind):
        columns = [make_plain(inner) for inner in array.flatten()]
        rows = zip(*columns, strict=True) if columns else ((),) * len(array)
        cells: list[Json] = [dict(zip((field.name for field in kind), row, strict=True)) for row in rows]
    elif pa.types.is_map(kind):
        cells = _maps(array)
    elif pa.types.is_list(kind):
        cells = [*_parts(array, make_plain(array.values))]
    else:
        return _simple(array)
    return [value if there else None for value, there in zip(cells, array.is_valid().to_pylist(), strict=True)]


def make_objects(rows: Any) -> list[dict[str, Json]]:
    """The rows of a record batch or a table as objects, their values as of ``make_plain``."""
    cells = [make_plain(column) for column in rows.columns]
    return [dict(zip(rows.schema.names, row, strict=True)) for row in zip(*cells, strict=True)]


def _simple(array: Any) -> list[Json]:
    convert, kind = _converter(array.type), array.type
    numbers = None
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        numbers = pa.int64()
    elif pa.types.is_date32(kind):
        numbers = pa.int32()
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    # a view, for ``cast`` imports ``pyarrow.compute``, which takes longer than finding a key
    values: list[Any] = [value for chunk in chunks for value in (chunk.view(numbers) if numbers else chunk).to_pylist()]
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _converter(kind: Any) -> Callable[[Any], Json] | None:
    """Return a function that makes JSON of a value that is not JSON already."""
    if pa.types.is_timestamp(kind):
        return partial(_time, zone="Z" if kind.tz else "")
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


def _time(micros: int, zone: str) -> Json:
    try:
        return (datetime(1970, 1, 1) + timedelta(microseconds=micros)).isoformat() + zone
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
    maps = _parts(array, list(zip(keys, values, strict=True)))
    if pa.types.is_string(array.type.key_type):
        return [{str(key): value for key, value in entries} for entries in maps]
    return [[{"key": key, "value": value} for key, value in entries] for entries in maps]


def _parts(array: Any, elements: list[Any]) -> list[list[Any]]:
    return [elements[first:end] for first, end in pairwise(array.offsets.to_pylist())]
