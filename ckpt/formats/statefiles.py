"""Names, beginnings and ends of state files: ``state/<op>/<partition>/[<store>/]<version>[_<unique id>].<kind>``.

Names: Spark's ``HDFSBackedStateStoreProvider.deltaFile``/``snapshotFile`` and ``RocksDBFileManager.dfsBatchZipFile``/
``dfsChangelogFile``. Ends: deltas, changelogs and HDFS-backed snapshots are one stream of ``LZ4BlockOutputStream``
(Spark's ``LZ4CompressionCodec``) under the default setting of
``spark.sql.streaming.stateStore.compression.codec``.

Changelogs of RocksDB state (Spark ``StateStoreChangelogWriter``) of versions 1 and 3 put or remove keys. Versions 2 and
4 name what each record does, and may merge: append an element to a list. 3 and 4 begin with the lineage of state store
checkpoint format 2, as JSON.
"""

import json
import struct
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from ckpt.formats.compression import END_MARK, HEADER_LENGTH, MAGIC, Corrupt, block_ends, decompress_head
from ckpt.formats.sidecars import shown_name
from ckpt.formats.text import read_utf
from ckpt.model import DamageKind, StateFileKind

DEFAULT_STORE = "default"
"""The store whose files are directly in the partition's folder (Spark ``StateStoreId.DEFAULT_STORE_NAME``)."""

JOIN_COUNTS, JOIN_ROWS = "keyToNumValues", "keyWithIndexToValue"
"""Of each side of a stream-stream join: how many rows a key has, and these rows, in state formats 1 to 3."""

TIMED_ROWS, TIMED_KEYS = "keyWithTsToValues", "tsWithKey"
"""In state format 4: the rows of a key and a time in one value, and one entry for each of them by time."""

SIDES = ("left", "right")
"""Of a join, as the names of its stores begin."""

JOIN_STORES = frozenset(f"{side}-{what}" for side in SIDES for what in (JOIN_COUNTS, JOIN_ROWS))
"""The stores of a stream-stream join; one of them is never alone (Spark ``SymmetricHashJoinStateManager``)."""

CHECKSUM = ".crc"
"""Ending of the checksum files (JSON) that Spark 4.1 and later write next to state files; Hadoop's own are hidden."""

_ONLY_AN_END = HEADER_LENGTH + 4
"""Bytes of a file without records, before its end mark: Spark since 4.0 reads on into a damaged one in a changelog."""

LZ4 = "lz4"
_UUID_LENGTH = 36
_KINDS = {kind.value: kind for kind in StateFileKind if kind is not StateFileKind.SST}


class FileName(NamedTuple):
    """The name of a state file, parsed."""

    version: int
    kind: StateFileKind
    unique_id: str | None


def parse_name(name: str) -> FileName | None:
    """Parse the name of a state file; None for a file that no state store would load."""
    stem, _, ending = name.rpartition(".")
    kind = _KINDS.get(ending)
    if kind is None or not stem or stem[0] == ".":
        return None
    number, _, unique_id = stem.partition("_")
    if not (number.isascii() and number.isdecimal()) or len(number) > 19:  # Spark holds versions in a Long
        return None
    is_uuid = len(unique_id) == _UUID_LENGTH and unique_id[8:24:5] == "----"  # there may be a hundred thousand of them
    if "_" in stem and not is_uuid:
        return None
    return FileName(int(number), kind, unique_id or None)


def version_of(name: str) -> int | None:
    """The version that a file in a store's folder belongs to; None for one that belongs to no single version.

    That is a state file, Spark's checksum file of it, or Hadoop's hidden checksum file of either.
    """
    parsed = parse_name(shown_name(name).removesuffix(CHECKSUM))
    return None if parsed is None else parsed.version


def judge_stream(data: bytes, kind: StateFileKind) -> DamageKind | None:
    """Check a complete file by walking its blocks; for the few files whose tail is not the end marker.

    ODD_END: the end mark is incomplete or followed by more, but the last record is there. TRUNCATED: data is missing,
    or it is too short for anything. UNREADABLE: it does not begin as an LZ4 stream does.

    The last record is -1 as an int (deltas, changelogs v1 and v3) or a zero byte (changelogs v2 and v4), and LZ4
    keeps the last five bytes of a block as they are, so it can be seen without decompressing. Spark stops reading
    there: measured on 4.2.0, a file without (all of) its end mark loads.
    """
    if len(data) < HEADER_LENGTH:
        return DamageKind.TRUNCATED  # whatever the bytes are: Spark reads no block and finds nothing
    if not data.startswith(MAGIC):
        return DamageKind.UNREADABLE
    end, marked = block_ends(data)
    if marked:
        return None if end == len(data) else DamageKind.ODD_END
    rest = data[end:]
    last_record = data[:end].endswith((b"\xff\xff\xff\xff", b"\x00"))
    cut_mark = len(rest) < HEADER_LENGTH and END_MARK.startswith(rest)
    damaged_mark = _is_damaged_mark(rest) and (kind is StateFileKind.DELTA or end > _ONLY_AN_END)
    if end and last_record and (cut_mark or damaged_mark):
        return DamageKind.ODD_END
    return DamageKind.TRUNCATED


def _is_damaged_mark(rest: bytes) -> bool:
    """Tell whether nearly all bytes are those of the end mark: the header of another block differs in more."""
    same = sum(byte == other for byte, other in zip(rest, END_MARK, strict=False))
    return len(rest) == HEADER_LENGTH and same >= HEADER_LENGTH - 3


TYPED = (2, 4)
"""The versions of changelogs whose records begin with their type."""


class RecordType(IntEnum):
    """The kinds of record; the value is the type byte (Spark ``RecordType``)."""

    PUT = 1
    DELETE = 16
    MERGE = 17
    DELETE_RANGE = 32


def last_bytes(head: bytes) -> bytes:
    """The record that ends a file whose data begins with ``head``."""
    return b"\0" if head.startswith((b"\0\2v2", b"\0\2v4")) else b"\xff\xff\xff\xff"


class UnknownVersion(ValueError):
    """A version that no known Spark writes; the text is how it names itself."""


def read_beginning(data: bytes) -> tuple[int, str | None, int]:
    """Version and lineage of a decompressed changelog, and where its records begin; version 1 does not name itself.

    Raises UnknownVersion, or ValueError or struct.error where the bytes end early.
    """
    if data[:3] != b"\0\2v":
        return 1, None, 0
    name, at = read_utf(data, 0)
    if name not in ("v2", "v3", "v4"):
        raise UnknownVersion(name)
    if name == "v2":
        return 2, None, at
    lineage, at = read_utf(data, at)
    return int(name[1:]), lineage, at


Lineage: TypeAlias = tuple[tuple[int, str], ...]
"""The files that lead to a changelog of state store checkpoint format 2: (version, unique id), ascending."""


def parse_lineage(head: bytes, codec: str = LZ4) -> Lineage | None:
    """Read the lineage that a changelog v3 or v4 begins with (Spark ``StateStoreChangelogWriterV3``), if it has one.

    ``head`` is the beginning of the file, at least its first block. None for a changelog without lineage, another
    codec, or bytes that cannot be decoded.
    """
    try:
        return lineage_of(decompress_head(head, codec))
    except Corrupt:
        return None


def lineage_of(data: bytes) -> Lineage | None:
    """Return the lineage in the decompressed bytes of a changelog."""
    try:
        text = read_beginning(data)[1]
        if text is None:
            return None
        lineage = json.loads(text)
        items = [(item["version"], item["checkpointUniqueId"]) for item in lineage]
    except (struct.error, ValueError, KeyError, TypeError, RecursionError):
        return None
    if type(lineage) is not list or not all(type(v) is int and type(i) is str for v, i in items):
        return None
    return tuple(sorted(items))
