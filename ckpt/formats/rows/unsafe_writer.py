"""UnsafeRows from Arrow arrays, column by column: what ``unsafe`` reads, byte for byte as Spark writes it.

Spark classes ``UnsafeRowWriter`` and ``UnsafeArrayWriter``. Bytes are compared with those of every known Spark
(``tests/formats/rows/test_unsafe_writer.py``).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ckpt.errors import Undecodable
from ckpt.formats.rows.types import FIXED, TypeShape, own_type, shape_of, width_of
from ckpt.formats.rows.unsafe import WORD
from ckpt.formats.types import named_fields
from ckpt.model import Json

_KEPT = 16  # bytes of a row for a decimal of more than 18 digits, also where it is NULL
_DECIMAL_BYTES = 16


class Blobs(NamedTuple):
    """Byte strings, one behind the other: ``data`` is an array of bytes, ``bounds`` where each begins and the end."""

    data: np.ndarray
    bounds: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """The number of bytes of each byte string."""
        return np.diff(self.bounds)

    def to_list(self) -> list[bytes]:
        """List the byte strings."""
        data, bounds = self.data.tobytes(), self.bounds.tolist()
        return [data[start:end] for start, end in pairwise(bounds)]


class _Column(NamedTuple):
    """A column as rows or arrays have it: a word for each value, or what the words point to."""

    nulls: np.ndarray
    words: np.ndarray | None  # int64; None where ``blobs`` has the values
    blobs: Blobs | None = None  # of every value, empty for NULL
    keeps: bool = False  # in a row 16 bytes, whatever the length is


def rows_from(kind: Json, array: pa.Array) -> Blobs:
    """An array of structs without NULL as rows, without a version byte. Raises Undecodable for a type it cannot write.

    ``kind`` is the StructType in Spark's JSON, and the array has its Arrow type (``types.arrow_type``).
    """
    kinds = [own for _, own in named_fields(kind)]
    return _rows([_column(own, part) for own, part in zip(kinds, array.flatten(), strict=True)], len(array))


def _rows(columns: Sequence[_Column], count: int) -> Blobs:
    bits = (len(columns) + 63) // 64
    head: np.ndarray = np.zeros((count, bits + len(columns)), np.int64)
    end: np.ndarray = np.full(count, (bits + len(columns)) * WORD, np.int64)
    behind: list[tuple[np.ndarray, Blobs]] = []
    for ordinal, column in enumerate(columns):
        head[:, ordinal // 64] |= column.nulls.astype(np.int64) << (ordinal % 64)
        if column.blobs is None:
            head[:, bits + ordinal] = np.where(column.nulls, 0, column.words)
            continue
        sizes = column.blobs.sizes
        pointed = end << 32 | sizes
        head[:, bits + ordinal] = pointed if column.keeps else np.where(column.nulls, 0, pointed)
        behind.append((end, column.blobs))
        end = end + (_KEPT if column.keeps else _round_to_words(sizes))
    bounds = _bounds(end)
    out: np.ndarray = np.zeros(int(bounds[-1]), np.uint8)
    width = head.shape[1]
    if width and count:
        out.view(np.int64)[(bounds[:-1] // WORD)[:, None] + np.arange(width)] = head
    for at, blobs in behind:
        _put(out, bounds[:-1] + at, blobs)
    return Blobs(out, bounds)


def _column(kind: Json, array: pa.Array) -> _Column:
    kind = own_type(kind)
    shape = shape_of(kind)
    # without NULL, nothing is asked of ``pyarrow.compute``, whose import takes longer than finding a key by its bytes
    nulls = ~np.asarray(array.is_valid()) if array.null_count else np.zeros(len(array), bool)
    if shape is TypeShape.NULL:
        return _Column(np.ones(len(array), bool), np.zeros(len(array), np.int64))
    if shape in (TypeShape.BOOLEAN, TypeShape.FIXED, TypeShape.SMALL_DECIMAL):
        return _Column(nulls, _words(kind, shape, array))
    there = array if shape is TypeShape.TEXT and not array.null_count else array.filter(array.is_valid())
    blobs = _blobs(kind, shape, there)
    sizes: np.ndarray = np.zeros(len(array), np.int64)
    sizes[~nulls] = blobs.sizes
    return _Column(nulls, None, Blobs(blobs.data, _bounds(sizes)), shape is TypeShape.LARGE_DECIMAL)


def _words(kind: Json, shape: TypeShape, array: pa.Array) -> np.ndarray:
    """Values in their slots; what a value does not use is zero."""
    if shape is TypeShape.BOOLEAN:
        return np.asarray(array.fill_null(False)).astype(np.int64)
    if shape is TypeShape.SMALL_DECIMAL:
        return memory(array, np.dtype("<i8"), 2)[:, 0]
    dtype = FIXED[str(kind)][0]
    return memory(array, dtype).view(f"<u{dtype.itemsize}").astype(np.uint64).view(np.int64)


def memory(array: pa.Array, dtype: np.dtype, width: int = 1) -> np.ndarray:
    """The values of an array of fixed width as they lie in memory; of NULL anything."""
    buffer = array.buffers()[1]
    if buffer is None:
        values = np.zeros(len(array) * width, dtype)
    else:
        values = np.frombuffer(buffer, dtype)[array.offset * width : (array.offset + len(array)) * width]
    return values if width == 1 else values.reshape(-1, width)


def _blobs(kind: Json, shape: TypeShape, array: pa.Array) -> Blobs:
    """Values without NULL that have no fixed length."""
    if shape is TypeShape.TEXT:
        return texts(array)
    if shape is TypeShape.LARGE_DECIMAL:
        return decimals(array)
    if shape is TypeShape.VARIANT:
        return _join_blobs(texts(array.field(0)), texts(array.field(1)), np.dtype("<i4"))
    match kind:
        case {"type": "struct"}:
            return rows_from(kind, array)
        case {"type": "array", "elementType": element}:
            return _arrays(element, array.flatten(), _counts(array))
        case {"type": "map", "keyType": key, "valueType": value}:
            counts = _counts(array)
            return _join_blobs(_arrays(key, array.keys, counts), _arrays(value, array.items, counts), np.dtype("<i8"))
    raise Undecodable(f"ckpt does not write values of type {kind}")


def _counts(array: pa.Array) -> np.ndarray:
    return np.diff(np.asarray(array.offsets).astype(np.int64))


def texts(array: pa.Array) -> Blobs:
    """The bytes of strings or binaries; of NULL none."""
    if not len(array):
        return Blobs(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    offsets = np.frombuffer(array.buffers()[1], np.int64 if large else np.int32)
    bounds = offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    return Blobs(data[bounds[0] : bounds[-1]], bounds - bounds[0])


def decimals(array: pa.Array) -> Blobs:
    """The unscaled values of decimals, big-endian, in as few bytes as hold value and sign; of NULL anything."""
    big = memory(array, np.dtype("u1"), _DECIMAL_BYTES)[:, ::-1]
    sign = big[:, :1] >> 7
    spare = np.cumprod(big == sign * 255, axis=1).sum(axis=1)
    spare = np.minimum(spare, _DECIMAL_BYTES - 1)
    spare = spare - ((np.take_along_axis(big, spare[:, None], 1)[:, 0] >> 7 != sign[:, 0]) & (spare > 0))
    used = np.arange(_DECIMAL_BYTES) >= spare[:, None]
    return Blobs(big[used], _bounds(_DECIMAL_BYTES - spare))


def _arrays(kind: Json, values: pa.Array, counts: np.ndarray) -> Blobs:
    """Arrays of so many elements each: the number, a bit for each NULL in whole words, elements, what they point to."""
    kind = own_type(kind)
    column, width = _column(kind, values), width_of(kind)
    owner: np.ndarray = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    index = np.arange(len(owner)) - first[owner]
    head: np.ndarray = WORD + (counts + 63) // 64 * WORD
    begin = head + _round_to_words(counts * width)
    sizes = np.zeros(len(owner), np.int64) if column.blobs is None else column.blobs.sizes
    before = _bounds(_round_to_words(sizes))
    at = begin[owner] + before[:-1] - before[first][owner]
    words = np.where(column.nulls, 0, column.words if column.blobs is None else at << 32 | sizes)
    bounds = _bounds(begin + before[first + counts] - before[first])
    out: np.ndarray = np.zeros(int(bounds[-1]), np.uint8)
    starts = bounds[:-1]
    out.view(np.int64)[starts // WORD] = counts
    np.bitwise_or.at(out, (starts + WORD)[owner] + index // 8, (column.nulls << index % 8).astype(np.uint8))
    target = (starts + head)[owner] + index * width
    out[target[:, None] + np.arange(width)] = words.view(np.uint8).reshape(-1, WORD)[:, :width]
    if column.blobs is not None:
        _put(out, starts[owner] + at, column.blobs)
    return Blobs(out, bounds)


def _join_blobs(first: Blobs, second: Blobs, length: np.dtype) -> Blobs:
    """The bytes of the first, as a number of this type, and both: keys and values of a map, value and metadata."""
    width = length.itemsize
    bounds = _bounds(width + first.sizes + second.sizes)
    out: np.ndarray = np.zeros(int(bounds[-1]), np.uint8)
    out[bounds[:-1][:, None] + np.arange(width)] = first.sizes.astype(length).view(np.uint8).reshape(-1, width)
    _put(out, bounds[:-1] + width, first)
    _put(out, bounds[:-1] + width + first.sizes, second)
    return Blobs(out, bounds)


def _put(out: np.ndarray, at: np.ndarray, blobs: Blobs) -> None:
    out[np.repeat(at - blobs.bounds[:-1], blobs.sizes) + np.arange(len(blobs.data))] = blobs.data


def _bounds(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def _round_to_words(sizes: np.ndarray) -> np.ndarray:
    return (sizes + WORD - 1) // WORD * WORD
