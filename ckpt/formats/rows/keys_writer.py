"""Keys of RocksDB state from Arrow arrays, as each encoder of Spark writes them: what ``keys`` reads."""

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckpt.formats.rows.arrow import structs
from ckpt.formats.rows.errors import Undecodable
from ckpt.formats.rows.rows import VERSION
from ckpt.formats.rows.types import FIXED
from ckpt.formats.rows.unsafe_writer import memory, rows_from
from ckpt.formats.types import named_fields, struct_of
from ckpt.model import Json

_INT = struct.Struct("<i")
_NEGATIVE, _POSITIVE, _NULL = 0, 1, 2  # markers of ordering columns
MakeRows: TypeAlias = Callable[[Json, Any, bool], list[bytes]]
"""From a type and structs of it to rows; whether it is the last row in a key."""


def write_versioned_rows(kind: Json, array: Any, _: bool = True) -> list[bytes]:
    """MakeRows as RocksDB has them, after a version byte."""
    return [VERSION + row for row in rows_from(kind, array).to_list()]


def key_blobs(kind: Json, encoder: Json, keys: Any, rows: MakeRows = write_versioned_rows) -> list[bytes]:
    """An array of structs as keys, without the number of a column family.

    Args:
        kind: The key schema, a StructType in Spark's JSON.
        encoder: ``keyStateEncoderSpec`` as the state schema records it.
        keys: Without NULL.
        rows: What makes the rows in them: UnsafeRows, or ``ckpt.formats.rows.avro_writer.rows``.

    Raises:
        Undecodable: ckpt does not write keys of that encoder, or of a type in them.

    """
    fields, columns = list(named_fields(kind)), keys.flatten()

    def part(places: Sequence[int], *, last: bool) -> list[bytes]:
        named = [fields[ordinal] for ordinal in places]
        own = structs([name for name, _ in named], [columns[ordinal] for ordinal in places], len(keys))
        return rows(struct_of(named), own, last)

    match encoder:
        case {"keyStateEncoderType": "NoPrefixKeyStateEncoderSpec"}:
            return rows(kind, keys, True)
        case {"keyStateEncoderType": "PrefixKeyScanStateEncoderSpec", "numColsPrefixKey": int(count)}:
            return _join_parts(part(range(count), last=False), part(range(count, len(fields)), last=True))
        case {"keyStateEncoderType": "RangeKeyScanStateEncoderSpec", "orderingOrdinals": list(places)}:
            ordinals = [ordinal for ordinal in places if isinstance(ordinal, int)]
            ordering = [_encode_comparable(fields[ordinal][1], columns[ordinal]) for ordinal in ordinals]
            first = _ordering(ordering, len(keys), rows)
            others = [ordinal for ordinal in range(len(fields)) if ordinal not in ordinals]
            return _join_parts(first, part(others, last=True) if others else [b""] * len(keys))
    raise Undecodable(f"ckpt does not write keys of the encoder {encoder}")


def _ordering(columns: Sequence[tuple[Any, Any]], count: int, rows: MakeRows) -> list[bytes]:
    """The row of columns that order keys: marker and value of each are one binary in an UnsafeRow, two in Avro."""
    pairs = [part for column in columns for part in column]
    if rows is write_versioned_rows:
        pairs = [pc.binary_join_element_wise(*column, b"") for column in columns]
    names = [str(index) for index in range(len(pairs))]
    return rows(struct_of([(name, "binary") for name in names]), structs(names, pairs, count), False)


def _join_parts(first: list[bytes], rest: list[bytes]) -> list[bytes]:
    return [_INT.pack(len(part)) + part + other for part, other in zip(first, rest, strict=True)]


def _encode_comparable(kind: Json, column: Any) -> tuple[Any, Any]:
    """A column so that its bytes compare as its values do: markers, and the values big-endian."""
    if not isinstance(kind, str) or kind not in FIXED or FIXED[kind][0].kind == "f":
        raise Undecodable(f"ckpt does not write keys that are ordered by a column of type {kind}")
    dtype = FIXED[kind][0]
    there = np.asarray(column.is_valid())
    values: Any = np.where(there, memory(column, dtype), dtype.type(0))
    markers = np.where(there, np.where(values < 0, _NEGATIVE, _POSITIVE), _NULL).astype(np.uint8)
    return _binaries(markers), _binaries(values.astype(dtype.newbyteorder(">")))


def _binaries(values: Any) -> Any:
    data, width = values.tobytes(), values.dtype.itemsize
    return pa.array([data[at : at + width] for at in range(0, len(data), width)], pa.binary())
