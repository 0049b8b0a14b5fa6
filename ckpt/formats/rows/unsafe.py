"""UnsafeRows as Arrow arrays, column by column (Spark ``UnsafeRow``, ``UnsafeArrayData``, ``UnsafeMapData``).

A row is a bit for each field that is NULL, in whole words, then a word for each field: its value, or where its bytes
are in the row (offset in the upper, length in the lower half). Of what Spark checks of a row before it uses state
(``UnsafeRowUtils.validateStructuralIntegrity``) all but its total length is checked of each row here. Everything that
reads a row goes through its bounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ckpt.errors import LeftToSpark, Undecodable, Unfit
from ckpt.formats.rows.arrow import booleans, fixed, lists, offsets, spread, structs, texts
from ckpt.formats.rows.types import FIXED, TypeShape, arrow_type, own_type, shape_of, width_of
from ckpt.formats.types import named_fields
from ckpt.model import Json
from ckpt.texts import plural

WORD = 8  # bytes: Spark's UnsafeRow consists of 8-byte words
VERSION = b"\0"
"""The byte in front of each row in RocksDB: the version of its encoding (``STATE_ENCODING_VERSION`` of Spark)."""
_PADDING = bytes(WORD - 1)
_LOW = 0xFFFFFFFF


def _refuse_if(damaged: object, text: str) -> None:
    """Raise Unfit where rows are not built as their schema says."""
    if damaged:
        raise Unfit(text)


@dataclass(frozen=True, slots=True)
class Rows:
    """UnsafeRows (or what is built alike: structs, arrays and maps in them) in one block of memory.

    ``words`` is an int64 array over the memory; ``at`` has the word in which each row begins, ``size`` its bytes.
    """

    words: np.ndarray
    at: np.ndarray
    size: np.ndarray

    def __len__(self) -> int:
        return len(self.at)

    @property
    def raw(self) -> np.ndarray:
        """The memory as bytes."""
        return self.words.view(np.uint8)

    def take(self, which: np.ndarray | slice) -> "Rows":
        """Select rows by a mask, indices or a slice."""
        return Rows(self.words, self.at[which], self.size[which])

    def inside(self, words: np.ndarray, sizes: np.ndarray, what: str) -> "Rows":
        """One part of each row: from a word of it on, so many bytes. Raises Unfit where it is not inside."""
        ends = words * WORD + sizes
        _refuse_if(((words < 0) | (sizes < 0) | (ends > self.size)).any(), f"{what} is not inside its row")
        return Rows(self.words, self.at + words, sizes)


def rows_at(data: bytes, starts: np.ndarray, sizes: np.ndarray) -> Rows:
    """Rows in a block of bytes, which all begin at the same place of a word.

    Raises Unfit where a size is none that Spark writes, or beyond the end.
    """
    shift = int(starts[0]) % WORD if len(starts) else 0
    _refuse_if(len(starts) and (sizes % WORD).any(), "a row's length is not a multiple of 8 bytes")
    if len(starts) and (((starts - shift) % WORD).any() or int((starts + sizes).max()) > len(data)):
        raise Unfit("a row is not where its record says")
    count = max(len(data) - shift, 0) // WORD
    return Rows(np.frombuffer(data, "<i8", count, shift if count else 0), (starts - shift) // WORD, sizes)


def rows_of(blobs: Sequence[bytes]) -> Rows:
    """Rows that are bytes objects, each after a version byte, which is 0."""
    lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
    data = _PADDING.join([b"", *blobs])
    ends = np.cumsum(lengths + len(_PADDING))
    starts = ends - lengths + 1
    if (lengths < 1).any() or np.frombuffer(data, np.uint8)[starts - 1].any():
        raise Undecodable("a row begins with a version that ckpt does not know")
    return rows_at(data, starts, lengths - 1)


def structs_of(kind: Json, rows: Rows, what: str) -> pa.Array:
    """Rows as an array of structs. ``what`` is what to call them in a refusal."""
    fields = list(named_fields(kind))
    columns = columns_of(fields, rows, what)
    return structs([name for name, _ in fields], columns, len(rows))


def columns_of(fields: Sequence[tuple[str, Json]], rows: Rows, what: str) -> list[pa.Array]:
    """The columns of rows. Raises Unfit where a row is not built as the fields say."""
    count = len(fields)
    bits = (count + 63) // 64
    _refuse_if((rows.size < (bits + count) * WORD).any(), f"a row of {what} is too short for its {count} columns")
    if count % 64 and ((rows.words[rows.at + bits - 1] >> (count % 64)) & ((1 << 64 - count % 64) - 1)).any():
        raise Unfit(f"a row of {what} has different columns from its schema")
    columns = []
    for ordinal, (name, kind) in enumerate(fields):
        nulls = ((rows.words[rows.at + ordinal // 64] >> (ordinal % 64)) & 1).astype(bool)
        slots = rows.words[rows.at + bits + ordinal]
        _must_be_built(own_type(kind), slots[~nulls], (bits + count) * WORD, f"{what}.{name}")
        columns.append(column_of(kind, rows, slots, nulls, f"{what}.{name}"))
    return columns


def are_one_null(rows: Rows) -> bool:
    """Tell whether each row has one column, which is NULL."""
    return bool((rows.size == 2 * WORD).all() and (rows.words[rows.at] == 1).all())


def check_width(kind: Json, rows: Rows, what: str) -> None:
    """Raise Unfit for rows with more or fewer columns than a schema that somebody states.

    In an UnsafeRow the values of variable length follow the words of the columns; a row without such values ends with
    the words (``UnsafeRowWriter``).
    """
    fields = list(named_fields(kind))
    bits = (len(fields) + 63) // 64
    fixed, first = (bits + len(fields)) * WORD, rows.size
    for ordinal, (name, own) in enumerate(fields):
        if shape_of(own_type(own)) not in _IN_THEIR_WORD and (first >= (bits + ordinal + 1) * WORD).all():
            slots = rows.words[rows.at + bits + ordinal]
            points = np.where(slots != 0, slots >> 32 & _LOW, fixed)
            _refuse_if((points < (bits + 1) * WORD).any(), f"{what}.{name} is of another type than its schema says")
            first = np.minimum(first, np.where(slots != 0, points, first))
    if (first != fixed).any():
        there = max(int(first[first != fixed][0]) // WORD - bits, 0)
        named = ", ".join(name for name, _ in fields)
        raise Unfit(f"a row of {what} has {plural(there, 'column')}, and its schema {len(fields)}: {named}")


_IN_THEIR_WORD = (TypeShape.BOOLEAN, TypeShape.FIXED, TypeShape.SMALL_DECIMAL, TypeShape.NULL)


def _must_be_built(kind: Json, slots: np.ndarray, fixed_part: int, what: str) -> None:
    """Raise Unfit where words, which are those of values, do not fit their type or point into the words themselves."""
    shape, used = shape_of(kind), 8 * width_of(kind)
    if shape in (TypeShape.BOOLEAN, TypeShape.FIXED):
        _refuse_if(used < 8 * WORD and (slots >> used).any(), f"{what} has more bits than its type")
    elif shape is TypeShape.NULL:
        _refuse_if(len(slots), f"{what} is void but has a value")
    elif shape is not TypeShape.SMALL_DECIMAL and (((slots >> 32) & _LOW) < fixed_part).any():
        raise Unfit(f"{what} points into the fixed part of its row")


def column_of(kind: Json, rows: Rows, slots: np.ndarray, nulls: np.ndarray, what: str) -> pa.Array:
    """One column from the words of its values, which point into ``rows``."""
    kind = own_type(kind)
    match shape_of(kind):
        case TypeShape.NULL:
            return pa.nulls(len(slots))
        case TypeShape.BOOLEAN:
            return booleans((slots & 0xFF) != 0, nulls)
        case TypeShape.FIXED:
            dtype = FIXED[str(kind)][0]
            return fixed(arrow_type(kind), slots.view(dtype)[:: WORD // dtype.itemsize], nulls)
        case TypeShape.SMALL_DECIMAL:
            return fixed(arrow_type(kind), np.stack([slots, slots >> 63], axis=1), nulls)
    there = ~nulls
    own = rows.take(there) if nulls.any() else rows
    slots = slots[there] if nulls.any() else slots
    places, sizes = (slots >> 32) & _LOW, slots & _LOW
    _refuse_if(((places + sizes) > own.size).any() or sizes.sum() > rows.words.nbytes, f"{what} is not inside its row")
    return spread(_read_pointed(kind, own, places, sizes, what), nulls)


def _read_pointed(kind: Json, rows: Rows, places: np.ndarray, sizes: np.ndarray, what: str) -> pa.Array:
    """A column without NULL whose values are somewhere in the rows."""
    starts, shape = rows.at * WORD + places, shape_of(kind)
    if shape is TypeShape.TEXT:
        return texts(arrow_type(kind), rows.raw, starts, sizes, np.zeros(len(rows), bool), what)
    if shape is TypeShape.LARGE_DECIMAL:
        return _large_decimals(kind, rows.raw, starts, sizes, what)
    if shape is TypeShape.VARIANT:
        return _variants(rows.raw, starts, sizes, what)
    _refuse_if((places % WORD).any(), f"{what} is not aligned to a word")
    inner = rows.inside(places // WORD, sizes, what)
    match kind:
        case "interval":
            return _calendar_intervals(inner, what)
        case {"type": "struct"}:
            return structs_of(kind, inner, what)
        case {"type": "array", "elementType": element}:
            return lists(*_elements(element, inner, what))
        case {"type": "map", "keyType": key, "valueType": value}:
            return _maps(key, value, inner, what)
    raise LeftToSpark(f"{what} has a type that ckpt does not decode")


def _large_decimals(kind: Json, raw: np.ndarray, starts: np.ndarray, sizes: np.ndarray, what: str) -> pa.Array:
    """Decimals of more than 18 digits: the unscaled value, big-endian, as short as it can be."""
    _refuse_if(((sizes < 1) | (sizes > 16)).any(), f"{what} contains a decimal of impossible length")
    places = np.arange(16)
    within = places[None, :] < sizes[:, None]
    padded = raw[np.where(within, (starts + sizes)[:, None] - 1 - places[None, :], 0)]
    signs = np.where(raw[starts] >= 128, 255, 0).astype(np.uint8)
    return fixed(arrow_type(kind), np.where(within, padded, signs[:, None]), np.zeros(len(starts), bool))


def _variants(raw: np.ndarray, starts: np.ndarray, sizes: np.ndarray, what: str) -> pa.Array:
    """Variants: the length of the value, the value, the metadata (Spark ``VariantVal``)."""
    _refuse_if((sizes < 4).any(), f"{what} contains a variant that is too short")
    none: np.ndarray = np.zeros(len(starts), bool)
    lengths = raw[starts[:, None] + np.arange(4)].astype(np.int64) @ (256 ** np.arange(4))
    _refuse_if((lengths > sizes - 4).any(), f"{what} contains a variant that is too short")
    value = texts(pa.binary(), raw, starts + 4, lengths, none, what)
    metadata = texts(pa.binary(), raw, starts + 4 + lengths, sizes - 4 - lengths, none, what)
    return structs(["value", "metadata"], [value, metadata], len(starts))


def _calendar_intervals(rows: Rows, what: str) -> pa.Array:
    """Months and days in one word, microseconds in the next."""
    _refuse_if((rows.size != 2 * WORD).any(), f"{what} contains an interval of impossible length")
    micros = rows.words[rows.at + 1]
    most = (1 << 63) // 1000 - 1
    if ((micros > most) | (micros < -most)).any():
        raise Undecodable(f"{what} contains an interval that does not fit an Arrow type")
    pairs = np.stack([rows.words[rows.at], micros * 1000], axis=1)
    return fixed(pa.month_day_nano_interval(), pairs, np.zeros(len(rows), bool))


def _elements(kind: Json, rows: Rows, what: str) -> tuple[pa.Array, np.ndarray]:
    """The elements of all arrays, and how many each has.

    An array is their number, a bit for each that is NULL, in whole words, and the elements in their own width.
    """
    _refuse_if((rows.size < WORD).any(), f"{what} contains an array that is too short")
    counts = rows.words[rows.at]
    headers = 1 + (counts + 63) // 64
    kind, width = own_type(kind), width_of(kind)
    if ((counts < 0) | (counts > rows.size) | (headers * WORD + counts * width > rows.size)).any():
        raise Unfit(f"{what} contains an array that is too short")
    _refuse_if(counts.sum() * width > rows.words.nbytes, f"{what} contains arrays that overlap")
    owner: np.ndarray = np.repeat(np.arange(len(rows)), counts)
    places = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    base = rows.take(owner)
    nulls = ((rows.words[base.at + 1 + places // 64] >> (places % 64)) & 1).astype(bool)
    starts = base.at + headers[owner]
    if width == WORD:
        return column_of(kind, base, rows.words[starts + places], nulls, what), counts
    if shape_of(kind) is TypeShape.BOOLEAN:
        return booleans(rows.raw[starts * WORD + places] != 0, nulls), counts
    dtype = FIXED[str(kind)][0]
    return fixed(arrow_type(kind), rows.words.view(dtype)[starts * (WORD // width) + places], nulls), counts


def _maps(key: Json, value: Json, rows: Rows, what: str) -> pa.Array:
    """Maps: the bytes of the array of keys, that array, and the array of values."""
    _refuse_if((rows.size < WORD).any(), f"{what} contains a map that is too short")
    length = rows.words[rows.at]
    single: np.ndarray = np.ones(len(rows), np.int64)
    _refuse_if((length % WORD).any(), f"{what} contains a map of impossible length")
    keys, counts = _elements(key, rows.inside(single, length, what), f"{what}.key")
    behind = single + length // WORD
    values, others = _elements(value, rows.inside(behind, rows.size - behind * WORD, what), f"{what}.value")
    _refuse_if((counts != others).any(), f"{what} contains a map with different numbers of keys and values")
    return pa.MapArray.from_arrays(offsets(counts), keys, values)
