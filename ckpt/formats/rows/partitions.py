"""In which partitions Spark keeps many keys: ``pmod(Murmur3Hash(columns), partitions)`` with seed 42, over arrays.

``ckpt.formats.rows.murmur3`` does the same for one key; both are compared with what Spark answered.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from ckpt.formats.rows.arrow import whole
from ckpt.formats.rows.errors import Undecodable
from ckpt.formats.rows.key_bytes import shortest
from ckpt.formats.rows.murmur3 import SEED, hash_bytes
from ckpt.formats.rows.types import FIXED, TypeShape, own_type, shape_of
from ckpt.formats.types import named_fields
from ckpt.model import Json

_NAN = {"float": 0x7FC00000, "double": 0x7FF8000000000000}
_U32 = np.uint32


def partitions_of(columns: Iterable[tuple[Json, Any]], count: int, partitions: int) -> Any:
    """The partition of each row, as an int64 array; ``columns`` are types in Spark's JSON, and Arrow arrays.

    Raises Undecodable for a type whose hash is not known: of strings with a collation, maps and variants.
    """
    found: Any = np.full(count, SEED, _U32)
    for kind, column in columns:
        found = _hashed(kind, column, found)
    return found.astype(np.int32).astype(np.int64) % partitions


def _hashed(kind: Json, column: Any, seeds: Any) -> Any:
    """The hash of each row after one more column; NULL leaves it as it is."""
    kind = own_type(kind)
    if isinstance(kind, dict) and kind.get("type") == "struct":
        for (_, own), part in zip(named_fields(kind), column.flatten(), strict=True):
            seeds = _hashed(own, part, seeds)
        return seeds
    if isinstance(kind, dict) and kind.get("type") == "array":
        return _elements(kind.get("elementType"), column, seeds)
    there = np.ones(len(column), bool) if not column.null_count else np.asarray(column.is_valid())
    return np.where(there, _of_values(kind, column, seeds), seeds)


def _elements(kind: Json, column: Any, seeds: Any) -> Any:
    """One element of every array after the other."""
    starts = np.asarray(column.offsets).astype(np.int64)
    counts = np.where(np.asarray(column.is_valid()), np.diff(starts), 0)
    found = seeds.copy()
    for place in range(int(counts.max(initial=0))):
        some = np.flatnonzero(counts > place)
        found[some] = _hashed(kind, column.values.take(whole(pa.int64(), starts[some] + place)), found[some])
    return found


def _of_values(kind: Json, column: Any, seeds: Any) -> Any:
    shape = shape_of(kind)
    match shape:
        case TypeShape.NULL:
            return seeds
        case TypeShape.BOOLEAN:
            return _int(np.asarray(column.fill_null(False)).astype(np.int32), seeds)
        case TypeShape.FIXED:
            return _number(str(kind), column, seeds)
        case TypeShape.SMALL_DECIMAL:
            words = np.frombuffer(column.buffers()[1], "<i8").reshape(-1, 2)
            return _long(words[column.offset : column.offset + len(column), 0], seeds)
        case TypeShape.LARGE_DECIMAL:
            values = (b"" if one is None else shortest(str(kind), one) for one in column.to_pylist())
            return _one_by_one(values, seeds)
        case TypeShape.TEXT if kind in ("string", "binary") or not str(kind).startswith("string"):
            return _texts(column, seeds)
    name = kind.get("type") if isinstance(kind, dict) else kind
    raise Undecodable(f"ckpt does not know in which partition Spark keeps a key of type {name}")


def _number(name: str, column: Any, seeds: Any) -> Any:
    dtype = FIXED[name][0]
    values = np.frombuffer(column.buffers()[1], dtype)[column.offset : column.offset + len(column)]
    if dtype.kind == "f":
        bits = (values + dtype.type(0)).view(f"<i{dtype.itemsize}")  # zero has one sign
        values = np.where(np.isnan(values), np.array(_NAN[name], bits.dtype), bits)
    return _long(values, seeds) if dtype.itemsize == 8 else _int(values.astype(np.int32), seeds)


def _int(values: Any, seeds: Any) -> Any:
    return _finished(_mixed(seeds, values.view(_U32)), _U32(4))


def _long(values: Any, seeds: Any) -> Any:
    bits = values.astype(np.int64).view(np.uint64)
    low, high = bits.astype(_U32), (bits >> np.uint64(32)).astype(_U32)
    return _finished(_mixed(_mixed(seeds, low), high), _U32(8))


def _texts(column: Any, seeds: Any) -> Any:
    """Words, then the last one to three bytes one by one, as signed numbers."""
    column = column.cast(pa.large_binary())
    bounds = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    starts, lengths = bounds[:-1], np.diff(bounds)
    found = seeds.copy()
    for word in range(int(lengths.max(initial=0)) // 4):
        some = np.flatnonzero(lengths >= 4 * word + 4)
        at = starts[some] + 4 * word
        parts = [data[at + place].astype(_U32) << _U32(8 * place) for place in range(4)]
        found[some] = _mixed(found[some], parts[0] | parts[1] | parts[2] | parts[3])
    for place in range(3):
        some = np.flatnonzero(lengths % 4 > place)
        at = starts[some] + lengths[some] // 4 * 4 + place
        found[some] = _mixed(found[some], data[at].view(np.int8).astype(np.int32).view(_U32))
    return _finished(found, lengths.astype(_U32))


def _one_by_one(values: Iterable[bytes], seeds: Any) -> Any:
    return np.array([hash_bytes(one, int(seed)) for one, seed in zip(values, seeds, strict=True)], _U32)


def _mixed(found: Any, words: Any) -> Any:
    words = words * _U32(0xCC9E2D51)
    words = (words << _U32(15) | words >> _U32(17)) * _U32(0x1B873593)
    found = found ^ words
    return (found << _U32(13) | found >> _U32(19)) * _U32(5) + _U32(0xE6546B64)


def _finished(found: Any, lengths: Any) -> Any:
    found = found ^ lengths
    found = (found ^ found >> _U32(16)) * _U32(0x85EBCA6B)
    found = (found ^ found >> _U32(13)) * _U32(0xC2B2AE35)
    return found ^ found >> _U32(16)
