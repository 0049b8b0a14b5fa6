from dataclasses import replace

from ckpt.formats.offsets import format_offset_log, is_continuous, parse_offset_log
from ckpt.model import Fault, OffsetLog, OffsetMetadata, SourceOffset, Unreadable

KAFKA = '{"orders":{"1":295,"0":310}}'
METADATA = '{"batchWatermarkMs":5,"batchTimestampMs":7,"conf":{"b":"2","a":"1"}}'


def parsed(text: str) -> OffsetLog:
    log = parse_offset_log("offsets/7", text.encode())
    assert isinstance(log, OffsetLog), log
    return log


def damage(text: str | bytes) -> Unreadable:
    log = parse_offset_log("offsets/7", text if isinstance(text, bytes) else text.encode())
    assert isinstance(log, Unreadable), log
    return log


def test_version_1():
    log = parsed(f"v1\n{METADATA}\n{KAFKA}\n-\n42")
    assert log.metadata == OffsetMetadata(5, 7, {"a": "1", "b": "2"}, METADATA)
    assert list(log.metadata.conf) == ["b", "a"]
    assert log.sources == (
        SourceOffset(None, KAFKA, {"orders": {"0": 310, "1": 295}}),
        SourceOffset(None, None, None),
        SourceOffset(None, "42", 42),
    )


def test_a_source_line_that_is_not_json_is_kept_and_told():
    for text in ("hello", "", "{", "007"):
        log = parsed(f"v1\n{METADATA}\n1\n{text}\n2")
        assert log.sources[1] == SourceOffset(None, text, None, well_formed=False, cut=text == "{")
        assert format_offset_log(log).decode() == f"v1\n{METADATA}\n1\n{text}\n2"


def test_text_after_the_json_of_a_source_line_is_kept_and_ignored():
    for text, value in (("{} x", {}), ("1 2", 1)):
        log = parsed(f"v1\n{METADATA}\n1\n{text}\n2")
        assert log.sources[1] == SourceOffset(None, text, value)
        assert format_offset_log(log).decode() == f"v1\n{METADATA}\n1\n{text}\n2"


def test_metadata_that_ckpt_makes_is_written_as_spark_writes_it():
    log = parsed(f"v1\n{METADATA}\n42")
    assert log.metadata is not None
    changed = replace(log, metadata=replace(log.metadata, watermark_ms=9, text=None))
    assert format_offset_log(changed).decode() == f"v1\n{METADATA.replace(':5', ':9')}\n42"


def test_continuous_processing_writes_no_metadata():
    """Measured on 4.3.0: offsets of a rate source under ``trigger(continuous=...)``."""
    assert is_continuous(parsed('v1\n\n{"0":{"value":20,"runTimeMs":1795254421995}}')) is True
    assert is_continuous(parsed('v1\n\n{"orders":{"0":5}}')) is True
    assert is_continuous(parsed(f"v1\n{METADATA}\n42")) is False
    assert is_continuous(parsed("v1\n\n")) is None
    assert is_continuous(parsed("v1\n\n1\n2")) is None
    assert is_continuous(parsed("v1\n\n-")) is None


def test_faults():
    assert damage("").fault is Fault.EMPTY
    assert damage("\n").fault is Fault.BAD_VERSION
    assert damage("v1").fault is Fault.INCOMPLETE
    assert damage("v2\n\n0:1").fault is Fault.INCOMPLETE
    assert damage(f"v2\n{METADATA}\n42").fault is Fault.INCOMPLETE
    assert damage("v1\n{\n1").fault is Fault.TRUNCATED_JSON
    assert damage("v1\n<html>\n1").fault is Fault.BAD_JSON
    assert damage('v1\n{"batchWatermarkMs":"5"}\n1').fault is Fault.BAD_JSON
    assert damage("v3\n{}\n1").fault is Fault.NEWER_VERSION
    assert damage(b"v1\n{}\n\xff").fault is Fault.BAD_BINARY


def test_the_version_is_told_where_it_could_be_read():
    assert [damage(text).version for text in ("", "hello", "v3\n{}", "v1\n{", "v2")] == [None, None, 3, 1, 2]


def test_reasons_are_safe_to_print():
    assert (
        damage("\x1b[31mred\u202e\x00").reason
        == 'its first line is "\\x1b[31mred\\u202e\\x00", not a version such as v1'
    )
    assert len(damage("x" * 10_000).reason) < 120
