from ckpt.formats.names import CompactibleLog, compactible_log
from ckpt.formats.sourcelogs import (
    SourceFile,
    parse_kafka_start,
    parse_sink_log,
    parse_source_log,
)
from ckpt.model import Fault, Json, Unreadable

# as Spark 4.3.0 wrote them, but for the paths
SOURCE = b'v1\n{"path":"file:///in/f%200.txt","timestamp":1000000000000,"batchId":0}\n{"path":"file:///in/f%201.txt","timestamp":1000000001000,"batchId":1}'
SINK = b'v1\n{"path":"file:///out/part-0.parquet","size":456,"isDir":false,"modificationTime":1795254451424,"blockReplication":1,"blockSize":33554432,"action":"add"}'


def fault(record: object) -> Fault:
    assert isinstance(record, Unreadable), record
    return record.fault


def test_file_source_log():
    assert parse_source_log("sources/0/1", SOURCE) == (
        SourceFile("file:///in/f%200.txt", 1000000000000, 0),
        SourceFile("file:///in/f%201.txt", 1000000001000, 1),
    )
    assert parse_source_log("sources/0/1", b"v1") == ()


def test_file_sink_log():
    files = parse_sink_log("_spark_metadata/0", SINK)
    assert files == ("file:///out/part-0.parquet",)


def test_damaged_logs_of_files():
    assert fault(parse_source_log("x", b"")) is Fault.EMPTY
    assert fault(parse_source_log("x", SOURCE[:-1])) is Fault.TRUNCATED_JSON
    assert fault(parse_source_log("x", b"v2\n")) is Fault.NEWER_VERSION
    assert fault(parse_source_log("x", SINK)) is Fault.BAD_JSON
    assert fault(parse_sink_log("x", SOURCE)) is Fault.BAD_JSON


def test_kafka_start():
    offsets: Json = {"orders": {"0": 5, "1": 7}}
    text = b'{"orders":{"1":7,"0":5}}'
    assert parse_kafka_start("sources/0/0", b"\0v1\n" + text) == offsets
    assert parse_kafka_start("sources/0/0", b"\0" + text) == offsets  # Spark 2.1.0
    assert parse_kafka_start("sources/0/0", b"x" + text) == offsets  # that byte is not looked at
    assert fault(parse_kafka_start("x", b"")) is Fault.EMPTY
    assert fault(parse_kafka_start("x", b"\0")) is Fault.EMPTY
    assert fault(parse_kafka_start("x", b"\0v1")) is Fault.INCOMPLETE
    assert fault(parse_kafka_start("x", b"\0v2\n" + text)) is Fault.NEWER_VERSION
    assert fault(parse_kafka_start("x", b"\0v1\n" + text[:-2])) is Fault.TRUNCATED_JSON


def test_checksums_and_foreign_files_are_no_entries():
    assert compactible_log([".0.crc", "0", "README", "1.tmp"]) == CompactibleLog(0, 10, 0, ())


def test_the_default_counts_until_there_are_two_compacted_files():
    assert compactible_log(["35.compact", "36"]).interval == 12
    assert compactible_log(["11.compact", "12"]).interval == 12
    assert compactible_log(["5.compact", "11.compact", "12"]).interval == 6
