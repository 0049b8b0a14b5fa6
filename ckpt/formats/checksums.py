"""The checksums in state files, from packages that compute them a hundred times faster than Python."""

from array import array
from functools import cache
from zlib import crc32

from ckpt.errors import CkptError
from ckpt.extras import install_command

try:
    import google_crc32c
    import numpy as np
    import xxhash as xxhash  # used by the modules that import it from here: one place says what is missing
except ImportError as error:
    raise CkptError(
        f"verifying every byte needs the packages xxhash and google-crc32c: {install_command('native')}"
    ) from error

_LZ4_SEED = 0x9747B28C  # LZ4BlockOutputStream.DEFAULT_SEED
_LZ4_BITS = 0x0FFFFFFF  # lz4-java's StreamingXXHash32.asChecksum drops the uppermost four
_BITS = 32


def of_lz4_block(data: bytes) -> int:
    """Return the checksum that the header of an LZ4 block records of its decompressed bytes."""
    return int(xxhash.xxh32_intdigest(data, _LZ4_SEED)) & _LZ4_BITS


def crc32c(data: bytes, before: int = 0) -> int:
    """CRC-32C of some bytes, unsigned; ``before`` is that of the bytes in front of them."""
    return int(google_crc32c.extend(before, data))


def fold_checksums(values: "array[int]", size: int) -> int:
    """CRC-32 of pieces in a row, each of ``size`` bytes (zlib's ``crc32_combine``); ``values`` has theirs, unsigned.

    A CRC is linear: that of two pieces is the first one's, moved on by the length of the second, XOR the second one's.
    """
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
def _tables(size: int, level: int) -> np.ndarray:
    """How the CRC-32 of something changes by ``size << level`` zero bytes: for each of its bytes, 256 numbers."""
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


def _move_checksums(values: np.ndarray, tables: np.ndarray) -> np.ndarray:
    parts = [tables[byte][values >> np.uint32(8 * byte) & np.uint32(0xFF)] for byte in range(4)]
    return parts[0] ^ parts[1] ^ parts[2] ^ parts[3]
