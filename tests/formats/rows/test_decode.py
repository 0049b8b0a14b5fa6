"""Files of state that are made here: every record of them, in any order, is what a plain reading says."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from ckpt.errors import LeftToSpark, Undecodable
from ckpt.formats.changelog import ChangelogRecord, Overlay, changes_of, changes_of_key
from ckpt.formats.compression import store_block
from ckpt.formats.rows import avro
from ckpt.formats.rows.codecs import decompress
from ckpt.formats.rows.hdfs import find_key, keep_newest, records_of
from ckpt.formats.rows.partitions import partitions_of
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.rows.unsafe import rows_of, structs_of
from ckpt.formats.statefiles import RecordType
from ckpt.formats.types import array_of, struct_of
from ckpt.model import Json
from tests.support.places import SAMPLES

SIZES = st.sampled_from([8, 16, 40])
ROW = SIZES.flatmap(lambda size: st.binary(min_size=size, max_size=size))
KEYS = st.sampled_from([bytes([number]) * 8 * (1 + number % 2) for number in range(6)])
RECORDS = st.lists(st.tuples(KEYS, st.none() | ROW), max_size=12)


def delta(records: Sequence[tuple[bytes, bytes | None]]) -> bytes:
    """A delta as Spark writes it, not compressed."""
    parts = []
    for key, value in records:
        parts += [
            struct.pack(">i", len(key)),
            key,
            struct.pack(">i", -1 if value is None else len(value)),
            value or b"",
        ]
    return b"".join(parts) + struct.pack(">i", -1)


def pairs(found: Any) -> dict[bytes, bytes]:
    held: dict[bytes, bytes] = {}
    for one in found:
        for at, size, where, length in zip(one.key_at, one.key_size, one.value_at, one.value_size, strict=True):
            key = one.data[at : at + size]
            assert key not in held
            held[key] = one.data[where : where + length]
    return held


@pytest.mark.slow
@given(st.lists(RECORDS, min_size=1, max_size=4))
def test_the_last_record_of_a_key_holds(files: list[list[tuple[bytes, bytes | None]]]) -> None:
    expected: dict[bytes, bytes | None] = {}
    for one in files:
        expected |= dict(one)
    read = [records_of(delta(one)) for one in files]
    held = {key: value for key, value in expected.items() if value is not None}
    assert pairs(keep_newest(read, distinct=False)) == held
    for number in range(7):
        key = bytes([number]) * 8 * (1 + number % 2)
        alone = find_key(read, key)
        assert (pairs([alone]) if alone else {}) == ({key: held[key]} if key in held else {})


@given(st.lists(st.tuples(st.integers(1, 200), SIZES, st.none() | SIZES), max_size=5))
def test_runs_of_records_of_one_size_are_found_as_single_ones_are(runs: list[tuple[int, int, int | None]]) -> None:
    number = 0
    records: list[tuple[bytes, bytes | None]] = []
    for count, key, value in runs:
        for _ in range(count):
            number += 1
            records.append((number.to_bytes(key, "big"), None if value is None else bytes(value)))
    data = delta(records)
    found = records_of(data)
    assert [data[at : at + size] for at, size in zip(found.key_at, found.key_size, strict=True)] == [
        k for k, _ in records
    ]
    assert list(found.value_size) == [-1 if value is None else len(value) for _, value in records]


@given(RECORDS, st.data())
def test_a_delta_that_ends_early_is_refused(records: list[tuple[bytes, bytes | None]], data: Any) -> None:
    whole = delta(records)
    with pytest.raises(Undecodable):
        records_of(whole[: data.draw(st.integers(0, len(whole) - 1))])


NAMES = st.sampled_from([b"a", b"b", b"bb", b"c", b"d"])
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just(RecordType.PUT), NAMES, st.sampled_from([b"1", b"2"])),
        st.tuples(st.just(RecordType.DELETE), NAMES, st.just(b"")),
        st.tuples(st.just(RecordType.MERGE), NAMES, st.sampled_from([b"x", b"y"])),
        st.tuples(st.just(RecordType.DELETE_RANGE), NAMES, NAMES),
    ).map(lambda found: ChangelogRecord(*found)),
    max_size=10,
)


@given(
    st.dictionaries(NAMES, st.sampled_from([b"8", b"9"])),
    CHANGES,
    st.sampled_from([b"", b","]),
    st.sampled_from([b"", b"b"]),
)
def test_changes_over_a_snapshot_are_those_of_a_plain_store(
    snapshot: dict[bytes, bytes], changes: list[ChangelogRecord], delimiter: bytes, prefix: bytes
) -> None:
    expected = dict(snapshot)
    for action, key, value in changes:
        match action:
            case RecordType.PUT:
                expected[key] = value
            case RecordType.DELETE:
                expected.pop(key, None)
            case RecordType.MERGE:
                expected[key] = expected[key] + delimiter + value if key in expected else value
            case RecordType.DELETE_RANGE:
                expected = {one: held for one, held in expected.items() if not key <= one < value}
    overlay = Overlay(delimiter)
    overlay.apply(changes)
    seen = sorted((key, value) for key, value in snapshot.items() if key.startswith(prefix))
    found = [pair for some in overlay.over([seen[:1], seen[1:]], prefix) for pair in some]
    assert len(dict(found)) == len(found)
    assert dict(found) == {key: value for key, value in expected.items() if key.startswith(prefix)}


def test_many_ranges_take_no_longer_than_as_many_keys() -> None:
    keys, began = [b"%06d" % number for number in range(30_000)], time.process_time()
    overlay = Overlay(b",")
    for key in keys:
        overlay.apply(
            [ChangelogRecord(RecordType.PUT, key, b"1"), ChangelogRecord(RecordType.DELETE_RANGE, key, key + b"\0")]
        )
    snapshot = [[(key, b"2") for key in keys], [(b"~", b"2")]]
    assert [pair for some in overlay.over(snapshot, b"") for pair in some] == [(b"~", b"2")]
    assert time.process_time() - began < 5


def changelog(version: int, changes: Sequence[ChangelogRecord]) -> bytes:
    """A changelog as Spark writes it, not compressed."""
    parts = []
    if version > 1:
        parts.append(struct.pack(">H", 2) + b"v%d" % version)
    if version > 2:
        lineage = b'[{"version":1,"checkpointUniqueId":"a"}]'
        parts.append(struct.pack(">H", len(lineage)) + lineage)
    for action, key, value in changes:
        parts.append(bytes([action]) if version in (2, 4) else b"")
        parts.append(struct.pack(">i", len(key)) + key)
        parts.append(struct.pack(">i", -1) if action is RecordType.DELETE else struct.pack(">i", len(value)) + value)
    return b"".join(parts) + (b"\0" if version in (2, 4) else struct.pack(">i", -1))


@given(CHANGES, st.sampled_from([1, 2, 3, 4]), st.data())
def test_a_changelog_of_every_version_is_read(changes: list[ChangelogRecord], version: int, data: Any) -> None:
    if version in (1, 3):
        changes = [one for one in changes if one.action in (RecordType.PUT, RecordType.DELETE)]
    whole = changelog(version, changes)
    assert list(changes_of(whole)) == changes
    with pytest.raises(Undecodable):
        list(changes_of(whole[: data.draw(st.integers(0, len(whole) - 1))]))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\0\2v5" + bytes(8), "changelogs of version v5"),
        (b"\0\2v2" + b"\7", "records of type 7"),
    ],
)
def test_what_no_changelog_has_is_refused_by_name(data: bytes, says: str) -> None:
    with pytest.raises(Undecodable, match=says):
        list(changes_of(data))


@given(st.binary(max_size=100_000))
def test_codecs(data: bytes) -> None:
    assert decompress(iter([store_block(data)]), "lz4") == data
    assert decompress(iter([pa.Codec("zstd").compress(data, asbytes=True)]), "zstd") == data
    chunks = [pa.Codec("snappy").compress(data[at : at + 32768], asbytes=True) for at in range(0, len(data), 32768)]
    stream = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    stream += b"".join(struct.pack(">i", len(chunk)) + chunk for chunk in chunks)
    assert decompress(iter([stream]), "snappy") == data


@pytest.mark.parametrize("codec", ["lz4", "zstd", "snappy", "lzf"])
def test_other_bytes_are_refused_with_the_name_of_the_codec(codec: str) -> None:
    with pytest.raises(Undecodable, match=codec):
        decompress(iter([b"neither of them " * 9]), codec)


def test_a_changed_byte_of_an_lz4_stream_is_noticed() -> None:
    whole = store_block(bytes(range(256)) * 300)
    for at in range(0, len(whole) - 21, 97):
        changed = bytearray(whole)
        changed[at] ^= 0x40
        with pytest.raises(Undecodable):
            decompress(iter([bytes(changed)]), "lz4")


KIND = struct_of([("n", "long"), ("s", "string"), ("a", {"type": "array", "elementType": "integer"})])


@given(st.binary(max_size=160).map(lambda found: b"\0" + found[: len(found) // 8 * 8]))
def test_no_bytes_are_taken_for_what_is_outside_of_their_row(blob: bytes) -> None:
    """Any bytes are a row, or are refused; nothing else is raised, and no other memory is read."""
    secret = b"\0" + b"\xee" * 80
    try:
        found = structs_of(KIND, rows_of([secret[:1] + bytes(40), blob, secret[:1] + bytes(40)]), "value")
    except Undecodable:
        return
    assert found.type == arrow_type(KIND)
    assert found.to_pylist()[0] == found.to_pylist()[2]


@pytest.mark.parametrize("kind", ["geometry(4326)", "geography(any)", "something"])
def test_types_that_are_not_decoded_are_refused_by_name(kind: str) -> None:
    with pytest.raises(Undecodable, match=re.escape(f"does not decode the type {kind}")):
        arrow_type(kind)


ELEMENT = st.one_of(st.binary(max_size=3), st.sampled_from([b"x" * 41, b"," * 41, b"\0" * 41, b"y" * 297])).map(
    lambda found: b"\0\0\0" + found
)


@given(st.lists(ELEMENT, min_size=1, max_size=6), st.sampled_from([b"", b","]))
def test_a_list_of_avro_rows_is_taken_apart_or_refused(parts: list[bytes], delimiter: bytes) -> None:
    """Never in another way than it was put together, also where a length begins with the byte of a comma."""
    value = delimiter.join(struct.pack("<i", len(part)) + part for part in parts)
    with suppress(Undecodable):
        assert avro.elements(value) == parts


@pytest.mark.parametrize(
    ("kind", "row", "says"),
    [
        ("long", b"\0\0\1\2\4", "a different schema from the first"),
        ("long", b"\0\0\0\2", "ends early"),
        ("long", b"\0\0\0\2\4\4", "different columns"),
        ("long", b"\0\0\0\4\4", "ends early"),
        ("decimal(5,2)", b"\0\0\0\2\4", r"values of type decimal\(5,2\)"),
        ("string", b"\0\0\0\2\2\xff", "ends early"),
        (array_of(struct_of([("n", "long")])), b"\0\0\0\2\2", "values of type array, as it is here,"),
    ],
)
def test_avro_rows_that_are_not_read(kind: Any, row: bytes, says: str) -> None:
    with pytest.raises(Undecodable, match=says):
        avro.structs_of(struct_of([("n", kind)]), [row], "value")


def test_an_avro_row() -> None:
    kind = struct_of([("n", "long"), ("s", "string"), ("v", "void")])
    found = avro.structs_of(kind, [b"\0\0\0\2\3\2\2a", b"\0\0\0\0\0"], "value")
    assert found.to_pylist() == [{"n": -2, "s": "a", "v": None}, {"n": None, "s": None, "v": None}]


@pytest.mark.parametrize(
    "kind", ["decimal(39,2)", "decimal(0,0)", f"decimal(10,{'9' * 5000})", f"decimal({'9' * 5000},0)"]
)
def test_a_decimal_that_spark_has_not_is_left_to_it(kind: str) -> None:
    with pytest.raises(LeftToSpark, match=r"does not decode the type decimal\("):
        arrow_type(kind)


def test_a_type_of_a_user_is_spread_as_the_type_behind_it() -> None:
    """Spark's HashExpression hashes it as its sqlType."""
    column = pa.array([1, None, 2**40], pa.int64())
    of_user: Json = {"type": "udt", "class": "x", "sqlType": "long"}
    assert partitions_of([(of_user, column)], 3, 99).tolist() == partitions_of([("long", column)], 3, 99).tolist()


CHANGELOGS = sorted(SAMPLES.glob("*/state/*/*/**/*.changelog"))


def test_those_of_every_key_in_every_sample() -> None:
    keys = 0
    for path in CHANGELOGS[::3]:
        try:
            data = decompress(iter([path.read_bytes()]), "lz4", 1 << 30)
            records = list(changes_of(data))
        except Undecodable:
            continue
        for key in {record.key for record in records}:
            ranges = RecordType.DELETE_RANGE
            assert changes_of_key(data, key) == [r for r in records if r.key == key or r.action is ranges]
            keys += 1
    assert keys > 100


def test_what_is_cut_is_refused() -> None:
    typed = b"\0\2v2" + b"\x01" + struct.pack(">i", 1) + b"k" + struct.pack(">i", 1) + b"v"
    typed += b"\x20" + struct.pack(">i", 1) + b"a" + struct.pack(">i", 1) + b"z" + b"\x10"
    typed += struct.pack(">i", 1) + b"k" + struct.pack(">i", -1) + b"\0"
    assert [record.action for record in changes_of_key(typed, b"k")] == [1, 32, 16]
    assert [record.action for record in changes_of_key(typed, b"o")] == [32]
    plain = struct.pack(">i", 1) + b"k" + struct.pack(">i", 1) + b"v" + struct.pack(">i", -1)
    assert changes_of_key(plain, b"k") == list(changes_of(plain))
    for data in (typed, plain):
        for end in range(5, len(data)):
            with pytest.raises(Undecodable):
                changes_of_key(data[:end], b"o")
