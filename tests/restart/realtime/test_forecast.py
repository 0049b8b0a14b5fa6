"""Every recorded start in real-time mode, and in micro-batches after it, is compared with the forecast."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import open_checkpoint
from ckpt.inspection.preflight import PlannedStart, compare_real_time, judge_start
from ckpt.query.description import DescribedOperator, DescribedSource, QueryDescription
from ckpt.restart.findings import Asked, Outcome
from ckpt.restart.rules import forecast
from ckpt.versions import Progress, Spark
from tests.restart.oracle.test_forecast import disagreements
from tests.restart.realtime import cases
from tests.restart.realtime.record import ANSWERS, SUITE
from tests.support.places import SAMPLES
from tests.support.spark import mutations

MINORS = ("4.1", "4.2", "4.3")
RECORDED = {minor: ANSWERS.read(minor)["answers"] for minor in MINORS}
NEW = [start for start in cases.STARTS if start.case.name.startswith("new-")]
IN_OTHER_SESSIONS = [start for start in cases.STARTS if start.conf and start not in NEW]
ON_CHECKPOINTS = [
    start for start in cases.STARTS if not (start in NEW or start.conf or start.rewritten or start.repaired)
]

DOUBTFUL = {"real-time-aggregation-4.3-planned-twice/realtime": "which state batch c + 1 loads was not looked at"}
OF_THE_SESSION = {
    ("4.1", "real-time-4.3-in-format2/realtime"): "this session reads commits of version 2",
    ("4.1", "kafka-4.2-in-format2/realtime"): "this session reads commits of version 2 only",
}
ALLOWED = "format-1-allowed"  # Spark starts, and may lose state at a kill: preflight holds, and names the setting

_COUNTS, _DEDUP, _JOIN = "stateStoreSave", "dedupe", "symmetricHashJoin"
DESCRIBED = {
    "new-rate": ("rate-micro-batch", "Update", (), ()),
    "new-files": ("file", "Update", (), ()),
    "new-append": ("kafka", "Append", (), ()),
    "new-limited": ("kafka", "Update", (), ("maxoffsetspertrigger",)),
    "new-kafka-counts": ("kafka", "Update", (_COUNTS,), ()),
    "new-kafka-dedup": ("kafka", "Update", (_DEDUP,), ()),
    "new-kafka-join": ("kafka", "Update", (_JOIN,), ()),
    "new-kafka-sessions": ("kafka", "Update", ("sessionWindowStateStoreSaveExec",), ()),
    "new-hdfs": ("kafka", "Update", (), ()),
    "new-counts-hdfs": ("kafka", "Update", (_COUNTS,), ()),
    "new-format-1": ("kafka", "Update", (), ()),
}
"""The queries of `NEW` as `describe_query` describes them; what it does not see, the sink `noop`, is left out."""


def _read(start: cases.Start, tmp_path: Path) -> Checkpoint:
    folder = mutations.copy_of(start.case.folder, tmp_path / "checkpoint", start.case.mutations)
    return open_checkpoint(str(folder))


def _list_minors(start: cases.Start) -> list[str]:
    return [minor for minor in MINORS if minor >= start.since]


@pytest.mark.parametrize("start", ON_CHECKPOINTS, ids=lambda start: start.name)
def test_the_forecast_is_what_spark_did(start: cases.Start, tmp_path: Path) -> None:
    checkpoint, wrong = _read(start, tmp_path), {}
    for minor in _list_minors(start):
        answer = RECORDED[minor][start.name]
        told = forecast(checkpoint, Spark(minor), Progress(start.mode))
        if told.outcome is Outcome.UNKNOWN and start.name in DOUBTFUL:
            continue
        refused = told.outcome is Outcome.REFUSED and answer["outcome"] == "fails-at-start"
        disagreeing = disagreements(told, answer | {"outcome": "refused"} if refused else answer)
        if disagreeing and (minor, start.name) not in OF_THE_SESSION:
            wrong[minor] = disagreeing
    assert wrong == {}


@pytest.mark.parametrize("start", IN_OTHER_SESSIONS, ids=lambda start: start.name)
def test_preflight_holds_a_session_that_spark_refuses(start: cases.Start, tmp_path: Path) -> None:
    checkpoint = _read(start, tmp_path)
    for minor in _list_minors(start):
        runs = RECORDED[minor][start.name]["outcome"] == "resumes"
        readiness = judge_start(checkpoint, PlannedStart(Spark(minor), start.conf, progress=Asked.REALTIME))
        needs_it = ALLOWED in start.name and "format2" not in start.name
        assert readiness.go == (runs and not needs_it), minor


@pytest.mark.parametrize(
    "start", [start for start in NEW if start.case.name in DESCRIBED], ids=lambda start: start.name
)
def test_preflight_holds_a_query_that_spark_refuses(start: cases.Start) -> None:
    kind, output_mode, operators, limits = DESCRIBED[start.case.name]
    for minor in _list_minors(start):
        source = replace(DescribedSource(kind), limits=limits)
        described = tuple(map(DescribedOperator, operators))
        query = QueryDescription(Spark(minor), output_mode, (source,), described, None, None, {})
        refused = any(compare_real_time(query, start.conf, [Spark(minor)]))
        assert refused == (RECORDED[minor][start.name]["outcome"] == "fails-at-start"), minor


@pytest.mark.parametrize("name", ["kafka-4.2-repaired/realtime", "kafka-4.2-planned-repaired/realtime"])
def test_a_repair_that_was_chosen_continues_in_real_time(name: str) -> None:
    """From the end of the newest committed batch: no row is lost, and none is read again."""
    whole = RECORDED["4.3"]["kafka-4.2-whole/realtime"]
    answer = RECORDED["4.3"][name]
    end = json.loads((SAMPLES / "kafka-4.2/offsets/5").read_text().split("\n")[2])
    assert whole["outcome"] == "fails-at-start"
    assert (answer["outcome"], answer["batch"], answer["sources"][0]["from"], answer["rows"]) == (
        "resumes",
        6,
        end,
        100,
    )


@pytest.mark.parametrize("start", [start for start in cases.STARTS if start.rewritten], ids=lambda start: start.name)
def test_real_time_mode_continues_after_a_rewrite_with_every_number_counted_once(start: cases.Start) -> None:
    """Batches of the sample had counted the numbers up to the position at which it reads Kafka here."""
    answer = RECORDED["4.3"][start.name]
    ends = answer["sources"][0]["to"]["orders"]
    counted: dict[str, list[int]] = {}
    for number in (number for number in range(200) if number // 2 < ends[str(number % 2)]):
        rows, total = counted.get(str(number % 7), (0, 0))
        counted[str(number % 7)] = [rows + 1, total + number]
    assert answer["outcome"] == "resumes"
    assert answer["counts"] == counted


def test_enough_is_recorded() -> None:
    asked = [start for start in cases.STARTS if start.mode == "realtime"]
    assert len(asked) >= 60
    for minor in MINORS:
        of = {start.name: SUITE.fingerprint(start) for start in cases.STARTS if minor >= start.since}
        assert {name: answer["of"] for name, answer in RECORDED[minor].items()} == of
