"""The snapshot of a RocksDB state store: ``<version>[_<unique id>].zip`` (Spark ``RocksDBFileManager.zipToDfsFile``).

The zip holds MANIFEST, OPTIONS and CURRENT and, last, an entry ``metadata`` (Spark ``RocksDBCheckpointMetadata``):
``v1`` and a line of JSON. It is read from the last bytes of the zip alone. Spark 4.0 writes the state store checkpoint
format after the ``v``: ``v2`` in format 2, which no later version reads.
"""

import json
import struct
import zlib
from dataclasses import dataclass

from ckpt.formats.limits import LARGEST_ZIP
from ckpt.model import Fault, Json, RocksDBSnapshot, Unreadable

TAIL_LENGTH = 1 << 16
"""How many bytes from the end of a zip are enough to read all but freakish ones."""

_END_LENGTH = 22
_END, _CENTRAL, _LOCAL = b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04"
_ENTRY = b"metadata"
_VERSIONS = {b"v1": 1, b"v2": 2}
_LARGEST_METADATA = 1 << 22  # bytes: 25,000 SST files of one partition
_PIECE = 1 << 20  # bytes that are unpacked at a time
_DESCRIPTOR = b"PK\x07\x08"
_STORED, _DEFLATED = 0, 8
_SIZES_FOLLOW = 8


@dataclass(frozen=True, slots=True)
class NeedsMore:
    """The tail that was read does not reach back far enough: read from ``offset`` (in the file) to the end."""

    offset: int


@dataclass(frozen=True, slots=True)
class _Entry:
    """The entry ``metadata`` as the central directory describes it."""

    offset: int  # of its local header, from the beginning of the file
    compressed: int
    decompressed: int
    method: int


class _BadZip(ValueError):
    """The text says why."""


class _LargeMetadata(_BadZip):
    """Not read: it is larger than anything Spark writes."""


def parse_zip_tail(path: str, tail: bytes, size: int) -> RocksDBSnapshot | NeedsMore | Unreadable:
    """Read a zip's ``metadata`` entry from the last bytes of the file, which has ``size`` bytes in all.

    An Unreadable of fault EMPTY has zero bytes; INCOMPLETE lacks its central directory, as a file that was cut off
    does; TOO_LARGE has a ``metadata`` entry that is larger than ckpt reads; the others have one that cannot be read.
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
    if directory_at < base:
        return NeedsMore(directory_at)
    try:
        entry = _find_entry(tail[directory_at - base : directory_at - base + directory_length])
        if entry.offset < base:
            return NeedsMore(entry.offset)
        content = _content(tail, entry, base)
    except _LargeMetadata:
        return Unreadable(path, Fault.TOO_LARGE, f"its metadata entry has more than {_LARGEST_METADATA:,} bytes")
    except _BadZip as error:
        return Unreadable(path, Fault.BAD_BINARY, str(error))
    except (struct.error, zlib.error):
        return Unreadable(path, Fault.BAD_BINARY, "its zip structure cannot be followed")
    return parse_metadata(path, content)


def _find_entry(directory: bytes) -> _Entry:
    """Find ``metadata`` in the central directory."""
    at = 0
    while at + 46 <= len(directory):
        if directory[at : at + 4] != _CENTRAL:
            raise _BadZip("its central directory cannot be followed")
        method = struct.unpack_from("<H", directory, at + 10)[0]
        compressed, decompressed, name, extra, comment = struct.unpack_from("<IIHHH", directory, at + 20)
        offset = struct.unpack_from("<I", directory, at + 42)[0]
        if directory[at + 46 : at + 46 + name] == _ENTRY:
            return _Entry(offset, compressed, decompressed, method)
        at += 46 + name + extra + comment
    raise _BadZip("it has no entry called metadata")


def _content(tail: bytes, entry: _Entry, base: int) -> bytes:
    """Decompress an entry whose local header is in the tail."""
    at = entry.offset - base
    if tail[at : at + 4] != _LOCAL:
        raise _BadZip("its metadata entry is not where its central directory says")
    name, extra = struct.unpack_from("<HH", tail, at + 26)
    start = at + 30 + name + extra
    data = tail[start : start + entry.compressed]
    if entry.decompressed > _LARGEST_METADATA:
        raise _LargeMetadata
    if len(data) < entry.compressed:
        raise _BadZip("its metadata entry is truncated")
    if entry.method == _STORED:
        return data
    if entry.method != _DEFLATED:
        raise _BadZip("its metadata entry is compressed in an unknown way")
    content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, _LARGEST_METADATA)
    if len(content) != entry.decompressed:
        raise _BadZip("its metadata entry is truncated")
    return content


def _inflate(data: bytes, start: int, keep: int) -> tuple[bytes, int, int]:
    """The first ``keep`` bytes of a deflated entry, how many it has, and where it ends: -1 where it is cut off.

    Stops once there are more than ``LARGEST_ZIP``. Raises zlib.error.
    """
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    kept, length, todo = b"", 0, data[start:]
    while not inflater.eof and length <= LARGEST_ZIP:
        piece = inflater.decompress(todo, _PIECE)
        todo = inflater.unconsumed_tail
        kept += piece[: max(keep - length, 0)]
        length += len(piece)
        if not piece and not todo:
            break
    return kept, length, len(data) - len(inflater.unused_data) if inflater.eof or length > LARGEST_ZIP else -1


def parse_metadata(path: str, content: bytes) -> RocksDBSnapshot | Unreadable:
    """Read the entry itself: a version line and JSON."""
    version, _, text = content.partition(b"\n")
    if version not in _VERSIONS:
        return Unreadable(path, Fault.BAD_VERSION, "its metadata entry does not start with v1 or v2")
    try:
        value: Json = json.loads(text.decode())
        if not isinstance(value, dict):
            raise TypeError
        keys = value.get("numKeys")
        return RocksDBSnapshot(
            ssts=_files(value.get("sstFiles"), "dfsSstFileName"),
            logs=_files(value.get("logFiles"), "dfsLogFileName"),
            num_keys=keys if type(keys) is int and keys >= 0 else None,
            column_families=_families(value.get("columnFamilyMapping")),
            internal_families=_internal(value.get("columnFamilyTypeMap")),
            version=_VERSIONS[version],
            local_names=_local_names(value.get("sstFiles")),
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return Unreadable(path, Fault.BAD_JSON, "its metadata entry is not the JSON that Spark writes")


def _internal(value: Json) -> frozenset[str]:
    return (
        frozenset(name for name, internal in value.items() if internal is True)
        if isinstance(value, dict)
        else frozenset()
    )


def _files(value: Json, name_key: str) -> tuple[tuple[str, int], ...]:
    """Read names and sizes of ``sstFiles`` or ``logFiles``. Raises TypeError or KeyError where it is neither."""
    files: list[tuple[str, int]] = []
    if value is None:
        return ()
    if not isinstance(value, list):
        raise TypeError
    for item in value:
        if not isinstance(item, dict):
            raise TypeError
        name, size = item[name_key], item["sizeBytes"]
        if not isinstance(name, str) or type(size) is not int:
            raise TypeError
        files.append((name, size))
    return tuple(files)


def _local_names(value: Json) -> dict[str, str]:
    """The names of SST files inside the database. Raises KeyError as ``_files`` does."""
    names: dict[str, str] = {}
    for item in value if isinstance(value, list) else []:
        local, name = (item.get("localFileName"), item["dfsSstFileName"]) if isinstance(item, dict) else (None, None)
        if isinstance(local, str) and isinstance(name, str):
            names[local] = name
    return names


def _families(value: Json) -> dict[str, int]:
    """Read ``columnFamilyMapping``. Raises TypeError where it is something else."""
    if value is not None and not isinstance(value, dict):
        raise TypeError
    families = {name: number for name, number in (value or {}).items() if type(number) is int}
    if len(families) < len(value or {}):
        raise TypeError
    return families


def read_whole_zip(path: str, data: bytes) -> RocksDBSnapshot | Unreadable:
    """Read a zip without looking at its end, entry by entry from the beginning, as Spark does (``unzipFilesFromFile``).

    Measured on Spark 4.2.0: a zip whose central directory is damaged or truncated loads anyway.
    """
    at, content, unpacked = 0, None, 0
    try:
        while data[at : at + 4] == _LOCAL:
            flags, method = struct.unpack_from("<HH", data, at + 6)
            compressed, _, name_length, extra = struct.unpack_from("<IIHH", data, at + 18)
            name = data[at + 30 : at + 30 + name_length]
            start = at + 30 + name_length + extra
            if method == _DEFLATED:
                entry, length, at = _inflate(data, start, _LARGEST_METADATA if name == _ENTRY else 0)
                unpacked += length
                if at < 0:
                    return Unreadable(path, Fault.INCOMPLETE, "one of its entries is truncated")
                if unpacked > LARGEST_ZIP:
                    return Unreadable(path, Fault.TOO_LARGE, f"it unpacks to more than {LARGEST_ZIP:,} bytes")
            else:
                entry, at = data[start : start + compressed], start + compressed
            if flags & _SIZES_FOLLOW:
                at += 16 if data[at : at + 4] == _DESCRIPTOR else 12
            if at > len(data):
                return Unreadable(path, Fault.INCOMPLETE, "one of its entries is truncated")
            if name == _ENTRY:
                content = entry
    except (struct.error, zlib.error):
        return Unreadable(path, Fault.BAD_BINARY, "its zip structure cannot be followed")
    if content is None:
        return Unreadable(path, Fault.INCOMPLETE, "it has no entry called metadata")
    return parse_metadata(path, content)
