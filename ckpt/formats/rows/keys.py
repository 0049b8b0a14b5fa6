"""Keys of RocksDB state, as each encoder of Spark writes them (``RocksDBStateEncoder``), from Arrow arrays and back.

- ``NoPrefix``: a version byte and a row.
- ``PrefixKeyScan``: the length of the first columns' row, that row, and the row of the others.
- ``RangeKeyScan``: the same; the first row has the ordering columns as big-endian bytes behind a marker.
- ``TimestampAsPrefix``, ``TimestampAsPostfix``: the last column as 8 big-endian bytes before or after the row of the
  others.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ckpt.errors import LeftToSpark, Undecodable, Unfit
from ckpt.formats.rows.arrow import fixed, structs
from ckpt.formats.rows.types import FIXED, arrow_type
from ckpt.formats.rows.unsafe import VERSION, columns_of, rows_of
from ckpt.formats.rows.unsafe_writer import memory, rows_from
from ckpt.formats.types import named_fields, struct_of
from ckpt.model import Json

Row: TypeAlias = Callable[[list[tuple[str, Json]], Sequence[bytes], bool], list[pa.Array]]
"""From fields and rows to columns; whether it is the last row in the key, which Avro marks with a generation."""
MakeRows: TypeAlias = Callable[[Json, pa.Array, bool], list[bytes]]
"""From a type and structs of it to rows; whether it is the last row in a key."""

_INT, _LONG = 4, 8
_NEGATIVE, _POSITIVE, _NULL = 0, 1, 2  # markers of ordering columns
_SIGN = np.int64(-(2**63))


def keys_of(kind: Json, encoder: Json, blobs: Sequence[bytes], row: Row | None = None) -> pa.Array:
    """Keys as an array of structs, from bytes without the number of a column family in front of them.

    ``kind`` is a StructType in Spark's JSON, ``encoder`` the ``keyStateEncoderSpec`` of the state schema, and ``row``
    reads the rows in keys: by default UnsafeRows. Raises Undecodable for an unknown encoder, or keys that are not its.
    """
    fields, read = list(named_fields(kind)), row or _row
    match encoder:
        case {"keyStateEncoderType": "NoPrefixKeyStateEncoderSpec"}:
            columns = read(fields, blobs, True)
        case {"keyStateEncoderType": "PrefixKeyScanStateEncoderSpec", "numColsPrefixKey": int(count)}:
            first, rest = _two_parts(blobs)
            columns = [*read(fields[:count], first, False), *read(fields[count:], rest, True)]
        case {"keyStateEncoderType": "RangeKeyScanStateEncoderSpec", "orderingOrdinals": list(ordinals)}:
            columns = _decode_ordered(fields, [ordinal for ordinal in ordinals if isinstance(ordinal, int)], blobs, row)
        case _ if row is not None:
            raise LeftToSpark(f"ckpt does not read Avro-encoded keys with the encoder {encoder}")
        case {"keyStateEncoderType": "TimestampAsPrefixKeyStateEncoderSpec"}:
            rest = [blob[_LONG:] for blob in blobs]
            columns = [*_row(fields[:-1], rest), _times(fields[-1][1], [blob[:_LONG] for blob in blobs])]
        case {"keyStateEncoderType": "TimestampAsPostfixKeyStateEncoderSpec"}:
            rest = [blob[:-_LONG] for blob in blobs]
            columns = [*_row(fields[:-1], rest), _times(fields[-1][1], [blob[-_LONG:] for blob in blobs])]
        case _:
            raise LeftToSpark(f"ckpt does not know the key encoder {encoder}")
    return structs([name for name, _ in fields], columns, len(blobs))


def _row(fields: list[tuple[str, Json]], blobs: Sequence[bytes], _: bool = True) -> list[pa.Array]:
    return columns_of(fields, rows_of(blobs), "key")


def _two_parts(blobs: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Split each key after the part whose length comes first."""
    ends = [_INT + int.from_bytes(blob[:_INT], "little") for blob in blobs]
    pairs = list(zip(ends, blobs, strict=True))
    if any(end > len(blob) for end, blob in pairs):
        raise Unfit("a key's prefix is shorter than its stated length")
    return [blob[_INT:end] for end, blob in pairs], [blob[end:] for end, blob in pairs]


def _decode_ordered(
    fields: list[tuple[str, Json]], ordinals: list[int], blobs: Sequence[bytes], row: Row | None
) -> list[pa.Array]:
    """Columns that order the keys are in front, whatever their place is."""
    if any(ordinal >= len(fields) for ordinal in ordinals):
        raise Undecodable("the key encoder orders by a column that the key does not have")
    first, rest = _two_parts(blobs)
    named = [fields[ordinal] for ordinal in ordinals]
    ordering = (
        _row([(name, "binary") for name, _ in named], first)
        if row is None
        else _convert_avro_columns(named, first, row)
    )
    by_ordinal = {
        ordinal: _decode_comparable(*fields[ordinal], column)
        for ordinal, column in zip(ordinals, ordering, strict=True)
    }
    others = [ordinal for ordinal in range(len(fields)) if ordinal not in by_ordinal]
    if others:
        by_ordinal |= zip(others, (row or _row)([fields[ordinal] for ordinal in others], rest, True), strict=True)
    return [by_ordinal[ordinal] for ordinal in range(len(fields))]


def _convert_avro_columns(fields: list[tuple[str, Json]], blobs: Sequence[bytes], row: Row) -> Iterator[pa.Array]:
    """Return the columns as UnsafeRows have them; a row of Avro has two for each: the marker, and the value."""
    parts = iter(row([(name, "binary") for name, _ in fields for _ in range(2)], blobs, False))
    for (_, kind), marker, value in zip(fields, parts, parts, strict=True):
        nothing = bytes(FIXED[kind][0].itemsize) if isinstance(kind, str) and kind in FIXED else b""
        pairs = zip(marker.to_pylist(), value.to_pylist(), strict=True)
        yield pa.array([(mark or b"") + (nothing if own is None else own) for mark, own in pairs], pa.binary())


def _decode_comparable(name: str, kind: Json, column: pa.Array) -> pa.Array:
    """A column that was written so that its bytes compare as its values do: a marker, and the value big-endian."""
    if not isinstance(kind, str) or kind not in FIXED:
        raise LeftToSpark(f"ckpt does not know how key.{name} of type {kind} orders keys")
    dtype = FIXED[kind][0]
    width = 1 + dtype.itemsize
    blobs = column.to_pylist()
    if any(blob is None or len(blob) != width for blob in blobs):
        raise Unfit(f"key.{name} is not {width} bytes long")
    parts = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(blobs), width)
    markers = parts[:, 0]
    if (markers > _NULL).any():
        raise Unfit(f"key.{name} begins with an unknown marker")
    values = np.ascontiguousarray(parts[:, 1:]).view(dtype.newbyteorder(">"))[:, 0].astype(dtype)
    if dtype.kind == "f":
        bits = values.view(f"<i{dtype.itemsize}")
        values = np.where(markers == _NEGATIVE, ~bits, bits).view(dtype)
    return fixed(arrow_type(kind), values, markers == _NULL)


def _times(kind: Json, blobs: Sequence[bytes]) -> pa.Array:
    """Big-endian longs whose sign is flipped, so that negative ones come first."""
    if kind not in ("long", "timestamp") or any(len(blob) != _LONG for blob in blobs):
        raise Unfit("a key has no time where its encoder puts it")
    values = np.frombuffer(b"".join(blobs), ">i8").astype("<i8") ^ _SIGN
    return fixed(arrow_type(kind), values, np.zeros(len(blobs), bool))


def _encode_times(column: pa.Array) -> list[bytes]:
    """Longs as ``_times`` reads them. Raises Undecodable for NULL, which Spark does not write."""
    if column.null_count:
        raise Undecodable("the time of a key is NULL")
    data = (memory(column, np.dtype("<i8")) ^ _SIGN).astype(">i8").tobytes()
    return [data[at : at + _LONG] for at in range(0, len(data), _LONG)]


def encoder_with_prefix(columns: int | None) -> Json:
    """The encoder of keys whose first columns are a prefix; without such columns a key is one row."""
    if not columns:
        return {"keyStateEncoderType": "NoPrefixKeyStateEncoderSpec"}
    return {"keyStateEncoderType": "PrefixKeyScanStateEncoderSpec", "numColsPrefixKey": columns}


def write_versioned_rows(kind: Json, array: pa.Array, _: bool = True) -> list[bytes]:
    """MakeRows as RocksDB has them, after a version byte."""
    return [VERSION + row for row in rows_from(kind, array).to_list()]


def key_blobs(kind: Json, encoder: Json, keys: pa.Array, rows: MakeRows = write_versioned_rows) -> list[bytes]:
    """An array of structs without NULL as keys, without the number of a column family.

    ``rows`` makes the rows in them: UnsafeRows, or ``ckpt.formats.rows.avro.write_rows``; else as in ``keys_of``.
    Raises Undecodable for an encoder, or a type in keys, that ckpt does not write.
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
        case {"keyStateEncoderType": "TimestampAsPrefixKeyStateEncoderSpec"}:
            return list(map(bytes.__add__, _encode_times(columns[-1]), part(range(len(fields) - 1), last=True)))
        case {"keyStateEncoderType": "TimestampAsPostfixKeyStateEncoderSpec"}:
            return list(map(bytes.__add__, part(range(len(fields) - 1), last=True), _encode_times(columns[-1])))
    raise Undecodable(f"ckpt does not write keys of the encoder {encoder}")


def _ordering(columns: Sequence[tuple[pa.Array, pa.Array]], count: int, rows: MakeRows) -> list[bytes]:
    """The row of columns that order keys: marker and value of each are one binary in an UnsafeRow, two in Avro."""
    import pyarrow.compute as pc  # not at the top: nothing that reads needs it

    pairs = [part for column in columns for part in column]
    if rows is write_versioned_rows:
        pairs = [pc.binary_join_element_wise(*column, b"") for column in columns]
    names = [str(index) for index in range(len(pairs))]
    return rows(struct_of([(name, "binary") for name in names]), structs(names, pairs, count), False)


def _join_parts(first: list[bytes], rest: list[bytes]) -> list[bytes]:
    return [len(part).to_bytes(_INT, "little") + part + other for part, other in zip(first, rest, strict=True)]


def _encode_comparable(kind: Json, column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """A column so that its bytes compare as its values do: markers, and the values big-endian."""
    if not isinstance(kind, str) or kind not in FIXED or FIXED[kind][0].kind == "f":
        raise Undecodable(f"ckpt does not write keys that are ordered by a column of type {kind}")
    dtype = FIXED[kind][0]
    there = np.asarray(column.is_valid())
    values: np.ndarray = np.where(there, memory(column, dtype), dtype.type(0))
    markers = np.where(there, np.where(values < 0, _NEGATIVE, _POSITIVE), _NULL).astype(np.uint8)
    return _binaries(markers), _binaries(values.astype(dtype.newbyteorder(">")))


def _binaries(values: np.ndarray) -> pa.Array:
    data, width = values.tobytes(), values.dtype.itemsize
    return pa.array([data[at : at + width] for at in range(0, len(data), width)], pa.binary())
