"""CRC-32 of many pieces together, from that of each (zlib's ``crc32_combine``): then the bytes are gone through once.

A CRC is linear: that of two pieces is the first one's, moved on by the length of the second, XOR the second one's.
"""

from array import array
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np

_BITS = 32


def fold_checksums(values: "array[int]", size: int) -> int:
    """The CRC-32 of pieces in a row, each of ``size`` bytes; ``values`` are theirs, unsigned."""
    level = 0
    checksums: Any = np.frombuffer(values, np.uint32)
    while len(checksums) > 1:
        if len(checksums) % 2:
            checksums = np.concatenate(
                [np.zeros(1, np.uint32), checksums]
            )  # the CRC-32 of nothing, which changes nothing
        checksums = _move_checksums(checksums[::2], _tables(size, level)) ^ checksums[1::2]
        level += 1
    return int(checksums[0]) if len(checksums) else 0


@cache
def _tables(size: int, level: int) -> Any:
    """How the CRC-32 of something changes by ``size << level`` zero bytes: for each of its bytes, 256 numbers."""
    if level:
        half = _tables(size, level - 1)
        bits = _move_checksums(_move_checksums(np.uint32(1) << np.arange(_BITS, dtype=np.uint32), half), half)
    else:
        zeros = bytes(size)
        bits = np.array([crc32(zeros, 1 << bit) ^ crc32(zeros) for bit in range(_BITS)], np.uint32)
    tables: Any = np.zeros((4, 256), np.uint32)
    for bit in range(8):
        tables[:, 1 << bit : 2 << bit] = tables[:, : 1 << bit] ^ bits[bit::8, None]
    return tables


def _move_checksums(values: Any, tables: Any) -> Any:
    parts = [tables[byte][values >> np.uint32(8 * byte) & np.uint32(0xFF)] for byte in range(4)]
    return parts[0] ^ parts[1] ^ parts[2] ^ parts[3]
