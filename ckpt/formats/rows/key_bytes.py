"""One row as Spark writes it (``UnsafeRowWriter``): equal keys are equal bytes, so a key can be looked for as bytes."""

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from ckpt.formats.rows.types import TypeShape, shape_of, unscaled
from ckpt.model import Json

WORD = 8
Field: TypeAlias = tuple[Json, Any]
"""Type and value: a count for dates and times, a list of fields for a struct; None is NULL."""

_FORMATS = {"float": "<f", "double": "<d", "integer": "<i", "date": "<i", "short": "<h", "byte": "<b", "boolean": "<?"}
_FORMATS |= dict.fromkeys(("long", "timestamp", "timestamp_ltz", "timestamp_ntz"), "<q")


def encoded(fields: Sequence[Field]) -> bytes | None:
    """The row; None where it has a type that is not written here."""
    nulls = bytearray((len(fields) + 63) // 64 * WORD)
    slots, variable = b"", b""
    begin = len(nulls) + len(fields) * WORD
    for place, (kind, value) in enumerate(fields):
        if value is None:
            nulls[place // 8] |= 1 << place % 8
        found = _content(kind, value)
        if found is None:
            return None
        own, behind = found
        if behind is None:
            slots += own.ljust(WORD, b"\0")
        else:
            length = len(own)
            slots += struct.pack("<q", (begin + len(variable)) << 32 | length)
            variable += behind
    return bytes(nulls) + slots + variable


def _content(kind: Json, value: Any) -> tuple[bytes, bytes | None] | None:
    """The bytes of a value, and the same padded where they are not in its slot; None for a type not written here."""
    if isinstance(kind, dict):
        own = encoded(value) if kind.get("type") == "struct" and value is not None else None
        return None if own is None else (own, own)
    shape, name = shape_of(kind), str(kind)
    if shape is TypeShape.LARGE_DECIMAL:  # space is kept for it also where it is NULL
        own = b"" if value is None else shortest(name, value)
        return own, own.ljust(2 * WORD, b"\0")
    if value is None:
        return b"", None
    if shape is TypeShape.SMALL_DECIMAL:
        return struct.pack("<q", unscaled(name, value)), None
    if name in ("string", "binary"):
        own = value.encode() if isinstance(value, str) else value
        return own, own.ljust(-(-len(own) // WORD) * WORD, b"\0")
    if name not in _FORMATS or value != value:
        return None
    return struct.pack(_FORMATS[name], value + 0.0 if name in ("float", "double") else value), None


def shortest(name: str, value: Decimal) -> bytes:
    """The unscaled value of a decimal in as few bytes as hold it and its sign, big-endian."""
    found = unscaled(name, value)
    return found.to_bytes((found + (found < 0)).bit_length() // 8 + 1, "big", signed=True)
