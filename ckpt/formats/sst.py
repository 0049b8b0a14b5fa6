"""Every block of an SST file: RocksDB's block-based table, whose blocks each end with a type byte and a checksum.

The footer leads to the index of the data blocks and to the metaindex of all others (properties, filters); together
they cover the file without a gap. Spark sets format version 5 (``RocksDB.tableFormatConfig``); from 6 on checksums are
computed in another way.
"""

import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeAlias

from ckpt.formats.blockstream import SMALL_BLOCK, Pieces
from ckpt.formats.checksums import FAST, crc32c, xxhash
from ckpt.formats.compression import Corrupt, read_varint, unpack_block

FOOTER = 53  # bytes: checksum type, two handles padded to 40, format version, magic number
_MAGIC = 0x88E241B785F4CFF7
_VERSIONS, _NEWER_VERSIONS = range(2, 6), range(6, 32)
_TRAILER = 5  # type of compression, checksum
_SEQUENCE = 8  # bytes after each key: type and sequence number
_LARGEST_BLOCK = 256 << 20  # bytes that are in memory at once
_LARGEST_INDEX = 64 << 20  # bytes of an index when it is decompressed
_WORD = 0xFFFFFFFF
_LAST_BYTE_PRIME = 0x6B9083D9  # RocksDB's ModifyChecksumForLastByte
_MASK_DELTA = 0xA282EAD8  # RocksDB's crc32c::Mask
_COMPRESSIONS = {1: "snappy", 4: "lz4_raw", 5: "lz4_raw", 7: "zstd"}


def _masked_crc32c(data: bytes) -> int:
    checksum = crc32c(data)
    return (checksum >> 15 | checksum << 17) + _MASK_DELTA & _WORD


_CHECKSUMS: dict[int, Callable[[bytes], int]] = {
    0: lambda _: 0,
    1: _masked_crc32c,
    2: lambda data: xxhash.xxh32_intdigest(data),
    3: lambda data: xxhash.xxh64_intdigest(data) & _WORD,
    4: lambda data: xxhash.xxh3_64_intdigest(data[:-1]) & _WORD ^ data[-1] * _LAST_BYTE_PRIME & _WORD,  # since 6.27
}
"""By the number in the footer, of a block and its type byte: none, kCRC32c, kxxHash, kxxHash64, kXXH3 (the default)."""


class UnknownTable(ValueError):
    """A table that RocksDB may read and ckpt does not; the text says why."""


class CorruptData(Corrupt):
    """A block of data: RocksDB opens the table, and fails when it reads the block."""


_Handle: TypeAlias = tuple[int, int]
"""Where a block begins, and its size without its trailer."""

ReadRange: TypeAlias = Callable[[int, int], bytes]
"""Bytes of a file from an offset on, as many as are asked for; fewer where it ends."""


def check_footer(end: bytes) -> tuple[int, int]:
    """The last bytes of a file, at least ``FOOTER`` if it has them: version of the format and type of checksums.

    Raises Corrupt or UnknownTable.
    """
    if len(end) < FOOTER:
        raise Corrupt(f"its {len(end)} bytes are too few for an SST file")
    version, magic = struct.unpack_from("<IQ", end, len(end) - 12)
    if magic != _MAGIC:
        raise Corrupt("it does not end like an SST file")
    kind = end[len(end) - FOOTER]
    if version in _NEWER_VERSIONS:
        raise UnknownTable(f"its format version {version} is unknown to ckpt")
    if version not in _VERSIONS or kind not in _CHECKSUMS:
        raise Corrupt(f"its footer names version {version} of the format and checksums of type {kind}")
    if not FAST and kind:
        raise UnknownTable("comparing its checksums needs the package xxhash")
    return version, kind


def check_sst(read: ReadRange, size: int, content: Pieces) -> None:
    """Compare every block of a file of ``size`` bytes with its checksum; ``content`` is read to the end of its data.

    Raises Corrupt (CorruptData if all but data is intact) or UnknownTable.
    """
    footer = read(max(size - FOOTER, 0), FOOTER)
    version, kind = check_footer(footer)
    table = _Table(read, size - FOOTER, _CHECKSUMS[kind])
    try:
        metaindex, at = _handle(footer, 1)
        index, _ = _handle(footer, at)
        others = [_handle(value, 0)[0] for _, value in _entries(table.unpack(metaindex), "metaindex")]
        for other in others:
            table.check(other)
        table.check_data(_data_blocks(table.unpack(index), deltas=version >= 4), content)
    except (IndexError, struct.error):
        raise Corrupt("its index cannot be followed") from None
    at = content.at
    for offset, length in sorted([metaindex, index, *others]):
        _follow(offset, at)
        at += length + _TRAILER
    _follow(size - FOOTER, at)


def first_keys(data: bytes) -> Iterator[bytes]:
    """The keys in the first block of data of a table, as they are stored. Raises as ``check_sst``."""
    version, kind = check_footer(data)
    footer = data[-FOOTER:]
    table = _Table(lambda offset, size: data[offset : offset + size], len(data) - FOOTER, _CHECKSUMS[kind])
    index, _ = _handle(footer, _handle(footer, 1)[1])
    for block in islice(_data_blocks(table.unpack(index), deltas=version >= 4), 1):
        yield from (key[:-_SEQUENCE] for key, _ in _entries(table.unpack(block), "block of data"))


def _follow(offset: int, at: int) -> None:
    if offset != at:
        raise Corrupt(f"its index names no block at byte {at:,}")


class _Table:
    def __init__(self, read: ReadRange, end: int, checksum: Callable[[bytes], int]) -> None:
        self._read, self._end, self._checksum = read, end, checksum

    def check(self, block: _Handle) -> bytes:
        """One block and its type, compared with its checksum. Raises Corrupt, UnknownTable."""
        offset, size = block
        self._bound(offset, size)
        return self._compare(offset, self._read(offset, size + _TRAILER))

    def check_data(self, blocks: Iterable[_Handle], content: Pieces) -> None:
        """All blocks of data, which are in front of all others. Raises Corrupt, UnknownTable."""
        at = 0
        for offset, size in blocks:
            _follow(offset, at)
            self._bound(offset, size)
            at += size + _TRAILER
            try:
                self._compare(offset, content.take(size + _TRAILER))
            except Corrupt as error:
                raise CorruptData(str(error)) from None

    def _bound(self, offset: int, size: int) -> None:
        if offset + size + _TRAILER > self._end:
            raise Corrupt(f"its index names a block at byte {offset:,}, beyond its end")
        if size > _LARGEST_BLOCK:
            raise UnknownTable(f"it has a block of {size:,} bytes")

    def _compare(self, offset: int, block: bytes) -> bytes:
        content = block[:-4]
        if self._checksum(content) != int.from_bytes(block[-4:], "little"):
            raise Corrupt(f"the block at byte {offset:,} does not match its checksum")
        return content

    def unpack(self, block: _Handle) -> bytes:
        """A block of entries, compared and decompressed. Raises Corrupt, UnknownTable."""
        content = self.check(block)
        kind, body = content[-1], content[:-1]
        if kind == 0:
            return body
        if kind not in _COMPRESSIONS:
            raise UnknownTable(f"its blocks use compression type {kind}, which ckpt does not know")
        length, at = read_varint(body, 0)
        if length > _LARGEST_INDEX:
            raise UnknownTable(f"its index unpacks to {length:,} bytes")
        try:
            return _decompress(_COMPRESSIONS[kind], body if kind == 1 else body[at:], length)
        except (ValueError, OSError):  # pyarrow's ArrowInvalid is a ValueError
            raise Corrupt(f"the block at byte {block[0]:,} cannot be decompressed") from None


def _decompress(codec: str, body: bytes, length: int) -> bytes:
    if codec == "lz4_raw" and len(body) <= SMALL_BLOCK and "pyarrow" not in sys.modules:
        return unpack_block(body, length)[0]
    import pyarrow as pa

    return bytes(pa.Codec(codec).decompress(body, length, asbytes=True))


def _handle(data: bytes, at: int) -> tuple[_Handle, int]:
    offset, at = read_varint(data, at)
    size, at = read_varint(data, at)
    return (offset, size), at


def _end_of_entries(block: bytes) -> int:
    """Entries are followed by restart points and their number; its uppermost bit says how the block is hashed."""
    (restarts,) = struct.unpack_from("<I", block, len(block) - 4)
    return len(block) - 4 - 4 * (int(restarts) & 0x7FFFFFFF)


def _entries(block: bytes, what: str) -> Iterator[tuple[bytes, bytes]]:
    at, end, key = 0, _end_of_entries(block), b""
    while at < end:
        shared, at = read_varint(block, at)
        unshared, at = read_varint(block, at)
        length, at = read_varint(block, at)
        key = key[:shared] + block[at : at + unshared]
        at += unshared + length
        yield key, block[at - length : at]
    if at != end:
        raise Corrupt(f"its {what} cannot be followed")


def _data_blocks(index: bytes, *, deltas: bool) -> Iterator[_Handle]:
    """Return the handles in an index; since version 4 one that shares its key with the one before is a difference."""
    if not deltas:
        yield from (_handle(value, 0)[0] for _, value in _entries(index, "index"))
        return
    at, end, offset, size = 0, _end_of_entries(index), 0, 0
    while at < end:
        shared, at = read_varint(index, at)
        unshared, at = read_varint(index, at)
        at += unshared
        if shared:
            offset += size + _TRAILER
            change, at = read_varint(index, at)
            size += (change >> 1) ^ -(change & 1)
        else:
            offset, at = read_varint(index, at)
            size, at = read_varint(index, at)
        yield offset, size
