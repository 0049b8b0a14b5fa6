"""Rows with a checksum each (Spark ``KeyValueChecksumEncoder``), where ``rowChecksum.enabled`` is on.

It is the CRC-32C of key and value, or of the key alone where it was removed, as a little-endian int in front of the
row. HDFS-backed files have it after the length of the row. In RocksDB a value is any number of checksum, length (an
int) and row, with what the merge operator puts between them; a key is as always, except in a changelog that removes it.
"""

import struct
from collections.abc import Iterable, Iterator

import numpy as np

from ckpt.errors import LeftToSpark, Unfit
from ckpt.formats.changelog import ChangelogRecord
from ckpt.formats.checksums import crc32c
from ckpt.formats.rows.hdfs import lengths_of
from ckpt.formats.statefiles import RecordType

_CHECKSUM = 4
_HEAD = struct.Struct("<Ii")  # checksum, length
_DIFFERS = "a row does not match its checksum"


def plain_file(data: bytes) -> bytes:
    """An HDFS-backed file, decompressed, as it would be without checksums. Raises Unfit where one differs."""
    starts, key_size, value_size = lengths_of(data)
    values = starts + 1 + key_size // 4
    removed = value_size < 0
    sizes = np.where(removed, key_size, value_size)
    if (sizes < _CHECKSUM).any():
        raise Unfit("a row is too short for its checksum")
    heads = np.where(removed, starts, values)  # of what has the checksum: its length
    _compare(data, starts, key_size, values, value_size)
    words: np.ndarray = np.frombuffer(data, "<i4", len(data) // 4).copy()
    words[heads] = (sizes - _CHECKSUM).astype(">i4").view("<i4")
    return bytes(np.delete(words, heads + 1).tobytes())


def write_checksum(key: bytes, row: bytes, *, length: bool) -> bytes:
    """A row behind its checksum, and its ``length``, which RocksDB has too. The bytes of the key are those stored."""
    checksum = crc32c(row, crc32c(key)).to_bytes(_CHECKSUM, "little")
    return checksum + (len(row).to_bytes(_CHECKSUM, "little") if length else b"") + row


def write_removed(key: bytes) -> bytes:
    """A key as a delta or changelog has it that removes it: behind its checksum."""
    return crc32c(key).to_bytes(_CHECKSUM, "little") + key


def _compare(data: bytes, starts: np.ndarray, key_size: np.ndarray, values: np.ndarray, value_size: np.ndarray) -> None:
    rows = zip(starts.tolist(), key_size.tolist(), values.tolist(), value_size.tolist(), strict=True)
    view = memoryview(data)
    for start, key_length, value, length in rows:
        key_at, at = 4 * (start + 1), 4 * (value + 1)
        key = view[key_at : key_at + key_length]
        if length < 0:
            checksum, wanted = crc32c(bytes(key[_CHECKSUM:])), key[:_CHECKSUM]
        else:
            row = bytes(view[at + _CHECKSUM : at + length])
            checksum, wanted = crc32c(row, crc32c(bytes(key))), view[at : at + _CHECKSUM]
        if checksum.to_bytes(_CHECKSUM, "little") != wanted:
            raise Unfit(_DIFFERS)


def plain_changes(changes: Iterable[ChangelogRecord]) -> Iterator[ChangelogRecord]:
    """The records of a changelog, with removed keys as they are in the store; values keep their checksums."""
    for change in changes:
        if change.action is RecordType.DELETE_RANGE:
            raise LeftToSpark("ckpt does not read row-checksum changelogs that remove ranges of keys")
        yield change._replace(key=_plain_key(change.key)) if change.action is RecordType.DELETE else change


def _plain_key(key: bytes) -> bytes:
    plain = key[_CHECKSUM:]
    if crc32c(plain).to_bytes(_CHECKSUM, "little") != key[:_CHECKSUM]:
        raise Unfit(_DIFFERS)
    return plain


def plain_value(key: bytes, value: bytes, delimiter: bytes) -> bytes:
    """A value of RocksDB as it would be without checksums. Raises Unfit where one differs."""
    rows, at, of_key = [], 0, crc32c(key)
    while True:
        if at + _HEAD.size > len(value):
            raise Unfit("a row is too short for its checksum")
        checksum, length = _HEAD.unpack_from(value, at)
        end = at + _HEAD.size + length
        row = value[at + _HEAD.size : end]
        if not 0 <= length == len(row) or crc32c(row, of_key) != checksum:
            raise Unfit(_DIFFERS)
        rows.append(row)
        if end == len(value):
            return delimiter.join(rows)
        if not value.startswith(delimiter, end):
            raise Unfit("the separators between rows with checksums differ from the merge operator's")
        at = end + len(delimiter)
