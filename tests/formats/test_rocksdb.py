"""The metadata entry of a RocksDB zip, from its tail and from the whole file."""

import json

import pytest
from hypothesis import given, strategies as st

from ckpt.checkpoint.state.file_ends import Verified, judge_zip
from ckpt.formats.rocksdb import parse_zip_tail, read_whole_zip
from ckpt.model import DamageKind, Fault, RocksDBSnapshot, Unreadable
from tests.checkpoint.state.building import rocksdb_zip

ZIP = rocksdb_zip({"000008-a.sst": 1253, "000009-b.sst": 7})
SNAPSHOT = RocksDBSnapshot(
    (("000008-a.sst", 1253), ("000009-b.sst", 7)),
    (),
    7,
    {"counts": 1},
    local_names={"000008": "000008-a.sst", "000009": "000009-b.sst"},
)


def parse(data: bytes):
    return parse_zip_tail("1.zip", data, len(data))


def test_a_whole_zip_says_the_same_both_ways() -> None:
    assert parse(ZIP) == read_whole_zip("1.zip", ZIP) == SNAPSHOT


def test_an_entry_that_is_stored_is_read() -> None:
    assert parse(rocksdb_zip({"000008-a.sst": 1253, "000009-b.sst": 7}, compressed=False)) == SNAPSHOT


def test_an_entry_that_does_not_match_its_checksum_is_unreadable() -> None:
    stored = rocksdb_zip({"000008-a.sst": 1253}, compressed=False)
    assert isinstance(parse(stored), RocksDBSnapshot)

    damaged = parse(stored.replace(b'"sizeBytes": 1253', b'"sizeBytes": 1254'))
    assert isinstance(damaged, Unreadable)
    assert damaged.fault is Fault.BAD_BINARY


def test_an_entry_without_its_header_is_not_there() -> None:
    """Java's ``ZipInputStream`` ends at such a header, so Spark finds no entry ``metadata``."""
    header = ZIP.index(b"metadata") - 30
    damaged = parse(ZIP[:header] + b"X" + ZIP[header + 1 :])
    assert isinstance(damaged, Unreadable)
    assert damaged.reason == "its metadata entry is not where its central directory says"


def test_a_tail_is_enough_once_it_holds_the_entry() -> None:
    outcomes = [parse_zip_tail("1.zip", ZIP[-length:], len(ZIP)) for length in range(22, len(ZIP) + 1)]

    assert outcomes[-1] == SNAPSHOT
    first = outcomes.index(SNAPSHOT)
    assert outcomes[first:] == [SNAPSHOT] * (len(outcomes) - first)
    assert first > 0
    assert all(isinstance(outcome, Unreadable) and outcome.fault is Fault.INCOMPLETE for outcome in outcomes[:first])


def test_a_comment_behind_the_end_does_no_harm() -> None:
    assert parse(ZIP[:-2] + b"\x07\x00comment") == SNAPSHOT


@given(st.integers(0, len(ZIP) - 1))
def test_a_cut_zip_is_told_from_a_whole_one_and_its_entries_are_read_where_they_are_there(length) -> None:
    cut = ZIP[:length]
    found = parse(cut)
    streamed = read_whole_zip("1.zip", cut)

    assert isinstance(found, Unreadable)
    assert found.fault is (Fault.INCOMPLETE if cut else Fault.EMPTY)
    entries_end = ZIP.find(b"PK\x01\x02")
    assert streamed == SNAPSHOT if length >= entries_end else isinstance(streamed, Unreadable)


def test_an_entry_that_does_not_match_its_checksum_is_not_read_behind_a_lost_directory() -> None:
    """Java compares it (``ZipInputStream.readEnd``: invalid entry CRC), so a start fails."""
    changed = bytearray(ZIP[: ZIP.find(b"PK\x01\x02")])
    changed[ZIP.find(b"PK\x07\x08") + 4] ^= 1  # of the first entry, which is not ``metadata``

    streamed = read_whole_zip("1.zip", bytes(changed))
    assert isinstance(streamed, Unreadable)
    assert streamed.fault is Fault.BAD_BINARY
    verdict = judge_zip("1.zip", bytes(changed), Verified())
    assert verdict is not None
    assert verdict.kind is DamageKind.TRUNCATED


@pytest.mark.parametrize("keys", [None, -1])
def test_keys_that_are_not_counted_are_none(keys) -> None:
    found = parse(rocksdb_zip({}, keys))
    assert isinstance(found, RocksDBSnapshot)
    assert found.num_keys is None


def with_metadata(content: bytes) -> bytes:
    import io
    import zipfile

    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("metadata", content)
    return target.getvalue()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", Fault.BAD_VERSION),
        (b"v3\n{}", Fault.BAD_VERSION),
        (b"v1\n", Fault.BAD_JSON),
        (b"v1\n[]", Fault.BAD_JSON),
        (b'v1\n{"sstFiles": {}}', Fault.BAD_JSON),
        (b'v1\n{"sstFiles": [{"dfsSstFileName": 7, "sizeBytes": 1}]}', Fault.BAD_JSON),
        (b'v1\n{"sstFiles": [{"sizeBytes": 1}]}', Fault.BAD_JSON),
        (b'v1\n{"columnFamilyMapping": []}'.replace(b"[]", b'["a"]'), Fault.BAD_JSON),
        (b"v1\n" + b"[" * 200_000, Fault.BAD_JSON),
    ],
)
def test_metadata_of_another_shape_is_unreadable(content, fault) -> None:
    found = parse(with_metadata(content))
    assert isinstance(found, Unreadable)
    assert found.fault is fault
    assert read_whole_zip("1.zip", with_metadata(content)) == found


def test_archived_logs_are_read() -> None:
    logs = [{"localFileName": "000004.log", "dfsLogFileName": "000004-x.log", "sizeBytes": 12}]
    found = parse(with_metadata(b"v1\n" + json.dumps({"sstFiles": [], "logFiles": logs, "numKeys": 0}).encode()))
    assert found == RocksDBSnapshot((), (("000004-x.log", 12),), 0, {})


@given(st.binary(max_size=300), st.integers(0, 400))
def test_no_bytes_raise(data, size) -> None:
    parse_zip_tail("1.zip", data, max(size, len(data)))
    parse_zip_tail("1.zip", data + b"PK\x05\x06" + data, max(size, 2 * len(data) + 4))
    read_whole_zip("1.zip", b"PK\x03\x04" + data)


@given(st.integers(0, len(ZIP) - 1), st.integers(0, 255))
def test_no_flipped_byte_raises(at, value) -> None:
    damaged = ZIP[:at] + bytes([value]) + ZIP[at + 1 :]
    parse(damaged)
    read_whole_zip("1.zip", damaged)
