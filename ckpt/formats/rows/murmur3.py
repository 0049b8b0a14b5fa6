"""In which partition Spark keeps a key: ``pmod(Murmur3Hash(key), partitions)`` with seed 42 (``HashPartitioning``)."""

import struct
from collections.abc import Iterable
from typing import Any

from ckpt.formats.rows.key_bytes import shortest
from ckpt.formats.rows.types import TypeShape, shape_of, unscaled
from ckpt.model import Json

SEED = 42
_WORD = 0xFFFFFFFF
_INTS = frozenset({"byte", "short", "integer", "date"})
_LONGS = frozenset({"long", "timestamp", "timestamp_ntz", "timestamp_ltz"})


def can_hash(kind: Json) -> bool:
    """Tell whether values of a type can be hashed here: not strings that have a collation, nor nested types."""
    if not isinstance(kind, str):
        return False
    shape = shape_of(kind)
    decimal = shape in (TypeShape.SMALL_DECIMAL, TypeShape.LARGE_DECIMAL)
    return decimal or kind in ("boolean", "string", "binary", "float", "double") or kind in _INTS or kind in _LONGS


def partition_of(values: Iterable[tuple[Json, Any]], partitions: int) -> int:
    """The partition of a key from types and values of its leaves in order; dates and times are counts, None is NULL."""
    found = SEED
    for kind, value in values:
        found = _hash(kind, value, found)
    signed = found - (1 << 32) if found >> 31 else found
    return signed % partitions


def _hash(kind: Json, value: Any, seed: int) -> int:
    if value is None:
        return seed
    name = str(kind)
    if name in _INTS or name == "boolean":
        return _int(int(value), seed)
    if name in _LONGS:
        return _long(int(value), seed)
    if name in ("float", "double"):
        return _floating(name, float(value), seed)
    if name in ("string", "binary"):
        return hash_bytes(value.encode() if isinstance(value, str) else value, seed)
    if shape_of(kind) is TypeShape.SMALL_DECIMAL:
        return _long(unscaled(name, value), seed)
    return hash_bytes(shortest(name, value), seed)


def _floating(name: str, value: float, seed: int) -> int:
    """Zero has one sign, and NaN one form."""
    if value != value:
        return _int(0x7FC00000, seed) if name == "float" else _long(0x7FF8000000000000, seed)
    value += 0.0
    if name == "float":
        return _int(struct.unpack("<i", struct.pack("<f", value))[0], seed)
    return _long(struct.unpack("<q", struct.pack("<d", value))[0], seed)


def _int(value: int, seed: int) -> int:
    return _finished(_mixed(seed, value), 4)


def _long(value: int, seed: int) -> int:
    return _finished(_mixed(_mixed(seed, value & _WORD), value >> 32 & _WORD), 8)


def hash_bytes(data: bytes, seed: int) -> int:
    """The hash of a string, a binary or a large decimal.

    Words, then the last one to three bytes one by one, as signed numbers: not what Murmur3 does elsewhere.
    """
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<i", data[:whole]):
        seed = _mixed(seed, word)
    for (byte,) in struct.iter_unpack("b", data[whole:]):
        seed = _mixed(seed, byte)
    return _finished(seed, len(data))


def _mixed(found: int, word: int) -> int:
    word = (word & _WORD) * 0xCC9E2D51 & _WORD
    word = (word << 15 | word >> 17) * 0x1B873593 & _WORD
    found ^= word
    return ((found << 13 | found >> 19) & _WORD) * 5 + 0xE6546B64 & _WORD


def _finished(found: int, length: int) -> int:
    found ^= length
    found = (found ^ found >> 16) * 0x85EBCA6B & _WORD
    found = (found ^ found >> 13) * 0xC2B2AE35 & _WORD
    return found ^ found >> 16
