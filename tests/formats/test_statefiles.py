"""Names and ends of state files."""

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from ckpt.formats.compression import END_MARK, Corrupt, block_ends, decompress_first_block
from ckpt.formats.statefiles import FileName, judge_stream, parse_lineage, parse_name
from ckpt.model import DamageKind, StateFileKind
from tests.checkpoint.state.building import changelog_v4, delta, java_utf, lz4_stream

UUID = "2383340a-bc94-4b6a-9e0f-3e1f5d2a7b11"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("7.delta", FileName(7, StateFileKind.DELTA, None)),
        ("12.snapshot", FileName(12, StateFileKind.SNAPSHOT, None)),
        ("3.zip", FileName(3, StateFileKind.ZIP, None)),
        ("3.changelog", FileName(3, StateFileKind.CHANGELOG, None)),
        (f"8_{UUID}.changelog", FileName(8, StateFileKind.CHANGELOG, UUID)),
        ("8_2383340a-bc94.changelog", None),
        ("1_abc.delta", None),
        (".7.delta.crc", None),
        (".7.delta", None),
        ("7.delta.crc", None),
        ("7.zip.crc", None),
        (".7.delta.0a1b.TID1.tmp", None),
        ("7", None),
        (".delta", None),
        ("seven.delta", None),
        ("7_.zip", None),
        ("_ab.zip", None),
        ("-1.delta", None),
        ("٣.delta", None),
        ("000008-9b6e.sst", None),
        ("9" * 30 + ".delta", None),
    ],
)
def test_names(name, expected) -> None:
    assert parse_name(name) == expected


@given(st.text())
def test_no_name_raises(name) -> None:
    parse_name(name)
    parse_name(name + ".delta")


def test_a_whole_stream_ends_with_its_mark() -> None:
    assert len(END_MARK) == 21
    assert (delta()).endswith(END_MARK)
    assert judge_stream(delta(), StateFileKind.DELTA) is None
    assert judge_stream(lz4_stream(b"first", b"last\xff\xff\xff\xff"), StateFileKind.DELTA) is None


@given(st.integers(1, 21))
def test_without_its_mark_all_data_is_there(cut) -> None:
    assert judge_stream(delta()[:-cut], StateFileKind.DELTA) is DamageKind.ODD_END


@given(st.integers(22, len(delta())))
def test_cut_further_data_is_missing(cut) -> None:
    assert judge_stream(delta()[:-cut], StateFileKind.DELTA) is DamageKind.TRUNCATED


def test_cut_between_two_blocks_the_last_record_is_missing() -> None:
    whole = lz4_stream(b"first block", b"last block\xff\xff\xff\xff")
    first = block_ends(whole[: 21 + 11])[0]
    assert first == 32
    assert judge_stream(whole[:first], StateFileKind.DELTA) is DamageKind.TRUNCATED


def test_a_changelog_of_another_version_ends_with_a_zero_byte() -> None:
    assert judge_stream(lz4_stream(java_utf("v2") + b"row\x00")[:-21], StateFileKind.CHANGELOG) is DamageKind.ODD_END


def test_something_else_is_not_lz4() -> None:
    assert judge_stream(b"\x28\xb5\x2f\xfd" * 20, StateFileKind.DELTA) is DamageKind.UNREADABLE


@given(st.binary(max_size=200), st.booleans(), st.sampled_from([StateFileKind.DELTA, StateFileKind.CHANGELOG]))
def test_no_bytes_raise(data, prefixed, kind) -> None:
    judge_stream(b"LZ4Block" + data if prefixed else data, kind)
    parse_lineage(b"LZ4Block" + data if prefixed else data)


@given(st.binary(max_size=120), st.integers(0, 250))
def test_no_compressed_block_raises_anything_but_corrupt(body, length) -> None:
    header = b"LZ4Block\x25" + len(body).to_bytes(4, "little") + length.to_bytes(4, "little") + b"sum "
    with suppress(Corrupt):
        assert len(decompress_first_block(header + body)) == length


def test_a_compressed_block_is_decompressed() -> None:
    # "abcabcabcabcabcabc" + "xxxxx": 3 literals, a match of 15 at distance 3, 5 literals
    body = bytes([0x3B]) + b"abc" + b"\x03\x00" + bytes([0x50]) + b"xxxxx"
    header = b"LZ4Block\x25" + len(body).to_bytes(4, "little") + (23).to_bytes(4, "little") + b"sum "
    assert decompress_first_block(header + body) == b"abc" * 6 + b"xxxxx"


def test_the_lineage_is_read_from_the_beginning() -> None:
    lineage = parse_lineage(changelog_v4([(5, "b"), (4, "a")]))
    assert lineage is not None
    assert lineage == ((4, "a"), (5, "b"))


@pytest.mark.parametrize(
    "text",
    ["{}", "[1]", '[{"version": "4", "checkpointUniqueId": "a"}]', '[{"version": 4}]', "[" * 100_000, "nonsense"],
)
def test_what_is_no_lineage_is_none(text) -> None:
    assert parse_lineage(lz4_stream(java_utf("v4") + java_utf(text[:60000]))) is None
    assert parse_lineage(lz4_stream(java_utf("v2") + b"\x01rows\x00")) is None
    assert parse_lineage(delta()) is None
