"""The incident for real: Kafka to Kafka with asynchronous progress tracking, SIGKILL, repair, every record counted.

The input topic holds numbered records before anything starts. A driver copies it in small batches until it is killed;
its checkpoint is then copied for each strategy, repaired, and resumed with synchronous tracking, which reads on to the
end. Each copied record says where it came from, so that a record that is in the output twice can be held against the
ranges that the plan announced. All drivers write to the same output topic, one after the other, and what one of them
wrote is what was not there before.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from docs.generate.sessions import RUNBOOK, runbook
from tests.changes.fixes.async_gap import kafka_query
from tests.changes.fixes.async_gap.runbook import RECORDS, ROLE, TOPIC, starting
from tests.record.worker import Worker
from tests.support.cli import invoke
from tests.support.services.kafka import SPARK
from tests.support.spark import topics
from tests.support.spark.live import EVERY_CASE, Here

PATIENCE_S = 120
ATTEMPTS = 3

Position = tuple[int, int]  # a record of the input topic: partition and offset


def _installed() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "absent"


pytestmark = [
    pytest.mark.spark,
    pytest.mark.service,
    pytest.mark.skipif(
        not _installed().startswith(f"{SPARK}."),
        reason=f"the Kafka connector is for {SPARK}, pyspark is {_installed()}",
    ),
]


class Moment(StrEnum):
    """When the driver is killed, after a random wait: at the first moment at which ..."""

    ANY = "its log ends in a gap"  # for which each waits first
    COMMITTED = "... and the latest batch is committed"
    UNCOMMITTED = "... and the latest batch is not committed"
    LATE = "... and the latest batch was committed a while ago"


KILLS = ((1, Moment.COMMITTED), (2, Moment.UNCOMMITTED), (3, Moment.LATE))[: 3 if EVERY_CASE else 2]
"""Seeds of the random waits, and moments."""


@dataclass(frozen=True)
class Killed:
    """What a killed driver left behind."""

    seed: int
    checkpoint: Path
    output: str  # topic


@dataclass(frozen=True)
class Way:
    """A repair of a copy of a killed driver's checkpoint."""

    seed: int
    strategy: str
    uncommit: bool  # the commit of the latest batch is removed first, as if the driver had died before writing it


WAYS = [
    Way(1, "auto", uncommit=False),
    Way(1, "rewind", uncommit=False),
    Way(2, "fill", uncommit=False),
    Way(2, "rewind", uncommit=False),
    Way(3, "auto", uncommit=True),
    Way(3, "rewind", uncommit=True),
][: 6 if EVERY_CASE else 4]


@dataclass(frozen=True)
class Story:
    """One way, from error to running query."""

    way: Way
    committed: bool  # the latest batch, when it was repaired
    latest: int
    logged: dict[str, int]  # the end of the latest batch: partition to offset
    error: str  # of the synchronous start before the repair
    plan: Any  # JSON documents of ckpt
    applied: Any
    inspected: Any
    batches: list[Any]  # that the synchronous start ran after the repair
    before: Counter[Position]  # what was in the output topic when the driver had been killed
    written: Counter[Position]  # by the synchronous start

    @property
    def promised(self) -> Any:
        """What the plan says of a synchronous start with this Spark."""
        return next(one for one in self.plan["after"] if (one["spark"], one["progress"]) == (SPARK, "sync"))

    @property
    def replayed(self) -> set[Position]:
        """The records that the plan says are read again."""
        found = set()
        for one in self.plan["replay"]:
            for source in one["sources"]:
                begin = (source["from"] or {TOPIC: {}})[TOPIC]
                for partition, end in source["to"][TOPIC].items():
                    found |= {(int(partition), offset) for offset in range(begin.get(partition, 0), end)}
        return found

    @property
    def unlogged_from(self) -> dict[str, int]:
        """Where the range begins of which the plan says that no log knows its end."""
        (said,) = [text for text in self.plan["warnings"] if "no log shows" in text]
        batch = re.search(r"rows after the end of batch (\d+)", said, re.IGNORECASE)
        assert batch is not None
        assert int(batch[1]) == self.latest
        return self.logged

    @property
    def twice(self) -> set[Position]:
        """The records that are in the output more than once."""
        return {position for position, count in (self.before + self.written).items() if count > 1}


@dataclass(frozen=True)
class Told:
    """The ways that were gone, and the runbook as it would be written now."""

    stories: list[Story]
    runbook: str


@pytest.fixture(scope="module")
def environment(kafka: str, kafka_jars: str) -> dict[str, str]:
    return {"CKPT_SPARK_JARS": kafka_jars, "CKPT_KAFKA": kafka}


@pytest.fixture(scope="module")
def killed(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[int, Killed]:
    """Drivers killed one after the other, by seed."""
    folder = tmp_path_factory.mktemp("killed")
    found: dict[int, Killed] = {}
    for seed, moment in KILLS:
        for attempt in range(ATTEMPTS):
            left = Killed(seed, folder / f"{seed}-{attempt}", f"copies-{seed}-{attempt}")
            _run_and_kill(left, moment, environment, fill=not (found or attempt))
            if _is(moment, left.checkpoint):  # what a driver was doing may still get done before it is dead
                found[seed] = left
                break
    assert len(found) == len(KILLS)
    return found


def _run_and_kill(left: Killed, moment: Moment, environment: dict[str, str], fill: bool) -> None:
    with Worker(sys.executable, left.checkpoint.with_suffix(".log"), ROLE, environment) as driver:
        if fill:
            driver.ask({"do": "fill", "topic": TOPIC, "count": RECORDS})
        driver.ask({"do": "follow", "from": TOPIC, "to": left.output, "checkpoint": str(left.checkpoint)})
        waited = _wait_for(moment, left.checkpoint, random.Random(left.seed))
        driver.kill()
    log = f"offsets {sorted(_ids(left.checkpoint, 'offsets'))}, commits {sorted(_ids(left.checkpoint, 'commits'))}"
    sys.stdout.write(f"seed {left.seed}: killed {waited:.2f} s after its first gap, when {moment}: {log}\n")


def _wait_for(moment: Moment, checkpoint: Path, rng: random.Random) -> float:
    """Wait until the log has a gap, then a random time, then for the moment; seconds since the first gap."""
    _poll(lambda: _is(Moment.ANY, checkpoint))
    began = time.monotonic()
    time.sleep(rng.uniform(0.2, 3))
    if moment is Moment.LATE:
        past = _ids(checkpoint, "commits")
        _poll(lambda: _is(Moment.COMMITTED, checkpoint) and _ids(checkpoint, "commits") != past)
        time.sleep(kafka_query.INTERVAL_MS / 1000 * 0.7)
    _poll(lambda: _is(moment, checkpoint))
    return time.monotonic() - began


def _poll(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the driver does not get there"
        time.sleep(0.001)


def _is(moment: Moment, checkpoint: Path) -> bool:
    offsets, commits = (_ids(checkpoint, log) for log in ("offsets", "commits"))
    latest = max(offsets, default=0)
    gap = latest > 1 and latest - 1 not in offsets
    return gap and (moment is Moment.ANY or (latest in commits) != (moment is Moment.UNCOMMITTED))


def _ids(checkpoint: Path, log: str) -> set[int]:
    folder = checkpoint / log
    return {int(file.name) for file in folder.iterdir() if file.name.isdecimal()} if folder.is_dir() else set()


@pytest.fixture(scope="module")
def told(killed: dict[int, Killed], kafka: str, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Every way, repaired and resumed by one more driver."""
    folder, driver = tmp_path_factory.mktemp("repaired"), Here(spark, kafka_query.answer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CKPT_KAFKA", kafka)
        before = {seed: _copied(one.output) for seed, one in killed.items()}
        stories = list(_stories(driver, killed, before, folder))
        return Told(stories, runbook(starting(driver)))


@pytest.fixture
def stories(told: Told) -> list[Story]:
    return told.stories


def _stories(
    driver: Here, killed: dict[int, Killed], before: dict[int, dict[Position, Position]], folder: Path
) -> Iterator[Story]:
    for number, way in enumerate(WAYS):
        left = killed[way.seed]
        checkpoint = folder / f"{number}-{way.strategy}"
        shutil.copytree(left.checkpoint, checkpoint)
        latest = max(_ids(checkpoint, "offsets"))
        if way.uncommit:
            for name in (f".{latest}.crc", str(latest)):
                checkpoint.joinpath("commits", name).unlink(missing_ok=True)
        committed = latest in _ids(checkpoint, "commits")
        logged = json.loads(checkpoint.joinpath("offsets", str(latest)).read_text().splitlines()[2])[TOPIC]
        resume = {"do": "resume", "from": TOPIC, "to": left.output, "checkpoint": str(checkpoint)}
        rows_before = _copied(left.output)
        failed = driver.ask(resume)
        assert not failed["batches"]
        plan = _ckpt(1, "repair-async", checkpoint, "--strategy", way.strategy)
        accept = ["--accept-replay"] if way.strategy == "rewind" else []
        apply = ("--strategy", way.strategy, "--apply", "--grace", "0", *accept)
        applied = _ckpt(0, "repair-async", checkpoint, *apply)
        ran = driver.ask(resume)
        assert ran["error"] is None
        rows = _copied(left.output)
        written = Counter(source for place, source in rows.items() if place not in rows_before)
        inspected = _ckpt(0, "inspect", checkpoint)
        yield Story(
            way,
            committed,
            latest,
            logged,
            failed["error"],
            plan,
            applied,
            inspected,
            ran["batches"],
            Counter(before[way.seed].values()),
            written,
        )


def _copied(topic: str) -> dict[Position, Position]:
    """Every record of an output topic: where it stands, and where it came from."""
    found = {}
    for partition, offset, value in topics.read(topic):
        of, at, number = map(int, value.split())
        assert number == at * topics.PARTITIONS + of, "the record that was written there"
        found[partition, offset] = of, at
    return found


def _ckpt(status: int, *words: object) -> Any:
    """Run the command; its JSON."""
    done = invoke(*words, "-o", "json")
    assert done.exit_code == status, done.stderr + done.stdout
    return json.loads(done.stdout)


def test_the_synchronous_start_fails_as_forecast(stories: list[Story]) -> None:
    for story in stories:
        told = next(one for one in story.plan["before"] if (one["spark"], one["progress"]) == (SPARK, "sync"))
        assert told["outcome"] == "fails-at-start"
        assert told["error"] in story.error
        assert str(story.latest - 1) in told["error"]


def test_the_first_batch_is_the_promised_one(stories: list[Story]) -> None:
    for story in stories:
        first, told = story.batches[0], story.promised
        assert told["outcome"] == "resumes"
        assert first["batch"] == told["batch_id"]
        assert first["from"] == told["sources"][0]["from"]
        assert told["sources"][0]["to"] in (None, first["to"])
        assert story.applied["after"] == story.plan["after"]


def test_no_record_is_lost(stories: list[Story]) -> None:
    everything = {(number % 2, number // 2) for number in range(RECORDS)}
    for story in stories:
        assert set(story.before + story.written) == everything, story.way


def test_a_record_is_doubled_only_where_the_plan_says_so(stories: list[Story]) -> None:
    for story in stories:
        begin = story.unlogged_from
        told = story.replayed
        surprising = {one for one in story.twice - told if one[1] < begin[str(one[0])]}
        assert surprising == set(), story.way
        _tell(story)


def _tell(story: Story) -> None:
    """What came of it, for the log of the test run."""
    beyond = sum(offset >= story.logged[str(partition)] for partition, offset in story.twice)
    state = "committed" if story.committed else "commit removed" if story.way.uncommit else "not committed"
    sys.stdout.write(
        f"seed {story.way.seed}, batch {story.latest} {state}, {story.way.strategy} ({story.plan['strategy']}): "
        f"{story.before.total()} records written before, {len(story.replayed)} announced, {len(story.twice)} twice, "
        f"{beyond} of them after the log\n"
    )


def test_what_is_announced_is_read_again_and_nothing_before_it(stories: list[Story]) -> None:
    """The ranges are not merely wide enough: the start begins just there."""
    for story in stories:
        first = {partition: min(offset for p, offset in story.written if p == partition) for partition in (0, 1)}
        begin = story.batches[0]["from"]
        assert first == {partition: (begin or {TOPIC: {}})[TOPIC].get(str(partition), 0) for partition in (0, 1)}
        assert story.replayed <= set(story.written)
        if not story.replayed:
            assert first == {int(partition): offset for partition, offset in story.logged.items()}


def test_rows_after_the_log_had_been_written_and_are_written_again(stories: list[Story]) -> None:
    """The range without an end is not empty talk, and its start is right: all below it had been written."""
    overrun = [story for story in stories if any(offset >= story.logged[str(p)] for p, offset in story.twice)]
    assert overrun
    for story in stories:
        if story.committed:
            below = {(int(p), offset) for p, end in story.logged.items() for offset in range(end)}
            assert below <= set(story.before)


def test_every_strategy_met_a_committed_and_an_uncommitted_batch(stories: list[Story]) -> None:
    met = {(story.plan["strategy"], story.committed) for story in stories}
    assert met == {(strategy, committed) for strategy in ("fill", "rewind") for committed in (True, False)}
    assert {story.way.strategy for story in stories} == {"auto", "fill", "rewind"}
    assert any(not story.committed and not story.way.uncommit for story in stories)


def test_ckpt_finds_nothing_wrong_any_more(stories: list[Story]) -> None:
    for story in stories:
        assert {one["severity"] for one in story.inspected["findings"]} <= {"note"}
        assert len(story.batches) >= 2


def test_the_runbook_shows_what_spark_did(told: Told) -> None:
    page = RUNBOOK.read_text(encoding="utf-8")
    assert _timeless(told.runbook) == _timeless(page), "run python -m tests.changes.fixes.async_gap.runbook"


def _timeless(page: str) -> str:
    """Without what differs from run to run: times and the ids of runs."""
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z|[0-9a-f]{8}-[0-9a-f-]{27}", "*", page)
