"""The checksums in state files, from packages that compute them a hundred times faster than Python.

Without these packages ckpt computes those of deltas and changelogs itself, and compares no SST file.
"""

from array import array
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from zlib import crc32

from ckpt.formats.compression import CHECKSUM_BITS, SEED, checksum_of

if TYPE_CHECKING:
    import numpy as np

FAST = all(find_spec(name) is not None for name in ("google_crc32c", "xxhash"))
"""False where one of these packages is missing."""

if FAST or TYPE_CHECKING:
    import xxhash as xxhash  # used by the modules that import it from here: one place says what is missing
else:
    xxhash = None

_CASTAGNOLI = 0x82F63B78
_BITS = 32
_WORD = 0xFFFFFFFF


def of_lz4_block(data: bytes) -> int:
    """Return the checksum that the header of an LZ4 block records of its decompressed bytes."""
    return int(xxhash.xxh32_intdigest(data, SEED)) & CHECKSUM_BITS if FAST else checksum_of(data)


def crc32c(data: bytes, before: int = 0) -> int:
    """CRC-32C of some bytes, unsigned; ``before`` is that of the bytes in front of them."""
    if FAST:
        import google_crc32c  # not at the top: few files need it

        return int(google_crc32c.extend(before, data))
    table, crc = _crc32c_table(), before ^ _WORD
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ _WORD


@cache
def _crc32c_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_CASTAGNOLI if value & 1 else 0)
        table.append(value)
    return tuple(table)


def fold_checksums(values: "array[int]", size: int) -> int:
    """CRC-32 of pieces in a row, each of ``size`` bytes (zlib's ``crc32_combine``); ``values`` has theirs, unsigned.

    A CRC is linear: that of two pieces is the first one's, moved on by the length of the second, XOR the second one's.
    """
    import numpy as np  # not at the top: it takes longer than a look at a small checkpoint

    level = 0
    checksums: np.ndarray = np.frombuffer(values, np.uint32)
    while len(checksums) > 1:
        if len(checksums) % 2:
            # in front the CRC-32 of nothing, which changes nothing
            checksums = np.concatenate([np.zeros(1, np.uint32), checksums])
        checksums = _move_checksums(checksums[::2], _tables(size, level)) ^ checksums[1::2]
        level += 1
    return int(checksums[0]) if len(checksums) else 0


@cache
def _tables(size: int, level: int) -> "np.ndarray":
    """How the CRC-32 of something changes by ``size << level`` zero bytes: for each of its bytes, 256 numbers."""
    import numpy as np

    if level:
        half = _tables(size, level - 1)
        bits = _move_checksums(_move_checksums(np.uint32(1) << np.arange(_BITS, dtype=np.uint32), half), half)
    else:
        zeros = bytes(size)
        bits = np.array([crc32(zeros, 1 << bit) ^ crc32(zeros) for bit in range(_BITS)], np.uint32)
    tables: np.ndarray = np.zeros((4, 256), np.uint32)
    for bit in range(8):
        tables[:, 1 << bit : 2 << bit] = tables[:, : 1 << bit] ^ bits[bit::8, None]
    return tables


def _move_checksums(values: "np.ndarray", tables: "np.ndarray") -> "np.ndarray":
    import numpy as np

    parts = [tables[byte][values >> np.uint32(8 * byte) & np.uint32(0xFF)] for byte in range(4)]
    return parts[0] ^ parts[1] ^ parts[2] ^ parts[3]
