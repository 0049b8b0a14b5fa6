"""Follow the records of a delta, changelog or HDFS-backed snapshot to the one that ends the file.

HDFS-backed files, and changelogs v1 and v3 (``StateStoreChangelogWriterV1``, ``V3``): int length and bytes of the key,
int length (-1: removed) and bytes of the value; -1 in the place of a key ends the file. Changelogs v2 and v4 begin each
record with its type, 0 at the end. v2 to v4 begin with their version, v3 and v4 go on with their lineage.
"""

import re
import struct

from ckpt.formats.changelogs import TYPED, RecordType, read_beginning

_VERSION = re.compile(rb"\x00\x02v([2-4])")
_LENGTH = struct.Struct(">i").unpack_from
_TYPES = frozenset(RecordType)


def last_bytes(head: bytes) -> bytes:
    """The record that ends a file whose data begins with ``head``."""
    version = _VERSION.match(head)
    return b"\x00" if version and version[1] in b"24" else b"\xff\xff\xff\xff"


def records_end(data: bytes) -> int | None:
    """Where the record that ends a file ends, in its decompressed data; None where the records do not lead to one."""
    try:
        version, _, at = read_beginning(data)
        return _typed(data, at) if version in TYPED else _plain(data, at)
    except (struct.error, IndexError, ValueError):
        return None


def _plain(data: bytes, at: int) -> int:
    while (length := _LENGTH(data, at)[0]) != -1:
        at = _after_value(data, at + 4, length)
    return at + 4


def _typed(data: bytes, at: int) -> int:
    while kind := data[at]:
        if kind not in _TYPES:
            raise ValueError
        at = _after_value(data, at + 5, _LENGTH(data, at + 1)[0])
    return at + 1


def _after_value(data: bytes, at: int, length: int) -> int:
    """Where the value that follows the key at ``at`` ends. Raises ValueError or struct.error for impossible bytes."""
    (value,) = _LENGTH(data, at + length)
    if length < 0 or value < -1:
        raise ValueError
    return int(at + length + 4 + max(value, 0))
