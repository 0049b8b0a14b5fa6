"""The partition of a key from its bytes, as ``rows.partitions`` finds it for many at once, but without numpy.

That is ``pmod(Murmur3Hash(columns), partitions)`` with seed 42 (Spark ``HashPartitioning``).
"""

import struct

from ckpt.formats.types import named_fields
from ckpt.model import Json

_SEED, _WORD, _BITS = 42, 8, 0xFFFFFFFF
_WORDS = ("long", "timestamp", "timestamp_ltz", "timestamp_ntz")
_SMALL = {"integer": 4, "date": 4, "short": 2, "byte": 1}  # and their bytes
_POINTED = ("string", "binary")


def partition_of(kind: Json, row: bytes, partitions: int) -> int | None:
    """The partition of a key that is stored as an UnsafeRow; None where the row, or a type in it, is not known here."""
    try:
        hashed = _hash_row(kind, row, _SEED)
    except (LookupError, ValueError, struct.error):
        return None
    return (hashed - (hashed >> 31 << 32)) % partitions


def _hash_row(kind: Json, row: bytes, seed: int) -> int:
    """The hash after all columns of a row; NULL leaves it as it is."""
    kinds = [own for _, own in named_fields(kind)]
    words = (len(kinds) + 63) // 64
    if not kinds or len(row) % _WORD or len(row) < (words + len(kinds)) * _WORD:
        raise ValueError
    for ordinal, own in enumerate(kinds):
        if row[ordinal // 8] >> ordinal % 8 & 1:
            continue
        at = (words + ordinal) * _WORD
        word = row[at : at + _WORD]
        size, offset = struct.unpack("<II", word)
        pointed = row[offset : offset + size]
        if isinstance(own, dict) and own.get("type") == "struct":
            seed = _hash_row(own, pointed, seed)
        elif own in _POINTED and len(pointed) == size:
            seed = _hash_bytes(pointed, seed)
        elif own in _WORDS:
            seed = _hash_bytes(word, seed)
        elif own == "boolean":
            seed = _hash_bytes(bytes([word[0] != 0, 0, 0, 0]), seed)
        else:
            value = int.from_bytes(word[: _SMALL[str(own)]], "little", signed=True)
            seed = _hash_bytes(value.to_bytes(4, "little", signed=True), seed)
    return seed


def _hash_bytes(data: bytes, seed: int) -> int:
    """Words, then the last one to three bytes one by one, as signed numbers: not what Murmur3 does elsewhere."""
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        seed = _mix(seed, word)
    for byte in struct.unpack(f"<{len(data) - whole}b", data[whole:]):
        seed = _mix(seed, byte & _BITS)
    seed ^= len(data)
    seed = (seed ^ seed >> 16) * 0x85EBCA6B & _BITS
    seed = (seed ^ seed >> 13) * 0xC2B2AE35 & _BITS
    return seed ^ seed >> 16


def _mix(seed: int, word: int) -> int:
    word = word * 0xCC9E2D51 & _BITS
    seed ^= (word << 15 | word >> 17) * 0x1B873593 & _BITS
    return ((seed << 13 | seed >> 19) * 5 + 0xE6546B64) & _BITS
