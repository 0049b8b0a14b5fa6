"""The checksums in state files, from packages that compute them a hundred times faster than Python."""

from ckpt.errors import CkptError

try:
    import google_crc32c
    import xxhash
except ImportError as error:
    raise CkptError(
        "verifying every byte needs the packages xxhash and google-crc32c: pip install 'spark-ckpt[native]'"
    ) from error

_LZ4_SEED = 0x9747B28C  # LZ4BlockOutputStream.DEFAULT_SEED
_LZ4_BITS = 0x0FFFFFFF  # lz4-java's StreamingXXHash32.asChecksum drops the uppermost four
_WORD = 0xFFFFFFFF
_LAST_BYTE_PRIME = 0x6B9083D9  # RocksDB's ModifyChecksumForLastByte
_MASK_DELTA = 0xA282EAD8  # RocksDB's crc32c::Mask


class Corrupt(ValueError):
    """Bytes that do not match their checksum, or are not of their format: the text says where."""


def of_lz4_block(data: bytes) -> int:
    """Return the checksum that the header of an LZ4 block records of its decompressed bytes."""
    return int(xxhash.xxh32_intdigest(data, _LZ4_SEED)) & _LZ4_BITS


def of_sst_block_xxh3(data: memoryview) -> int:
    """Return the checksum that RocksDB writes behind a block and its type byte (``kXXH3``, the default since 6.27)."""
    last = data[-1] * _LAST_BYTE_PRIME & _WORD
    return int(xxhash.xxh3_64_intdigest(data[:-1])) & _WORD ^ last


def of_sst_block_xxhash(data: memoryview) -> int:
    """Return the checksum of a block in files of ``kxxHash``."""
    return int(xxhash.xxh32_intdigest(data))


def of_sst_block_xxhash64(data: memoryview) -> int:
    """Return the checksum of a block in files of ``kxxHash64``."""
    return int(xxhash.xxh64_intdigest(data)) & _WORD


def of_sst_block_crc32c(data: memoryview) -> int:
    """Return the checksum of a block in older files (``kCRC32c``)."""
    checksum = crc32c(bytes(data))
    return (checksum >> 15 | checksum << 17) + _MASK_DELTA & _WORD


def crc32c(data: bytes, before: int = 0) -> int:
    """CRC-32C of some bytes, unsigned; ``before`` is that of the bytes in front of them."""
    return int(google_crc32c.extend(before, data))
