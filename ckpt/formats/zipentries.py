"""Every entry of a RocksDB zip, read as Java's ``ZipInputStream`` does: from the beginning, by local headers.

``RocksDBFileManager`` never looks at the central directory.
"""

import re
import struct
import zlib

from ckpt.formats.checksums import Corrupt
from ckpt.formats.limits import LARGEST_ZIP

_LOCAL, _DESCRIPTOR = b"PK\x03\x04", b"PK\x07\x08"
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _SIZES_FOLLOW = 1, 8
_FED, _PIECE = 1 << 16, 1 << 20  # bytes that are unpacked at a time, and that they unpack to at most
_NO_TABLES = b'"sstFiles":[]'
_NAME = re.compile(rb"metadata|CURRENT|IDENTITY|(MANIFEST|OPTIONS)-\d{6,}|\d{6,}\.(log|sst)|archive/\d{6,}\.log")


def check_zip(data: bytes) -> int:
    """Compare every entry with its CRC-32 and its sizes, and say where the last one ends. Raises Corrupt."""
    at, found, unpacked = 0, dict[bytes, bytes](), 0
    try:
        while data[at : at + 4] == _LOCAL:
            name, content, length, at = _entry(data, at, LARGEST_ZIP - unpacked)
            unpacked += length
            if not _NAME.fullmatch(name) or name in found:
                raise Corrupt(f"the entry that ends at byte {at:,} is called {ascii(name[:50])[1:]}")
            found[name] = content
    except struct.error:
        raise Corrupt("one of its entries is cut off") from None
    if found.keys() == {b"metadata"} and _NO_TABLES in found[b"metadata"]:
        return at  # an empty store: RocksDB makes the database then
    missing = {b"metadata", b"CURRENT"} - found.keys()
    if missing:
        raise Corrupt(f"it has no entry called {min(missing).decode()}")
    manifest = found[b"CURRENT"].rstrip(b"\n")
    if manifest not in found:
        raise Corrupt(f"it has no entry called {ascii(manifest[:50])[2:-1]}, which CURRENT names")
    return at


def _entry(data: bytes, at: int, room: int) -> tuple[bytes, bytes, int, int]:
    """Name, first bytes and length of the entry whose header is at ``at``, and where it ends."""
    _, flags, method, _, checksum, packed, length, name_length, extra = struct.unpack_from("<HHHIIIIHH", data, at + 4)
    name = data[at + 30 : at + 30 + name_length]
    start = at + 30 + name_length + extra
    place = f"the entry at byte {at:,}"
    if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED) or (method == _STORED and flags & _SIZES_FOLLOW):
        raise Corrupt(f"{place} has an impossible header")
    if method == _STORED:
        end = start + packed
        content = data[start:end]
        seen, found = len(content), zlib.crc32(content)
    else:
        content, seen, found, end = _inflated(data, start, room, place)
    packed_seen = end - start
    if flags & _SIZES_FOLLOW:
        end += 4 if data[end : end + 4] == _DESCRIPTOR else 0
        checksum, packed, length = struct.unpack_from("<III", data, end)
        end += 12
    if end > len(data):
        raise Corrupt(f"{place} is cut off")
    if (found, packed_seen, seen) != (checksum, packed, length):
        raise Corrupt(f"{place} does not match its checksum")
    return name, content, seen, end


def _inflated(data: bytes, start: int, room: int, place: str) -> tuple[bytes, int, int, int]:
    """The first bytes, the length and the CRC-32 of a deflated entry, and where it ends."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    kept, length, checksum, todo, at = b"", 0, 0, b"", start
    try:
        while not inflater.eof:
            if not todo:
                todo = data[at : at + _FED]
                at += len(todo)
            piece = inflater.decompress(todo, _PIECE)
            todo = inflater.unconsumed_tail
            kept = kept or piece[:64]
            length += len(piece)
            checksum = zlib.crc32(piece, checksum)
            if length > room:
                raise Corrupt(f"{place} unpacks to more than {LARGEST_ZIP:,} bytes in all")
            if not piece and not todo and at >= len(data) and not inflater.eof:
                raise Corrupt(f"{place} is cut off")
    except zlib.error:
        raise Corrupt(f"{place} cannot be unpacked") from None
    return kept, length, checksum, at - len(inflater.unused_data)
