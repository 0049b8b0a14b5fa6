"""Spark's types in Arrow, and how an UnsafeRow stores their values."""

import re
from decimal import Context, Decimal, Inexact, InvalidOperation
from enum import Enum, auto

import numpy as np
import pyarrow as pa

from ckpt.errors import LeftToSpark
from ckpt.formats.types import named_fields
from ckpt.model import Json

FIXED = {
    "long": (np.dtype("<i8"), pa.int64()),
    "integer": (np.dtype("<i4"), pa.int32()),
    "short": (np.dtype("<i2"), pa.int16()),
    "byte": (np.dtype("i1"), pa.int8()),
    "double": (np.dtype("<f8"), pa.float64()),
    "float": (np.dtype("<f4"), pa.float32()),
    "date": (np.dtype("<i4"), pa.date32()),
    "timestamp": (np.dtype("<i8"), pa.timestamp("us", "UTC")),
    "timestamp_ltz": (np.dtype("<i8"), pa.timestamp("us", "UTC")),
    "timestamp_ntz": (np.dtype("<i8"), pa.timestamp("us")),
}
"""Types of fixed width: in numpy, in Arrow. Intervals and times are added below."""

_MONTHS = ("interval year", "interval year to month", "interval month")
_DAY_TIME = ("day", "hour", "minute", "second")
FIXED |= dict.fromkeys(_MONTHS, (np.dtype("<i4"), pa.int32()))  # Arrow in Python has no interval of months alone
FIXED |= {
    f"interval {first}" + (f" to {last}" if last != first else ""): (np.dtype("<i8"), pa.duration("us"))
    for place, first in enumerate(_DAY_TIME)
    for last in _DAY_TIME[place:]
}
FIXED |= {name: (np.dtype("<i8"), pa.time64("ns")) for name in ("time", *(f"time({digits})" for digits in range(10)))}

_TEXT = re.compile(r"string( collate .+)?|(char|varchar)\(\d+\)")
_DECIMAL = re.compile(r"decimal(?:\((\d{1,2}), ?(-?\d{1,2})\))?")
_MOST_DIGITS = 38
_MOST_DIGITS_OF_A_LONG = 18


class TypeShape(Enum):
    """How an UnsafeRow stores a value."""

    NULL = auto()
    BOOLEAN = auto()
    FIXED = auto()
    SMALL_DECIMAL = auto()
    LARGE_DECIMAL = auto()
    TEXT = auto()
    VARIANT = auto()
    NESTED = auto()


_SHAPES = dict.fromkeys(FIXED, TypeShape.FIXED) | {
    **dict.fromkeys(("void", "null"), TypeShape.NULL),
    "boolean": TypeShape.BOOLEAN,
    "binary": TypeShape.TEXT,
    "variant": TypeShape.VARIANT,
    "interval": TypeShape.NESTED,
}


def shape_of(kind: Json) -> TypeShape:
    """How values of a type are stored. Raises LeftToSpark for a type that ckpt does not decode."""
    if isinstance(kind, dict):
        return shape_of(kind.get("sqlType")) if kind.get("type") == "udt" else TypeShape.NESTED
    name = str(kind)
    if name in _SHAPES:
        return _SHAPES[name]
    if _TEXT.fullmatch(name):
        return TypeShape.TEXT
    if _DECIMAL.fullmatch(name) and 0 < precision(name)[0] <= _MOST_DIGITS:
        return TypeShape.SMALL_DECIMAL if precision(name)[0] <= _MOST_DIGITS_OF_A_LONG else TypeShape.LARGE_DECIMAL
    raise LeftToSpark(f"ckpt does not decode the type {name}")


def width_of(kind: Json) -> int:
    """Bytes of an element of an array."""
    name = str(own_type(kind))
    return FIXED[name][0].itemsize if name in FIXED else 1 if name == "boolean" else 8


def own_type(kind: Json) -> Json:
    """The type behind a user-defined one."""
    return own_type(kind.get("sqlType")) if isinstance(kind, dict) and kind.get("type") == "udt" else kind


def precision(name: str) -> tuple[int, int]:
    """Digits of a decimal, and how many of them are after the point."""
    match = _DECIMAL.fullmatch(name)
    digits, scale = match.groups() if match else (None, None)
    return int(digits or 10), int(scale or 0)


def unscaled(name: str, value: Decimal) -> int:
    """A decimal as a number of its smallest unit. Raises ValueError where the type has no such value."""
    digits, scale = precision(name)
    exact = Context(prec=digits, traps=[Inexact, InvalidOperation])
    try:
        return int(value.quantize(Decimal((0, (1,), -scale)), context=exact).scaleb(scale, exact))
    except ArithmeticError:
        raise ValueError(name) from None


def arrow_type(kind: Json) -> pa.DataType:
    """The Arrow type of a type of Spark.

    Intervals of years and months are int32 (months), other ANSI intervals duration[us], a variant is a struct of value
    and metadata. Raises LeftToSpark for a type that ckpt does not decode.
    """
    match kind:
        case {"type": "struct"}:
            return pa.struct([pa.field(name, arrow_type(inner)) for name, inner in named_fields(kind)])
        case {"type": "array", "elementType": element}:
            return pa.list_(pa.field("item", arrow_type(element)))
        case {"type": "map", "keyType": key, "valueType": value}:
            return pa.map_(arrow_type(key), arrow_type(value))
        case {"type": "udt", "sqlType": own}:
            return arrow_type(own)
    match shape_of(kind):
        case TypeShape.NULL:
            return pa.null()
        case TypeShape.BOOLEAN:
            return pa.bool_()
        case TypeShape.FIXED:
            return FIXED[str(kind)][1]
        case TypeShape.TEXT:
            return pa.binary() if kind == "binary" else pa.string()
        case TypeShape.VARIANT:
            return pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary())])
        case TypeShape.SMALL_DECIMAL | TypeShape.LARGE_DECIMAL:
            return pa.decimal128(*precision(str(kind)))
    if kind == "interval":
        return pa.month_day_nano_interval()
    raise LeftToSpark(f"ckpt does not decode the type {kind}")
