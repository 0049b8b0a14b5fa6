from array import array

import pytest

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
