"""No bytes whatever make a parser raise, and what it says of them is one short printable line."""

import json
import sys

import pytest
from hypothesis import given, settings, strategies as st

from ckpt.checkpoint.sources.registry import advance, advances, decode, source_views
from ckpt.formats.commits import format_commit_log, parse_commit_log
from ckpt.formats.metadata import parse_metadata
from ckpt.formats.names import compactible_id, compactible_log, sort_batch_names
from ckpt.formats.offsets import format_offset_log, is_continuous, parse_offset_log
from ckpt.formats.operators import parse_operator_metadata
from ckpt.formats.schemas import parse_state_schema
from ckpt.formats.sidecars import parse_hadoop_sidecar, parse_spark_sidecar
from ckpt.formats.sourcelogs import parse_kafka_start, parse_sink_log, parse_source_log
from ckpt.model import CommitLog, OffsetLog, Unreadable
from tests.formats.spark_cases import KINDS

pytestmark = pytest.mark.slow

PARSERS = [
    parse_metadata,
    parse_operator_metadata,
    parse_state_schema,
    parse_offset_log,
    parse_commit_log,
    parse_source_log,
    parse_sink_log,
    parse_kafka_start,
    parse_hadoop_sidecar,
    parse_spark_sidecar,
]
BEGINNINGS = [b"v1\n", b"v2\n", b"v3\n{", b"crc\0", b"\0v1\n", *(b"\0\2v%d" % n for n in (1, 2, 3)), b"\0\2v3\0\0\0\1"]
TEXTS = st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
WHOLE = [raw for cases in KINDS.values() for raw in cases.values()]
HOSTILE = {
    "deep list": b"v1\n" + b"[" * 100_000,
    "deep object": b'v1\n{"conf":' + b'{"a":' * 50_000,
    "deep and closed": b"v1\n" + b"[" * 50_000 + b"]" * 50_000,
    "deep source": b"v1\n{}\n" + b"[" * 100_000 + b"]" * 100_000,
    "just below the limit": b"v1\n{}\n" + b"[" * 1000 + b"]" * 1000,
    "long number": b'v1\n{"batchWatermarkMs":' + b"9" * 900_000 + b"}",
    "long source number": b"v1\n{}\n" + b"9" * 900_000,
    "number of 4,400 digits": b"\0" + b'{"a":{"0":' + b"9" * 4_400 + b"}}",
    "long string": b'v1\n{"conf":{"a":"' + b"x" * 900_000 + b'"}}',
    "open string": b'v1\n{"conf":{"a":"' + b"\\" * 900_001,
    "many lines": b"v1\n{}\n" + b"\n" * 100_000,
    "many keys": b'v1\n{"conf":{' + b",".join(b'"%d":"x"' % n for n in range(50_000)) + b"}}",
    "many equal keys": b'v1\n{"conf":{' + b",".join(b'"%d":"x"' % (n % 25_000) for n in range(50_000)) + b"}}",
    "garbage": bytes(range(256)) * 4_000,
    "zeros": bytes(1_000_000),
    "line ends": b"\r" * 500_000 + b"\n" * 500_000,
    "long version": b"v" + b"1" * 900_000,
    "bad utf-8 far out": b"v1\n{}\n" + b"x" * 900_000 + b"\xff",
    "exponent": b"v1\n{}\n1e999999999",
    "surrogates": b'v1\n{"conf":{"a":"' + b"\\ud800" * 100_000 + b'"}}\n"\\udfff"',
}


def check(record: object) -> None:
    if isinstance(record, Unreadable):
        assert record.path == "some/path"
        assert record.reason.isprintable()
        assert 0 < len(record.reason) < 160


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(parse, name):
    check(parse("some/path", HOSTILE[name]))


@pytest.mark.parametrize("parse", PARSERS)
def test_hostile_files_deep_in_the_stack(parse):
    """Python's recursion limit counts what is already on the stack."""

    def deeper(levels: int) -> None:
        if levels:
            return deeper(levels - 1)
        for raw in HOSTILE.values():
            check(parse("some/path", raw))

    deeper(sys.getrecursionlimit() - 250)


@pytest.mark.parametrize("parse", PARSERS)
def test_every_file_that_spark_was_asked_about(parse):
    for raw in WHOLE:
        check(parse("some/path", raw))


@given(st.sampled_from(PARSERS), st.binary(max_size=300))
def test_random_bytes(parse, raw):
    check(parse("some/path", raw))


@pytest.mark.slow
@given(st.sampled_from(PARSERS), st.sampled_from(BEGINNINGS), TEXTS | st.binary(max_size=200))
def test_random_bytes_behind_a_good_beginning(parse, start, raw):
    check(parse("some/path", start + raw))


@settings(max_examples=400)
@given(st.sampled_from(PARSERS), st.sampled_from(WHOLE), st.data())
def test_real_files_with_a_piece_replaced(parse, raw, data):
    start = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(start, len(raw)))
    check(parse("some/path", raw[:start] + data.draw(st.binary(max_size=20)) + raw[end:]))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6) | st.sampled_from("0123"), inner, max_size=4)
    ),
    max_leaves=12,
)
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "logOffset": VALUES,
        "offset": VALUES,
        "timestamp": VALUES,
        "sourceVersion": st.sampled_from([1, 3]) | VALUES,
        "reservoirId": st.text(max_size=3) | VALUES,
        "reservoirVersion": st.integers() | VALUES,
        "index": st.integers() | VALUES,
        "isStartingVersion": st.booleans() | VALUES,
        "orders": st.dictionaries(st.integers(0, 5).map(str), st.integers(), max_size=3) | VALUES,
    },
)


@given(VALUES | SHAPED, VALUES | SHAPED)
def test_any_json_as_offsets(before, after):
    found = advance(decode(before), decode(after))
    assert found is None or (found.amount is None or found.amount >= 0)
    assert found is None or found.amount is not None or found.went_back or found.replaced


@given(st.binary(max_size=200).map(lambda raw: b"v1\n{}\n" + raw) | st.sampled_from(WHOLE))
def test_any_offset_file_as_sources(raw):
    log = parse_offset_log("offsets/1", raw)
    if isinstance(log, OffsetLog):
        views = source_views(log)
        assert len(views) == len(log.sources) == len(advances(log, log))
        json.dumps([view.decoded for view in views])
        assert is_continuous(log) in (True, False, None)


LINE = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=30)


@given(st.sampled_from([1, 2]), st.lists(LINE, max_size=5))
def test_offset_files_come_back_as_they_were(version, texts):
    lines = texts if version == 1 else [f"s{n}:{text}" for n, text in enumerate(texts)]
    if lines and not lines[-1]:
        lines[-1] = "0"  # Spark never writes an empty last line, which no reader sees
    raw = "\n".join([f"v{version}", '{"batchWatermarkMs":1,"conf":{"a":"b"}}', *lines]).encode()
    log = parse_offset_log("offsets/1", raw)
    assert isinstance(log, OffsetLog)
    assert format_offset_log(log) == raw


UNIQUE = st.dictionaries(st.integers(0, 9), st.lists(st.lists(st.uuids().map(str), max_size=3), max_size=3), max_size=3)


@given(st.integers(-(2**63), 2**63 - 1), st.none() | UNIQUE)
def test_commit_files_come_back_as_they_were(watermark, ids):
    value = {"nextBatchWatermarkMs": watermark} | ({} if ids is None else {"stateUniqueIds": ids})
    raw = f"v{1 if ids is None else 2}\n{json.dumps(value, separators=(',', ':'))}".encode()
    log = parse_commit_log("commits/1", raw)
    assert isinstance(log, CommitLog)
    assert format_commit_log(log) == raw


@given(st.lists(st.text(max_size=5) | st.integers().map(str) | st.integers().map(lambda n: f"{n}.compact"), max_size=8))
def test_any_names(names):
    found = sort_batch_names(names)
    assert len(found.ids) + len(found.odd) + len(found.others) == len(names)
    assert list(found.ids) == sorted(found.ids)
    log = compactible_log(names)
    assert (log.latest is None) == (
        not any((compactible_id(name) or 0) >= 0 and compactible_id(name) is not None for name in names)
    )
