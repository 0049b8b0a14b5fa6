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
_MANIFEST = re.compile(rb"MANIFEST-\d{6,}")


class ZipTooLarge(ValueError):
    """Entries that are larger than ckpt unpacks; the text says so."""


def read_zip(data: bytes) -> tuple[dict[str, bytes], int]:
    """Every entry, compared with CRC-32 and sizes, and where the last one ends. Raises Corrupt or ZipTooLarge."""
    at, entries, unpacked = 0, dict[str, bytes](), 0
    try:
        while data[at : at + 4] == _LOCAL:
            name, content, at = _entry(data, at, LARGEST_ZIP - unpacked)
            unpacked += len(content)
            if not _NAME.fullmatch(name) or name.decode() in entries:
                raise Corrupt(f"the entry that ends at byte {at:,} is called {ascii(name[:50])[1:]}")
            entries[name.decode()] = content
    except struct.error:
        raise Corrupt("one of its entries is cut off") from None
    if entries.keys() == {"metadata"} and _NO_TABLES in entries["metadata"]:
        return entries, at  # an empty store: RocksDB makes the database then
    missing = {"metadata", "CURRENT"} - entries.keys()
    if missing:
        raise Corrupt(f"it has no entry called {min(missing)}")
    manifest = entries["CURRENT"].rstrip(b"\n")
    if not _MANIFEST.fullmatch(manifest) or manifest.decode() not in entries:
        raise Corrupt(f"it has no entry called {ascii(manifest[:50])[2:-1]}, which CURRENT names")
    return entries, at


def _entry(data: bytes, at: int, room: int) -> tuple[bytes, bytes, int]:
    """Name and content of the entry whose header is at ``at``, and where it ends."""
    _, flags, method, _, checksum, packed, length, name_length, extra = struct.unpack_from("<HHHIIIIHH", data, at + 4)
    name = data[at + 30 : at + 30 + name_length]
    start = at + 30 + name_length + extra
    entry = f"the entry at byte {at:,}"
    if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED) or (method == _STORED and flags & _SIZES_FOLLOW):
        raise Corrupt(f"{entry} has an impossible header")
    if method == _STORED:
        end = start + packed
        content = data[start:end]
        if len(content) > room:
            raise _too_large(entry)
    else:
        content, end = _inflate(data, start, room, entry)
    packed_seen = end - start
    if flags & _SIZES_FOLLOW:
        end += 4 if data[end : end + 4] == _DESCRIPTOR else 0
        checksum, packed, length = struct.unpack_from("<III", data, end)
        end += 12
    if end > len(data):
        raise Corrupt(f"{entry} is cut off")
    if (zlib.crc32(content), packed_seen, len(content)) != (checksum, packed, length):
        raise Corrupt(f"{entry} does not match its checksum")
    return name, content, end


def _inflate(data: bytes, start: int, room: int, entry: str) -> tuple[bytes, int]:
    """A deflated entry, and where it ends."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    pieces, length, todo, at = [], 0, b"", start
    try:
        while not inflater.eof:
            if not todo:
                todo = data[at : at + _FED]
                at += len(todo)
            piece = inflater.decompress(todo, _PIECE)
            todo = inflater.unconsumed_tail
            pieces.append(piece)
            length += len(piece)
            if length > room:
                raise _too_large(entry)
            if not piece and not todo and at >= len(data) and not inflater.eof:
                raise Corrupt(f"{entry} is cut off")
    except zlib.error:
        raise Corrupt(f"{entry} cannot be unpacked") from None
    return b"".join(pieces), at - len(inflater.unused_data)


def _too_large(entry: str) -> ZipTooLarge:
    return ZipTooLarge(f"with {entry} it unpacks to more than {LARGEST_ZIP:,} bytes")
