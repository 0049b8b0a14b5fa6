"""Rows with a checksum each; ``tests/state/native/test_live.py`` shows that they are read as Spark reads them."""

from __future__ import annotations

import struct

import google_crc32c
import pytest

from ckpt.errors import LeftToSpark, Undecodable
from ckpt.formats.changelog import ChangelogRecord
from ckpt.formats.rows.hdfs import records_of
from ckpt.formats.rows.row_checksums import plain_changes, plain_file, plain_value, write_checksum, write_removed
from ckpt.formats.statefiles import RecordType

KEY, ROW = b"a key of 16 byte", b"a value of 24 bytes long"


def checksum(*parts: bytes) -> bytes:
    return int(google_crc32c.value(b"".join(parts))).to_bytes(4, "little")


def stored(*rows: bytes, delimiter: bytes = b",") -> bytes:
    """A value of RocksDB."""
    return delimiter.join(checksum(KEY, row) + struct.pack("<i", len(row)) + row for row in rows)


@pytest.mark.parametrize("row", [ROW, b""])
def test_they_are_written_as_spark_does(row: bytes) -> None:
    assert write_checksum(KEY, row, length=True) == stored(row)
    assert write_checksum(KEY, row, length=False) == checksum(KEY, row) + row
    assert write_removed(KEY) == checksum(KEY) + KEY


def flips(data: bytes) -> list[bytes]:
    return [data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :] for at in range(len(data))]


@pytest.mark.parametrize("delimiter", [b",", b""])
def test_values(delimiter: bytes) -> None:
    rows = [b"first", b"", b"third,"]
    for some in (rows[:1], rows):
        assert plain_value(KEY, stored(*some, delimiter=delimiter), delimiter) == delimiter.join(some)
    for damaged in (b"", b"1234567", *flips(stored(*rows, delimiter=delimiter)), stored(*rows)[:-1]):
        with pytest.raises(Undecodable):
            plain_value(KEY, damaged, delimiter)


def test_changelogs() -> None:
    put = ChangelogRecord(RecordType.PUT, KEY, stored(ROW))
    gone = ChangelogRecord(RecordType.DELETE, checksum(KEY) + KEY, b"")
    assert list(plain_changes([put, gone])) == [put, ChangelogRecord(RecordType.DELETE, KEY, b"")]
    for damaged in flips(gone.key):
        with pytest.raises(Undecodable, match="does not match its checksum"):
            list(plain_changes([gone._replace(key=damaged)]))
    with pytest.raises(LeftToSpark, match="remove ranges"):
        list(plain_changes([ChangelogRecord(RecordType.DELETE_RANGE, KEY, KEY)]))


def delta(*records: tuple[bytes, bytes | None]) -> bytes:
    parts = [struct.pack(">i", len(key)) + key + _value(value) for key, value in records]
    return b"".join(parts) + b"\xff" * 4


def _value(value: bytes | None) -> bytes:
    return b"\xff" * 4 if value is None else struct.pack(">i", len(value)) + value


def test_hdfs_backed_files() -> None:
    plain = delta((KEY, ROW), (KEY + KEY, None), (KEY, None), (KEY, b""))
    found = delta(
        (KEY, checksum(KEY, ROW) + ROW),
        (checksum(KEY, KEY) + KEY + KEY, None),
        (checksum(KEY) + KEY, None),
        (KEY, checksum(KEY)),
    )
    assert plain_file(found) == plain
    assert plain_file(delta()) == delta()
    for damaged in flips(found[:-4]):
        with pytest.raises(Undecodable):
            records_of(plain_file(damaged + found[-4:]))
