"""Hidden checksum files, and checksums of pieces that are those of all bytes."""

from array import array
from zlib import crc32

import pytest
from hypothesis import given, strategies as st

from ckpt.formats.checksums import fold_checksums
from ckpt.formats.sidecars import (
    HadoopChecksums,
    SparkChecksum,
    build_hadoop_sidecar,
    hadoop_sidecar_name,
    parse_hadoop_sidecar,
    parse_spark_sidecar,
)
from ckpt.model import Fault, Unreadable

REAL = (
    b'{"algorithm":"CRC32C","value":-1157045493,"mainFileSize":46,"timestampMs":1795247663183,'
    b'"creator":{"executorId":"driver","taskInfo":"Task= 0.0, Stage= 4.0"}}'
)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1024, 5000])
def test_hadoop_checksums_match_what_they_were_built_from_and_nothing_else(size):
    data = bytes(n % 251 for n in range(size))
    raw = build_hadoop_sidecar(data)
    assert len(raw) == 8 + 4 * -(-size // 512)
    record = parse_hadoop_sidecar(".7.crc", raw)
    assert isinstance(record, HadoopChecksums)
    assert record.match(data)
    assert not record.match(data + b"\0")
    for place in range(0, size, 97):
        assert not record.match(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])


def test_another_number_of_bytes_per_checksum():
    record = parse_hadoop_sidecar(".7.crc", b"crc\0\0\0\0\2" + b"\xb1\xf7\x40\xb4" * 2)
    assert record == HadoopChecksums(2, array("I", (0xB1F740B4, 0xB1F740B4)))


@pytest.mark.parametrize(
    "raw", [b"crc", b"crc\0\0\0", b"crc\0\0\0\2\0\1", b"CRC\0\0\0\2\0", b"crc\0\0\0\0\0", b"crc\0\xff\xff\xff\xff"]
)
def test_hadoop_checksum_files_that_are_none(raw):
    record = parse_hadoop_sidecar(".7.crc", raw)
    assert isinstance(record, Unreadable)
    assert record.fault is Fault.BAD_BINARY


def test_empty_checksum_files():
    for parse in (parse_hadoop_sidecar, parse_spark_sidecar):
        record = parse("x.crc", b"")
        assert isinstance(record, Unreadable)
        assert record.fault is Fault.EMPTY


def test_names():
    assert hadoop_sidecar_name("9.compact") == ".9.compact.crc"


def test_spark_checksum():
    assert parse_spark_sidecar("1.delta.crc", REAL) == SparkChecksum("CRC32C", -1157045493, 46, 1795247663183)


def test_every_truncation_of_a_spark_checksum_is_unreadable():
    for end in range(len(REAL)):
        assert isinstance(parse_spark_sidecar("1.delta.crc", REAL[:end]), Unreadable)


@given(st.binary(max_size=3000), st.sampled_from([1, 4, 16, 512]))
def test_pieces_have_the_checksum_of_the_whole(data: bytes, size: int) -> None:
    data = data[: len(data) // size * size]
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert fold_checksums(array("I", map(crc32, pieces)), size) == crc32(data)


@pytest.mark.parametrize("bad", [(0,), (2999,), (1000, 1001), range(3000)])
def test_another_checksum_is_noticed(bad: tuple[int, ...]) -> None:
    data = bytes(range(256)) * 2 * 3000
    values = array("I", (crc32(data[at : at + 512]) for at in range(0, len(data), 512)))
    for place in bad:
        values[place] ^= 1 << place % 32
    assert fold_checksums(values, 512) != crc32(data)
