"""Rows as Avro from Arrow arrays, as Spark's ``AvroStateEncoder`` writes them: what ``ckpt.formats.rows.avro`` reads.

Every field is a union of null and its type, but for elements of arrays and values of maps.
"""

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from ckpt.formats.rows.avro import FIRST_GENERATION, VERSION
from ckpt.formats.rows.errors import Undecodable
from ckpt.formats.types import named_fields
from ckpt.model import Json

_NULL, _THERE, _END = b"\0", b"\2", b"\0"  # the branches of a union as numbers, and the block that ends
_WHOLE = {
    "integer": pa.int32(),
    "long": pa.int64(),
    "date": pa.int32(),
    "timestamp": pa.int64(),
    "timestamp_ntz": pa.int64(),
}
_REAL = {"float": struct.Struct("<f"), "double": struct.Struct("<d")}


def rows(kind: Json, array: Any, last: bool = True) -> list[bytes]:
    """An array of structs without NULL as rows; in a key only the ``last`` one names a generation.

    Raises Undecodable for a type of which ckpt does not know how it is encoded.
    """
    header = VERSION + FIRST_GENERATION if last else VERSION
    return [header + row for row in _records(kind, array)]


def _records(kind: Json, array: Any) -> list[bytes]:
    fields = [inner for _, inner in named_fields(kind)]
    columns = [_nullable(inner, column) for inner, column in zip(fields, array.flatten(), strict=True)]
    return [b"".join(parts) for parts in zip(*columns, strict=True)] if columns else [b""] * len(array)


def _nullable(kind: Json, array: Any) -> list[bytes]:
    if kind in ("void", "null"):
        return [b""] * len(array)
    there = array.is_valid().to_pylist()
    return [_THERE + value if known else _NULL for known, value in zip(there, _values(kind, array), strict=True)]


def _values(kind: Json, array: Any) -> Sequence[bytes]:
    """Each without the branch of a union; of NULL anything."""
    match kind:
        case {"type": "struct"}:
            return _records(kind, array)
        case {"type": "array", "elementType": str(element)}:
            return _blocks(array, _write_without_null(element, array.values))
        case {"type": "map", "keyType": "string", "valueType": str(value)}:
            parts = (_write_without_null("string", array.keys), _write_without_null(value, array.items))
            return _blocks(array, [key + own for key, own in zip(*parts, strict=True)])
        case "boolean":
            return [b"\1" if value else b"\0" for value in array.to_pylist()]
        case "string" | "binary":
            return [
                _number(len(value)) + value for value in (value or b"" for value in array.cast(pa.binary()).to_pylist())
            ]
        case str() if kind in _WHOLE:
            return [_number(value or 0) for value in array.cast(_WHOLE[kind]).to_pylist()]
        case str() if kind in _REAL:
            return [_REAL[kind].pack(value or 0) for value in array.to_pylist()]
    raise Undecodable(f"ckpt does not write values of type {kind} encoded as Avro")


def _write_without_null(kind: Json, array: Any) -> Sequence[bytes]:
    if array.null_count:
        raise Undecodable("Spark writes no NULL in arrays and maps that are encoded as Avro")
    return _values(kind, array)


def _blocks(array: Any, elements: Sequence[bytes]) -> list[bytes]:
    """The elements of each list in one block."""
    starts = array.offsets.to_pylist()
    return [_block(elements[start:end]) for start, end in pairwise(starts)]


def _block(elements: Sequence[bytes]) -> bytes:
    return b"".join([_number(len(elements)), *elements, _END]) if elements else _END


def _number(value: int) -> bytes:
    """As Avro has an int or a long."""
    left, written = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)
