"""The snapshot of a RocksDB state store: ``<version>[_<unique id>].zip`` (Spark ``RocksDBFileManager.zipToDfsFile``).

The zip holds MANIFEST, OPTIONS and CURRENT and, last, an entry ``metadata`` (Spark ``RocksDBCheckpointMetadata``):
``v1`` and a line of JSON. It is read from the last bytes of the zip alone. Spark 4.0 writes the state store checkpoint
format after the ``v``: ``v2`` in format 2, which no later version reads.

Spark itself (``unzipFilesFromFile``, Java's ``ZipInputStream``) reads a zip from the beginning, by local headers, and
never looks at its central directory. Measured on 4.2.0: a zip whose central directory is damaged or truncated loads.
"""

import json
import re
import struct
import zlib
from collections.abc import Iterator

from ckpt.formats.compression import Corrupt
from ckpt.formats.limits import LARGEST_ZIP
from ckpt.formats.operators import expect_type
from ckpt.model import Fault, Json, RocksDBSnapshot, Unreadable

TAIL_LENGTH = 1 << 16
"""How many bytes from the end of a zip are enough to read all but freakish ones."""

_END_LENGTH = 22
_END, _CENTRAL, _LOCAL, _DESCRIPTOR = b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04", b"PK\x07\x08"
_CENTRAL_HEADER = struct.Struct("<4s24xHHH8xI")
_ENTRY = b"metadata"
_VERSIONS = {b"v1": 1, b"v2": 2}
_LARGEST_METADATA = 1 << 22  # bytes: 25,000 SST files of one partition
_TOO_LARGE = f"its metadata entry has more than {_LARGEST_METADATA:,} bytes"
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _SIZES_FOLLOW = 1, 8
_FED, _PIECE = 1 << 16, 1 << 20  # bytes that are unpacked at a time, and that they unpack to at most
_NO_TABLES = b'"sstFiles":[]'
_NAME = re.compile(rb"metadata|CURRENT|IDENTITY|(MANIFEST|OPTIONS)-\d{6,}|\d{6,}\.(log|sst)|archive/\d{6,}\.log")
_MANIFEST = re.compile(rb"MANIFEST-\d{6,}")


class ZipTooLarge(ValueError):
    """Entries that are larger than ckpt unpacks; the text says so."""


def parse_zip_tail(path: str, tail: bytes, size: int) -> RocksDBSnapshot | Unreadable:
    """Read a zip's ``metadata`` entry from the last bytes of the file, which has ``size`` bytes in all.

    An Unreadable of fault EMPTY has zero bytes; INCOMPLETE lacks its central directory, as a file that was cut off
    does, or the tail does not reach back to the entry; TOO_LARGE has a ``metadata`` entry that is larger than ckpt
    reads; the others have one that cannot be read.
    """
    if size == 0 or not tail:
        return Unreadable(path, Fault.EMPTY, "the file is empty")
    base = size - len(tail)
    end = tail.rfind(_END)
    if end < 0 or len(tail) - end < _END_LENGTH:
        return Unreadable(path, Fault.INCOMPLETE, "it lacks the end of a zip")
    directory_length, directory_at = struct.unpack_from("<II", tail, end + 12)
    if directory_at + directory_length > base + end:
        return Unreadable(path, Fault.INCOMPLETE, "its central directory is not where its end says")
    too_short = Unreadable(path, Fault.INCOMPLETE, "its metadata entry is in front of its last bytes")
    if directory_at < base:
        return too_short
    try:
        offset = _find_entry(tail[directory_at - base : directory_at - base + directory_length])
        if offset < base:
            return too_short
        name, content, _ = _read_entry(tail, offset - base, _LARGEST_METADATA)
        if name != _ENTRY:
            raise Corrupt("its metadata entry is not where its central directory says")
    except ZipTooLarge:
        return Unreadable(path, Fault.TOO_LARGE, _TOO_LARGE)
    except Corrupt as error:
        return Unreadable(path, Fault.BAD_BINARY, str(error))
    return parse_metadata(path, content)


def _find_entry(directory: bytes) -> int:
    """Find the local header of ``metadata`` in the central directory. Raises Corrupt."""
    at = 0
    while at + _CENTRAL_HEADER.size <= len(directory):
        mark, name, extra, comment, local = _CENTRAL_HEADER.unpack_from(directory, at)
        if mark != _CENTRAL:
            raise Corrupt("its central directory cannot be followed")
        at += _CENTRAL_HEADER.size
        if directory[at : at + name] == _ENTRY:
            return int(local)
        at += name + extra + comment
    raise Corrupt("it has no entry called metadata")


def parse_metadata(path: str, content: bytes) -> RocksDBSnapshot | Unreadable:
    """Read the entry itself: a version line and JSON."""
    version, _, text = content.partition(b"\n")
    if version not in _VERSIONS:
        return Unreadable(path, Fault.BAD_VERSION, "its metadata entry does not start with v1 or v2")
    try:
        value = expect_type(dict, json.loads(text.decode()))
        keys, tables = value.get("numKeys"), value.get("sstFiles")
        families, internal = value.get("columnFamilyMapping"), value.get("columnFamilyTypeMap")
        families = expect_type(dict, {} if families is None else families)
        internal = internal if isinstance(internal, dict) else {}
        return RocksDBSnapshot(
            ssts=_files(tables, "dfsSstFileName"),
            logs=_files(value.get("logFiles"), "dfsLogFileName"),
            num_keys=keys if type(keys) is int and keys >= 0 else None,
            column_families={name: expect_type(int, number) for name, number in families.items()},
            internal_families=frozenset(name for name, own in internal.items() if own is True),
            version=_VERSIONS[version],
            local_names={
                file["localFileName"]: file["dfsSstFileName"]
                for file in tables or ()
                if isinstance(file.get("localFileName"), str)
            },
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return Unreadable(path, Fault.BAD_JSON, "its metadata entry is not the JSON that Spark writes")


def _files(value: Json, name_key: str) -> tuple[tuple[str, int], ...]:
    """Read names and sizes of ``sstFiles`` or ``logFiles``. Raises TypeError or KeyError where it is neither."""
    listed = expect_type(list, [] if value is None else value)
    files = tuple((file[name_key], file["sizeBytes"]) for file in listed)
    if not all(type(name) is str and type(size) is int for name, size in files):
        raise TypeError
    return files


def read_whole_zip(path: str, data: bytes) -> RocksDBSnapshot | Unreadable:
    """Read the entry ``metadata`` of a zip without looking at its end, as Spark does."""
    try:
        content = {name: content for name, content, _ in _read_entries(data)}.get(_ENTRY)
    except ZipTooLarge:
        return Unreadable(path, Fault.TOO_LARGE, f"it unpacks to more than {LARGEST_ZIP:,} bytes")
    except Corrupt as error:
        return Unreadable(path, Fault.BAD_BINARY, str(error))
    if content is None:
        return Unreadable(path, Fault.INCOMPLETE, "it has no entry called metadata")
    if len(content) > _LARGEST_METADATA:
        return Unreadable(path, Fault.TOO_LARGE, _TOO_LARGE)
    return parse_metadata(path, content)


def read_zip(data: bytes) -> tuple[dict[str, bytes], int]:
    """Every entry, compared with CRC-32 and sizes, and where the last one ends. Raises Corrupt or ZipTooLarge."""
    at, entries = 0, dict[str, bytes]()
    for name, content, at in _read_entries(data):
        if not _NAME.fullmatch(name) or name.decode() in entries:
            raise Corrupt(f"the entry that ends at byte {at:,} is called {ascii(name[:50])[1:]}")
        entries[name.decode()] = content
    if entries.keys() == {"metadata"} and _NO_TABLES in entries["metadata"]:
        return entries, at  # an empty store: RocksDB makes the database then
    missing = {"metadata", "CURRENT"} - entries.keys()
    if missing:
        raise Corrupt(f"it has no entry called {min(missing)}")
    manifest = entries["CURRENT"].rstrip(b"\n")
    if not _MANIFEST.fullmatch(manifest) or manifest.decode() not in entries:
        raise Corrupt(f"it has no entry called {ascii(manifest[:50])[2:-1]}, which CURRENT names")
    return entries, at


def _read_entries(data: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """Name and content of each entry, and where it ends. Raises Corrupt or ZipTooLarge."""
    at = unpacked = 0
    while data.startswith(_LOCAL, at):
        name, content, at = _read_entry(data, at, LARGEST_ZIP - unpacked)
        unpacked += len(content)
        yield name, content, at


def _read_entry(data: bytes, at: int, room: int) -> tuple[bytes, bytes, int]:
    """Name and content of the entry whose header is at ``at``, and where it ends. Raises Corrupt or ZipTooLarge."""
    entry = f"the entry at byte {at:,}"
    if not data.startswith(_LOCAL, at):
        raise Corrupt("its metadata entry is not where its central directory says")
    try:
        _, flags, method, _, checksum, packed, length, size, extra = struct.unpack_from("<HHHIIIIHH", data, at + 4)
        name, start = data[at + 30 : at + 30 + size], at + 30 + size + extra
        if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED) or (method == _STORED and flags & _SIZES_FOLLOW):
            raise Corrupt(f"{entry} has an impossible header")
        if method == _STORED:
            content, end = data[start : start + packed], start + packed
        else:
            content, end = _inflate(data, start, room if flags & _SIZES_FOLLOW else min(length, room))
        if len(content) > room:
            raise ZipTooLarge(f"with {entry} it unpacks to more than {LARGEST_ZIP:,} bytes")
        packed_seen = end - start
        if flags & _SIZES_FOLLOW and end >= 0:
            end += 4 if data[end : end + 4] == _DESCRIPTOR else 0
            checksum, packed, length = struct.unpack_from("<III", data, end)
            end += 12
    except struct.error:
        raise Corrupt("one of its entries is truncated") from None
    except zlib.error:
        raise Corrupt(f"{entry} cannot be unpacked") from None
    if not 0 <= end <= len(data):
        raise Corrupt(f"{entry} is truncated")
    # Java refuses all of these, also what has more than its header says (``ZipInputStream.readEnd``)
    if (zlib.crc32(content), packed_seen, len(content)) != (checksum, packed, length):
        raise Corrupt(f"{entry} does not match its checksum")
    return name, content, end


def _inflate(data: bytes, at: int, most: int) -> tuple[bytes, int]:
    """The content of a deflated entry, and where it ends: -1 where it is cut off. Stops behind ``most`` bytes.

    Raises zlib.error.
    """
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    content, todo = bytearray(), b""
    while not inflater.eof and len(content) <= most:
        if not todo:
            todo = data[at : at + _FED]
            at += len(todo)
        piece = inflater.decompress(todo, _PIECE)
        todo = inflater.unconsumed_tail
        content += piece
        if not piece and not todo and at >= len(data) and not inflater.eof:
            return bytes(content), -1
    return bytes(content), at - len(inflater.unused_data)
