"""The rules for partitions of Kafka and the advice, for what no recorded case has: no broker, no JVM."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ckpt import Inspection, open_checkpoint
from ckpt.advice import Advice, Call, Do, Instruction
from ckpt.checkpoint.sources.registry import SourceRange
from ckpt.inspection.inspection import inspect
from ckpt.live.kafka.ask import Mark
from ckpt.live.kafka.outlook import foresee_partitions
from ckpt.live.outlook import Fate
from ckpt.live.records import KafkaNow, LiveSource, Part, PartitionNow, TopicNow, Younger
from ckpt.live.sink.records import SinkKind, SinkLog, SinkWriter
from ckpt.restart.findings import Asked, Outcome
from ckpt.versions import Progress, Spark
from tests.live.kafka.cases import written

# a, b (None: a new batch), earliest, latest, a younger row: fate, in the batch after, waiting, lost
TABLE: list[tuple[int, int | None, int, int, bool, Fate, bool, int, int]] = [
    (20, None, 0, 20, False, Fate.CONTINUES, False, 0, 0),
    (20, None, 20, 20, False, Fate.CONTINUES, False, 0, 0),
    (20, None, 0, 30, False, Fate.CONTINUES, False, 10, 0),
    (20, None, 0, 30, True, Fate.LOOKS_RECREATED, False, 10, 20),
    (20, None, 0, 19, False, Fate.ENDS_EARLIER, False, 0, 19),
    (20, None, 2, 4, True, Fate.ENDS_EARLIER, False, 0, 2),
    (20, None, 21, 30, False, Fate.EXPIRED, False, 9, 1),
    (20, None, 30, 30, False, Fate.EXPIRED, False, 0, 10),
    (10, 20, 10, 20, False, Fate.CONTINUES, False, 10, 0),
    (10, 20, 10, 19, False, Fate.WAITS, False, 9, 0),
    (10, 20, 3, 10, False, Fate.WAITS, False, 0, 7),
    (10, 20, 0, 9, False, Fate.ENDS_EARLIER, False, 0, 9),
    (10, 20, 11, 30, False, Fate.EXPIRED, False, 19, 1),
    (10, 20, 25, 30, False, Fate.EXPIRED, False, 5, 15),
    (20, 20, 0, 4, False, Fate.ENDS_EARLIER, True, 0, 4),
    (20, 20, 25, 30, False, Fate.EXPIRED, True, 5, 5),
    (20, 20, 0, 30, False, Fate.CONTINUES, True, 10, 0),
]


@pytest.mark.parametrize(("a", "b", "low", "high", "younger", "fate", "later", "waiting", "lost"), TABLE)
def test_the_fate_of_a_partition(
    a: int, b: int | None, low: int, high: int, younger: bool, fate: Fate, later: bool, waiting: int, lost: int
) -> None:
    there = PartitionNow(low, high, Younger(1, 0) if younger else None)
    reading = SourceRange(0, {"t": {"0": a}}, None if b is None else {"t": {"0": b}})
    (one,) = foresee_partitions(reading, KafkaNow({"t": TopicNow("id", (0,))}, {("t", 0): there})) or ()
    assert (one.fate, one.later, one.waiting, one.lost) == (fate, later, waiting, lost)


def now(parts: dict[Part, tuple[int, int]], **more: object) -> KafkaNow:
    topics = {topic: TopicNow("id", tuple(n for t, n in parts if t == topic)) for topic, _ in parts}
    return KafkaNow(topics, {part: PartitionNow(*ends) for part, ends in parts.items()}, **more)  # type: ignore[arg-type]


def told(folder: Path, there: KafkaNow, *, committed: bool = True) -> Inspection:
    return inspect(open_checkpoint(str(written(folder / "ck", "t", committed=committed))), live=[LiveSource(0, there)])


def calls(found: Inspection, name: str) -> list[Call]:
    """The calls of a name that the first trouble advises."""
    steps = (found.troubles[0].advice or Advice()).all_steps()
    return [step.call for step in steps if step.call is not None and step.call.name == name]


def moved_to(found: Inspection) -> Any:
    """The offset to which the first trouble moves the query."""
    (call,) = calls(found, "offsets_set")
    return json.loads(str(dict(call.options)["to"]))


def test_one_short_partition_gives_away_the_whole_topic(tmp_path: Path) -> None:
    found = told(tmp_path, now({("t", 0): (0, 4), ("t", 1): (0, 50)}))
    assert [one.fate for one in found.live[0].parts] == [Fate.ENDS_EARLIER, Fate.LOOKS_RECREATED]
    assert found.live[0].lost == 4 + 20
    assert moved_to(found) == {"t": {"0": 0, "1": 0}}
    assert {one.error for one in found.counted} == {"offset was changed from 20 to 4"}


def test_what_several_partitions_have_in_common_is_foretold(tmp_path: Path) -> None:
    found = told(tmp_path, now({("t", 0): (25, 30), ("t", 1): (27, 30)}))
    assert {one.outcome for one in found.counted} == {Outcome.FAILS_IN_BATCH}
    assert {one.error for one in found.counted} == {"Could not read records in offset [20, "}
    assert moved_to(found) == {"t": {"0": 25, "1": 27}}
    changed = told(tmp_path / "other", now({("t", 0): (0, 3), ("t", 1): (0, 11)}))
    assert {one.error for one in changed.counted} == {"offset was changed from 20 to "}


def test_advice_about_a_planned_batch_keeps_what_it_had_of_other_topics(tmp_path: Path) -> None:
    checkpoint = written(tmp_path / "ck", "t", committed=False)
    for batch, at in ((0, 10), (1, 20)):
        file = checkpoint / "offsets" / str(batch)
        lines = file.read_text().splitlines()
        file.write_text("\n".join([*lines[:2], json.dumps({"t": {"0": at, "1": at}, "u": {"0": at}})]))
    there = now({("t", 0): (0, 4), ("t", 1): (0, 4), ("u", 0): (0, 20)})
    found = inspect(open_checkpoint(str(checkpoint)), live=[LiveSource(0, there)])
    assert calls(found, "skip")
    assert moved_to(found) == {"t": {"0": 0, "1": 0}, "u": {"0": 10}}


def passed(folder: Path, there: KafkaNow) -> Inspection:
    """Batch 1 is planned, and a Delta table has it."""
    checkpoint = open_checkpoint(str(written(folder / "ck", "t", committed=False)))
    assert checkpoint.query_id is not None
    writer = SinkWriter(checkpoint.query_id, 1, int(time.time() * 1000), expired=False)
    sink = SinkLog("table", SinkKind.DELTA, writers=(writer,))
    return inspect(checkpoint, (Spark.V4_2,), Asked.SYNC, sink=sink, live=[LiveSource(0, there)])


def test_a_planned_batch_that_the_sink_has_is_not_read_again(tmp_path: Path) -> None:
    found = passed(tmp_path, now({("t", 0): (15, 20), ("t", 1): (20, 25)}))
    assert [one.outcome for one in found.counted] == [Outcome.RESUMES]
    assert (found.sound, found.live[0].waiting, found.live[0].lost) == (True, 5, 0)


@pytest.mark.parametrize(
    ("ends", "to"), [((25, 30), 25), ((0, 4), 0), ((7, 9), 7)], ids=["expired", "recreated", "recreated and expired"]
)
def test_what_stops_the_batch_after_one_that_the_sink_has(ends: tuple[int, int], to: int, tmp_path: Path) -> None:
    found = passed(tmp_path, now({("t", 0): ends, ("t", 1): ends}))
    assert [one.outcome for one in found.counted] == [Outcome.RESUMES]
    (trouble,) = found.troubles
    assert trouble.advice is not None
    first, _ = trouble.advice.steps
    assert isinstance(first.do, Instruction)
    assert first.do.do is Do.START
    assert "Batch 1 is already in the sink, which skips it: start the query with trigger once" in str(first.what)
    assert calls(found, "skip") == []
    assert moved_to(found) == {"t": {"0": to, "1": to}}


def test_a_topic_that_only_looks_recreated_stops_no_batch(tmp_path: Path) -> None:
    ends = {("t", number): PartitionNow(0, 50, Younger(1, 0)) for number in (0, 1)}
    (trouble,) = passed(tmp_path, KafkaNow({"t": TopicNow("id", (0, 1))}, ends)).troubles
    assert trouble.finding.diagnosis.code == "CKPT425"
    assert trouble.advice is not None
    first, begin = map(str, trouble.advice.sentences())
    assert first.startswith("If the topic was not recreated, start the query as usual.")
    assert begin.startswith("Start at the earliest rows of the new topic")
    assert "fail" not in begin


def test_a_topic_that_is_gone_after_a_batch_that_the_sink_has(tmp_path: Path) -> None:
    found = passed(tmp_path, KafkaNow({"t": TopicNow(None)}, {}))
    (trouble,) = found.troubles
    assert trouble.finding.diagnosis.code == "CKPT423"
    assert calls(found, "skip") == []
    assert moved_to(found) == {"t": {"0": 0, "1": 0}}


def test_a_topic_recreated_after_a_batch_without_rows_of_it_is_read_from_its_beginning(tmp_path: Path) -> None:
    checkpoint = written(tmp_path / "ck", "t", committed=False)
    offsets = checkpoint / "offsets"
    (offsets / "1").write_text((offsets / "0").read_text())  # as where another source alone has rows
    there = now({("t", 0): (0, 4), ("t", 1): (0, 4)})
    found = inspect(open_checkpoint(str(checkpoint)), (Spark.V4_2,), Asked.SYNC, live=[LiveSource(0, there)])
    assert "Batch 1 still runs" in (found.troubles[0].remedy or "")
    assert moved_to(found) == {"t": {"0": 0, "1": 0}}


def test_a_topic_given_up_is_taken_out(tmp_path: Path) -> None:
    there = now({("t", 0): (0, 25), ("t", 1): (0, 20), ("u", 0): (4, 9)}, subscribed=frozenset({"u"}))
    found = told(tmp_path, there)
    assert found.troubles[0].finding.diagnosis.code in ("CKPT422", "CKPT424")
    assert moved_to(found) == {"t": {"0": None, "1": None}, "u": {"0": 4}}


def test_a_forecast_that_fails_anyway_stays(tmp_path: Path) -> None:
    checkpoint = written(tmp_path / "ck", "t", committed=True)
    (checkpoint / "offsets" / "1").write_text("v1\n")
    plain = inspect(open_checkpoint(str(checkpoint)))
    found = inspect(open_checkpoint(str(checkpoint)), live=[LiveSource(0, now({("t", 0): (0, 4)}))])
    assert found.forecasts == plain.forecasts
    assert [one.parts for one in found.live] == [()]


@pytest.mark.parametrize(
    ("younger", "earliest", "shows"),
    [(0, 0, True), (9, 0, True), (10, 0, False), (19, 9, False), (20, 0, False), (15, 15, True), (-1, 0, False)],
)
def test_a_younger_row_of_the_batch_itself_shows_nothing(younger: int, earliest: int, shows: bool) -> None:
    part = ("t", 0)
    assert Mark(2, 0, {part: 20}, {part: 10}).shows(part, younger, earliest) is shows
    assert Mark(0, 0, {part: 20}, {}).shows(part, younger, earliest) is (0 <= younger < 20)


def test_without_a_start_offset_nothing_is_said() -> None:
    reading = SourceRange(0, None, {"t": {"0": 4}})
    assert foresee_partitions(reading, now({("t", 0): (0, 4)})) is None


def test_the_forecast_is_for_both_ways_of_tracking_progress(tmp_path: Path) -> None:
    found = told(tmp_path, now({("t", 0): (0, 4), ("t", 1): (0, 4)}))
    assert {one.outcome for one in found.forecasts if one.progress is Progress.ASYNC} == {Outcome.FAILS_IN_BATCH}
    assert found.verdict.startswith("Will not restart: sources/0: ")
