"""The aggregates that wrote the buffers of an aggregation: how each takes in a value, and what comes of it.

Functions are written into ``processor.py`` as they are here. They treat NULL as Spark's do (``DeclarativeAggregate``
in ``catalyst/expressions/aggregate``).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Context
from math import isnan
from typing import Any

from ckpt.formats.types import fields_of, sql_type, type_at
from ckpt.model import Json
from ckpt.state.reading.columns import Holds, Names
from ckpt.state.reading.initial import InitialColumn, InitialPlan

Buffers = tuple[Any, ...]


def fold_count(value: Any, count: int) -> Buffers:
    """count(x) leaves out NULL; count(*) is count(1)."""
    return (count + (value is not None),)


def fold_sum(value: Any, total: Any) -> Buffers:
    """NULL until there is a value that is not; of integers it has to fit into a bigint."""
    if value is None:
        return (total,)
    total = (total or 0) + value
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise OverflowError("a sum does not fit into bigint")
    return (total,)


def fold_decimals(value: Any, total: Any, empty: bool) -> Buffers:
    """With more digits than decimals have by default in Python; NULL if it has overflowed."""
    if value is None or total is None:
        return (total, empty and value is None)
    return (Context(prec=100).add(total, value), False)


def result_decimals(total: Any, empty: bool) -> Any:
    """NULL while there was no value."""
    return None if empty else total


def fold_avg(value: Any, total: float, count: int) -> Buffers:
    """NULL is left out."""
    return (total, count) if value is None else (total + float(value), count + 1)


def result_avg(total: float, count: int) -> Any:
    """NULL without a value."""
    return total / count if count else None


def ordered(value: Any) -> tuple[bool, Any]:
    """Return what values are compared by: NaN is more than any number, and a time without zone is local."""
    if isinstance(value, datetime):
        return (False, value.astimezone())
    return (isinstance(value, float) and isnan(value), value)


def fold_max(value: Any, most: Any) -> Buffers:
    """NULL is left out."""
    if value is None or most is None:
        return (most if value is None else value,)
    return (max(most, value, key=ordered),)


def fold_min(value: Any, least: Any) -> Buffers:
    """NULL is left out."""
    if value is None or least is None:
        return (least if value is None else value,)
    return (min(least, value, key=ordered),)


def fold_moments(value: Any, n: float, avg: float, m2: float) -> Buffers:
    """NULL is left out; m2 is the sum of the squared distances from the average."""
    if value is None:
        return (n, avg, m2)
    delta = float(value) - avg
    step = delta / (n + 1.0)
    return (n + 1.0, avg + step, m2 + delta * (delta - step))


def result_stddev(n: float, avg: float, m2: float) -> Any:
    """stddev_samp; var_samp is m2 / (n - 1), var_pop m2 / n, stddev_pop its root."""
    return (m2 / (n - 1.0)) ** 0.5 if n > 1.0 else None


def fold_first(value: Any, ignore_nulls: bool, first: Any, is_set: bool) -> Buffers:
    """The first row, or the first that is not NULL."""
    if is_set or (value is None and ignore_nulls):
        return (first, is_set)
    return (value, True)


def fold_last(value: Any, ignore_nulls: bool, last: Any, is_set: bool) -> Buffers:
    """The last row, or the last that is not NULL."""
    return (last, is_set) if value is None and ignore_nulls else (value, True)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate by its buffers, whose types are patterns of Spark's in JSON; without ``fold`` it may be several."""

    name: str  # of its result
    buffers: tuple[tuple[str, str], ...]  # names and types, in order
    meaning: str
    fold: Callable[..., Buffers] | None = None
    begin: str = ""  # what buffers hold for a group without rows, as code
    takes: Callable[[str], Sequence[str]] = lambda _: ()  # from the first type: types of the input, () for any
    result: Callable[..., Any] | None = None  # of all buffers; None where the first buffer is it

    @property
    def chooses(self) -> bool:
        """True if the function may or may not ignore NULLs, and no buffer says which."""
        return self.fold in (fold_first, fold_last)


@dataclass(frozen=True, slots=True)
class KeptAggregate:
    """An aggregate of a query: consecutive columns of its initial state."""

    aggregate: Aggregate
    name: str  # each once in a query
    columns: tuple[InitialColumn, ...]

    @property
    def takes(self) -> Sequence[str]:
        """The types, in SQL, that its input may have; () for any."""
        return self.aggregate.takes(str(self.columns[0].type))

    @property
    def type(self) -> Json:
        """The type of its result."""
        return self.columns[0].type

    @property
    def meaning(self) -> str:
        """The aggregate in words, as far as it is known."""
        names = ", ".join(column.name for column in self.columns)
        return f"{names}: {self.aggregate.meaning}"


_WHOLE = ("tinyint", "smallint", "int", "bigint")
_FLOATS = ("float", "double")
_DECIMAL = r"decimal\((\d+),(-?\d+)\)"
_ANY = rf"long|integer|short|byte|float|double|string|boolean|binary|date|timestamp|{_DECIMAL}"
_NEVER, _UNSAID = " NOT NULL", " NULL?"


def _keep_type(kind: str) -> Sequence[str]:
    return (sql_type(kind),)


def _shorten_decimal(kind: str) -> Sequence[str]:
    """A sum of decimals has ten digits more than its input (``Sum.resultType``), and 38 at most."""
    match = re.fullmatch(_DECIMAL, kind)
    digits, scale = (int(match[1]), match[2]) if match else (0, "0")
    return tuple(f"decimal({length - 10},{scale})" for length in range(digits, 49 if digits == 38 else digits + 1))


_MOMENTS = (("n", "double"), ("avg", "double"), ("m2", "double"))
_EITHER = "of all rows, or of those that are not NULL: no buffer says which"
TABLE = (
    Aggregate(
        "count",
        (("count", f"long({_NEVER}|{re.escape(_UNSAID)})"),),
        "rows whose input is not NULL; 1 is the input of count(*)",
        fold_count,
        "0",
    ),
    Aggregate(
        "avg",
        (("sum", "double"), ("count", "long")),
        "the average is sum / count; a decimal(11,2) or shorter was added as CAST(x * 100 AS BIGINT)",
        fold_avg,
        "0.0, 0",
        lambda _: (*_WHOLE, *_FLOATS),
        result_avg,
    ),
    Aggregate(
        "",
        (("sum", "double"), ("count", f"long{re.escape(_UNSAID)}")),
        "avg, which adds to both what is not NULL; or sum of double, NULL without a value, and count",
    ),
    Aggregate("", (("sum", _DECIMAL), ("count", "long.*")), "avg of decimals: add to both what is not NULL"),
    Aggregate(
        "sum",
        (("sum", _DECIMAL), ("isEmpty", "boolean")),
        "the result is NULL while isEmpty is true",
        fold_decimals,
        "Decimal(0), True",
        _shorten_decimal,
        result_decimals,
    ),
    Aggregate("", (("sum", ".*"), ("isEmpty", "boolean")), "try_sum: NULL once it has overflowed"),
    Aggregate(
        "sum",
        (("sum", "long"),),
        "of integers; a decimal(8,2) or shorter was added as CAST(x * 100 AS BIGINT)",
        fold_sum,
        "None",
        lambda _: _WHOLE,
    ),
    Aggregate("sum", (("sum", "double"),), "of float or double", fold_sum, "None", lambda _: _FLOATS),
    Aggregate("max", (("max", _ANY),), "the largest that is not NULL", fold_max, "None", _keep_type),
    Aggregate("min", (("min", _ANY),), "the smallest that is not NULL", fold_min, "None", _keep_type),
    Aggregate("", (*_MOMENTS, ("m3", "double"), ("m4", "double")), "kurtosis, of which ckpt knows only the buffers"),
    Aggregate("", (*_MOMENTS, ("m3", "double")), "skewness, of which ckpt knows only the buffers"),
    Aggregate(
        "stddev_samp",
        _MOMENTS,
        "of stddev or variance, _samp or _pop: they differ in the result only",
        fold_moments,
        "0.0, 0.0, 0.0",
        result=result_stddev,
    ),
    Aggregate("first", (("first", _ANY), ("valueSet", "boolean")), _EITHER, fold_first, "None, False", _keep_type),
    Aggregate("last", (("last", _ANY), ("valueSet", "boolean")), _EITHER, fold_last, "None, False", _keep_type),
)
"""Each buffer belongs to the first of them that matches it and those after it."""
_UNKNOWN = Aggregate("", (("", ""),), "no aggregate that ckpt knows")


def aggregates_of(initial: InitialPlan) -> tuple[KeptAggregate, ...]:
    """The aggregates of an aggregation, in the order of its buffers."""
    fields = fields_of(type_at(initial.readings[0].unit.schema, (1,))) or []
    never = [isinstance(field, dict) and field.get("nullable") is False for field in fields]
    columns = [column for column in initial.shape.state if column.holds is Holds.BUFFER]
    null_is_recorded = any(never)
    described = [_describe(column, never, null_is_recorded=null_is_recorded) for column in columns]
    names = Names(key.name for key in initial.shape.keys)
    kept, at = [], 0
    while at < len(columns):
        aggregate = next((candidate for candidate in TABLE if _matches(candidate, described, at)), _UNKNOWN)
        own = columns[at : at + len(aggregate.buffers)]
        kept.append(KeptAggregate(aggregate, names.free((aggregate.name or own[0].name,)), tuple(own)))
        at += len(own)
    return tuple(kept)


def _matches(aggregate: Aggregate, described: Sequence[tuple[str, str]], at: int) -> bool:
    """Names as Spark has them, before any was made unique; a leaf of a struct is no buffer."""
    own = described[at : at + len(aggregate.buffers)]
    return len(own) == len(aggregate.buffers) and all(
        name == wanted and re.fullmatch(kinds, kind)
        for (name, kind), (wanted, kinds) in zip(own, aggregate.buffers, strict=True)
    )


def _describe(column: InitialColumn, never: Sequence[bool], *, null_is_recorded: bool) -> tuple[str, str]:
    """Return name and type; a count is never NULL, unlike that of an average, but Spark 4.3 records no such thing."""
    if len(column.path) != 2 or not isinstance(column.type, str):
        return "", ""
    nullable = _NEVER if never[column.places[1]] else _UNSAID * (not null_is_recorded)
    return column.path[1], f"{column.type}{nullable if column.path[1] == 'count' else ''}"
