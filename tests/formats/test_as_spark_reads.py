"""What Spark 3.5.9 to 4.3.0 made of 2,900 log files, against what the parsers make of them."""

import json
from functools import cache
from typing import Any

import pytest

from ckpt.formats.commits import format_commit_log, parse_commit_log
from ckpt.formats.metadata import parse_metadata
from ckpt.formats.names import compactible_id, compactible_log, sort_batch_names
from ckpt.formats.offsets import parse_offset_log
from ckpt.formats.sourcelogs import parse_sink_log, parse_source_log
from ckpt.model import CommitLog, Fault, OffsetLog, QueryMetadata, Unreadable
from tests.formats import spark_answers
from tests.formats.spark_cases import COMPACTIBLE, KINDS, NAMES

PARSERS = {
    "offsets": parse_offset_log,
    "commits": parse_commit_log,
    "metadata": parse_metadata,
    "file-source": parse_source_log,
    "file-sink": parse_sink_log,
}
NULLS = "Spark's class reads JSON null as a null record and falls over it later"
DIFFERENT = {
    "id null": NULLS,
    "v1 operator key 'x'": "4.0 and 4.1 look for unique ids in version 1 too and fail; no Spark writes any there",
    "bad-utf8-third-far": "Spark stops reading before the damage, 30 kB behind the two lines it wants",
}
answers = cache(spark_answers.load)
VERSIONS = sorted(answers())
CASES = [(version, kind) for version in VERSIONS for kind in PARSERS]


def outcomes(version: str, kind: str) -> list[tuple[str, Any, dict[str, Any]]]:
    """Case, what the parser makes of it, what Spark said; without log versions that this Spark refuses."""
    found = []
    for name, raw in KINDS[kind].items():
        said = answers()[version][kind][name]
        record = PARSERS[kind]("path", raw)
        refused = "UnsupportedLogVersion" in said.get("says", "")
        if name not in DIFFERENT and not (refused and getattr(record, "version", 1) != 1):
            found.append((name, record, said))
    return found


def is_null(record: object) -> bool:
    return isinstance(record, Unreadable) and record.reason == "its JSON is null"


def test_many_cases_were_asked():
    assert sum(map(len, KINDS.values())) > 2800


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_readable_where_spark_reads(version, kind):
    wrong = [
        (name, record, said)
        for name, record, said in outcomes(version, kind)
        if isinstance(record, Unreadable) == ("read" in said) and not is_null(record)
    ]
    assert wrong == []


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_words_that_spark_says(version, kind):
    wrong = [
        (name, record.says, said["says"])
        for name, record, said in outcomes(version, kind)
        if isinstance(record, Unreadable)
        and record.says is not None
        and said["error"] != "StackOverflowError"
        and record.says not in said["says"]
    ]
    assert wrong == []


@pytest.mark.parametrize("kind", PARSERS)
def test_most_damage_has_words(kind):
    damaged = [record for _, record, _ in outcomes("4.3.0", kind) if isinstance(record, Unreadable)]
    assert sum(record.says is not None for record in damaged) > 0.85 * len(damaged)


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncation_is_told_as_such(version, kind):
    """A cut file is empty, ends early, or its version line or JSON is cut; nothing else is said of it."""
    expected = {Fault.EMPTY, Fault.INCOMPLETE, Fault.BAD_VERSION, Fault.TRUNCATED_JSON}
    cut = [record for name, record, _ in outcomes(version, kind) if "prefix" in name]
    assert cut
    assert {record.fault for record in cut if isinstance(record, Unreadable)} <= expected


@pytest.mark.parametrize("version", VERSIONS)
def test_offset_records_hold_what_spark_read(version):
    compared = 0
    for name, record, said in outcomes(version, "offsets"):
        if isinstance(record, OffsetLog) and "big-float" not in name:
            text, shown = said["read"]
            assert _offsets_as_spark_shows(record, shown) == shown, name
            expected = None if text is None else json.loads(text)
            assert _metadata_as_spark_writes(record, expected) == expected, name
            compared += 1
    assert compared > 150


def _offsets_as_spark_shows(record: OffsetLog, shown: str) -> str:
    texts = ["-" if source.text is None else source.text for source in record.sources]
    if record.version == 1:
        return f"[{', '.join(texts)}]"
    pairs = [f"{source.name}: {text}" for source, text in zip(record.sources, texts, strict=True)]
    return shown if len(pairs) > 4 else f"{{{', '.join(pairs)}}}"  # above four, Scala's maps have no order


def _metadata_as_spark_writes(record: OffsetLog, expected: dict[str, Any] | None) -> dict[str, Any] | None:
    if record.metadata is None:
        return None
    value: dict[str, Any] = {
        "batchWatermarkMs": record.metadata.watermark_ms,
        "batchTimestampMs": record.metadata.timestamp_ms,
        "conf": dict(record.metadata.conf),
    }
    assert expected is not None
    for unread in ("sourceMetadataInfo", "controlBatchInfo"):
        expected.pop(unread, None)
    expected["conf"] = {key: text or "" for key, text in expected["conf"].items()}
    return value


@pytest.mark.parametrize("version", VERSIONS)
def test_commit_records_hold_what_spark_read(version):
    compared = 0
    for name, record, said in outcomes(version, "commits"):
        if isinstance(record, CommitLog) and "big-float" not in name:
            expected = json.loads(said["read"])
            written = json.loads(format_commit_log(record).split(b"\n", 1)[1])
            written.setdefault("nextBatchWatermarkMs", 0)
            ids = written.pop("stateUniqueIds", None)
            wanted = expected.pop("stateUniqueIds", None)
            if record.version > 1 and "exponent" not in name:
                assert ids == _without_nulls(wanted), name
            assert written == expected, name
            compared += 1
    assert compared > 60


def _without_nulls(ids: dict[str, Any] | None) -> dict[str, Any] | None:
    if ids is None:
        return None
    return {op: [[i or "" for i in stores] for stores in partitions] for op, partitions in ids.items()}


@pytest.mark.parametrize("version", VERSIONS)
def test_query_ids_are_those_that_spark_read(version):
    for name, record, said in outcomes(version, "metadata"):
        if isinstance(record, QueryMetadata) and "big-float" not in name:
            assert record.query_id == json.loads(said["read"])["id"], name


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_names_that_spark_lists_as_batches(version, name):
    listed = _list_ids(name)
    assert answers()[version]["names"][name] == {"read": f"Some({min(listed)})" if listed else "None"}


def _list_ids(name: str) -> list[int]:
    names = sort_batch_names([name])
    return [*names.ids, *names.odd.values()]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", COMPACTIBLE)
def test_compactible_logs_that_spark_restores(version, case):
    said = answers()[version]["compactible"][case]
    log = compactible_log(COMPACTIBLE[case])
    if "read" in said:
        needed = 0 if log.latest is None else log.latest - log.first_needed + 1
        assert (said["read"], log.missing) == (needed, ())
    elif log.interval <= 0:
        assert said["says"] == f"assertion failed: intervalValue = {log.interval} not positive value."
    elif case == "far":
        assert said["says"] == "More than Int.MaxValue elements."
        assert log.missing
    else:
        place = f"(latestId: {log.latest}, compactInterval: {log.interval})"
        assert said["says"].startswith(f"<log>/{log.first_missing} doesn't exist {place}")


def test_plain_names_are_what_compactible_names_are_without_their_ending():
    for name in NAMES:
        assert compactible_id(name) == min(_list_ids(name.removesuffix(".compact")), default=None)
