"""The partitions of keys: ``pmod(Murmur3Hash(columns), partitions)`` with seed 42, as of ``HashPartitioning``."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from ckpt.errors import Undecodable
from ckpt.formats.rows.arrow import whole
from ckpt.formats.rows.types import FIXED, TypeShape, own_type, shape_of
from ckpt.formats.rows.unsafe_writer import Blobs, decimals, memory, texts
from ckpt.formats.types import named_fields
from ckpt.model import Json

_SEED = 42
_NAN = {"float": 0x7FC00000, "double": 0x7FF8000000000000}
_U32 = np.uint32


def partitions_of(columns: Iterable[tuple[Json, pa.Array]], count: int, partitions: int) -> np.ndarray:
    """The partition of each row, as an int64 array; ``columns`` are types in Spark's JSON, and Arrow arrays.

    Raises Undecodable for a type whose hash is not known: of strings with a collation, maps and variants.
    """
    hashes: np.ndarray = np.full(count, _SEED, _U32)
    for kind, column in columns:
        hashes = _hash_column(kind, column, hashes)
    return hashes.astype(np.int32).astype(np.int64) % partitions


def _hash_column(kind: Json, column: pa.Array, seeds: np.ndarray) -> np.ndarray:
    """The hash of each row after one more column; NULL leaves it as it is."""
    kind = own_type(kind)
    if isinstance(kind, dict) and kind.get("type") == "struct":
        for (_, own), part in zip(named_fields(kind), column.flatten(), strict=True):
            seeds = _hash_column(own, part, seeds)
        return seeds
    if isinstance(kind, dict) and kind.get("type") == "array":
        return _elements(kind.get("elementType"), column, seeds)
    there = np.ones(len(column), bool) if not column.null_count else np.asarray(column.is_valid())
    return np.where(there, _of_values(kind, column, seeds), seeds)


def _elements(kind: Json, column: pa.Array, seeds: np.ndarray) -> np.ndarray:
    """One element of every array after the other."""
    starts = np.asarray(column.offsets).astype(np.int64)
    counts = np.where(np.asarray(column.is_valid()), np.diff(starts), 0)
    hashes = seeds.copy()
    for index in range(int(counts.max(initial=0))):
        rows = np.flatnonzero(counts > index)
        hashes[rows] = _hash_column(kind, column.values.take(whole(pa.int64(), starts[rows] + index)), hashes[rows])
    return hashes


def _of_values(kind: Json, column: pa.Array, seeds: np.ndarray) -> np.ndarray:
    match shape_of(kind):
        case TypeShape.NULL:
            return seeds
        case TypeShape.BOOLEAN:
            return _int(np.asarray(column.fill_null(False)).astype(np.int32), seeds)
        case TypeShape.FIXED:
            return _number(str(kind), column, seeds)
        case TypeShape.SMALL_DECIMAL:
            return _long(memory(column, np.dtype("<i8"), 2)[:, 0], seeds)
        case TypeShape.LARGE_DECIMAL:
            return _hash_blobs(decimals(column), seeds)
        case TypeShape.TEXT if kind in ("string", "binary") or not str(kind).startswith("string"):
            return _hash_blobs(texts(column), seeds)
    name = kind.get("type") if isinstance(kind, dict) else kind
    raise Undecodable(f"ckpt does not know in which partition Spark keeps a key of type {name}")


def _number(name: str, column: pa.Array, seeds: np.ndarray) -> np.ndarray:
    dtype = FIXED[name][0]
    values = memory(column, dtype)
    if dtype.kind == "f":
        bits = (values + dtype.type(0)).view(f"<i{dtype.itemsize}")  # zero has one sign
        values = np.where(np.isnan(values), np.array(_NAN[name], bits.dtype), bits)
    return _long(values, seeds) if dtype.itemsize == 8 else _int(values.astype(np.int32), seeds)


def _int(values: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    return _finish(_mix(seeds, values.view(_U32)), _U32(4))


def _long(values: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    bits: np.ndarray = values.astype(np.int64).view(np.uint64)
    upper: np.ndarray = bits >> np.uint64(32)
    return _finish(_mix(_mix(seeds, bits.astype(_U32)), upper.astype(_U32)), _U32(8))


def _hash_blobs(blobs: Blobs, seeds: np.ndarray) -> np.ndarray:
    """Words, then the last one to three bytes one by one, as signed numbers: not what Murmur3 does elsewhere."""
    data, starts, lengths = blobs.data, blobs.bounds[:-1], blobs.sizes
    hashes = seeds.copy()
    for word in range(int(lengths.max(initial=0)) // 4):
        rows = np.flatnonzero(lengths >= 4 * word + 4)
        at = starts[rows] + 4 * word
        parts = [data[at + byte].astype(_U32) << _U32(8 * byte) for byte in range(4)]
        hashes[rows] = _mix(hashes[rows], parts[0] | parts[1] | parts[2] | parts[3])
    for byte in range(3):
        rows = np.flatnonzero(lengths % 4 > byte)
        at = starts[rows] + lengths[rows] // 4 * 4 + byte
        hashes[rows] = _mix(hashes[rows], data[at].view(np.int8).astype(np.int32).view(_U32))
    return _finish(hashes, lengths.astype(_U32))


def _mix(hashes: np.ndarray, words: np.ndarray) -> np.ndarray:
    words = words * _U32(0xCC9E2D51)
    words = (words << _U32(15) | words >> _U32(17)) * _U32(0x1B873593)
    hashes = hashes ^ words
    return (hashes << _U32(13) | hashes >> _U32(19)) * _U32(5) + _U32(0xE6546B64)


def _finish(hashes: np.ndarray, lengths: np.ndarray | np.uint32) -> np.ndarray:
    hashes = hashes ^ lengths
    hashes = (hashes ^ hashes >> _U32(16)) * _U32(0x85EBCA6B)
    hashes = (hashes ^ hashes >> _U32(13)) * _U32(0xC2B2AE35)
    return hashes ^ hashes >> _U32(16)
