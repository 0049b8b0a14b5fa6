"""A time names the batch that was the newest committed one then, or none where the files do not show which it was."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

import ckpt
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.times import find_batch, parse_time, read_time
from ckpt.errors import CkptError, UsageError
from ckpt.model import BatchAt
from ckpt.storage import open_storage
from ckpt.texts import instant
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLES

NOON = 1_795_608_000_000  # 2026-11-25T12:00:00Z
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000


@dataclass
class Query:
    """A query that runs in true time, and writes what its driver's clock shows into files as Spark names them."""

    folder: Path
    now: int = NOON  # true time
    clock: int = 0  # how much the clock of the driver is ahead of it
    next: int = 0
    resolution: int = 1
    truth: list[tuple[int, int, int | None]] = field(default_factory=list)  # clock from, to, newest committed
    newest: int | None = None  # in truth; one that is not logged is negative

    def __post_init__(self) -> None:
        shutil.copytree(SAMPLES / "kafka-4.2", self.folder)
        offsets, commits = self.folder / "offsets", self.folder / "commits"
        self._offsets, self._commit = (offsets / "5").read_text(), (commits / "5").read_bytes()
        for file in (*offsets.iterdir(), *commits.iterdir()):
            file.unlink()

    def wait(self, ms: int) -> None:
        """Time goes by."""
        shown = self.now + self.clock
        self.truth.append((shown, shown + ms, self.newest))
        self.now += ms

    def set_clock(self, by: int) -> None:
        self.clock += by

    def plan(self, *, logged: bool = True, timed: bool = True) -> None:
        if logged:
            planned = self.now + self.clock if timed else 0
            text = re.sub(r'"batchTimestampMs":\d+', f'"batchTimestampMs":{planned}', self._offsets)
            (self.folder / "offsets" / str(self.next)).write_text(text)

    def commit(self, *, logged: bool = True) -> None:
        if logged:
            path = self.folder / "commits" / str(self.next)
            path.write_bytes(self._commit)
            self.stamp(path, self.now + self.clock)
        self.newest = self.next if logged else -self.next
        self.next += 1

    def stamp(self, path: Path, ms: int) -> None:
        ms -= ms % self.resolution
        os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))

    def run(self, batches: int, random: Random, *, logged: bool = True) -> None:
        for _ in range(batches):
            self.plan(logged=logged)
            self.wait(random.randrange(200, 20 * SECOND))
            self.commit(logged=logged)
            self.wait(random.randrange(50, 40 * SECOND))

    def copy(self) -> None:
        """A copy that keeps no times, in which the query runs on."""
        for path in (self.folder / "commits").iterdir():
            self.stamp(path, self.now + self.clock)

    def list_truths(self, ms: int) -> set[int | None]:
        """What was the newest committed batch whenever the clock showed this."""
        return {newest for begin, end, newest in self.truth if begin <= ms < end}


def check(query: Query, random: Random) -> tuple[list[int], list[int]]:
    """Compare times around everything that happened with the truth: those that were answered, and refused."""
    checkpoint = read_checkpoint(open_storage(str(query.folder), {}), batches=0)
    ends = sorted({t for begin, end, _ in query.truth for t in (begin, end)})
    times = {t + d for t in random.sample(ends, min(len(ends), 12)) for d in (-MINUTE, -1500, -1, 0, 1, 1500)}
    answered, refused = list[int](), list[int]()
    for ms in sorted(times):
        try:
            answer = find_batch(checkpoint, datetime.fromtimestamp(ms / 1000, UTC))
        except CkptError:
            refused.append(ms)
            continue
        answered.append(ms)
        assert query.list_truths(ms) <= {answer}, (instant(ms), answer)  # none: the clock never showed it
    return answered, refused


def plain(query: Query, random: Random) -> None:
    query.run(12, random)


def uncommitted(query: Query, random: Random) -> None:
    query.run(8, random)
    query.plan()
    query.wait(HOUR)


def seconds(query: Query, random: Random) -> None:
    query.resolution = 1000
    query.run(8, random)


def back(query: Query, random: Random) -> None:
    query.run(6, random)
    query.set_clock(-random.randrange(MINUTE, HOUR))
    query.run(12, random)


def back_inside_a_batch(query: Query, random: Random) -> None:
    query.run(5, random)
    query.plan()
    query.wait(SECOND)
    query.set_clock(-10 * MINUTE)
    query.wait(SECOND)
    query.commit()
    query.run(25, random)


def ahead(query: Query, random: Random) -> None:
    query.run(6, random)
    query.set_clock(HOUR)
    query.run(6, random)


def to_and_fro(query: Query, random: Random) -> None:
    for by in (-20 * MINUTE, 5 * MINUTE, -3 * MINUTE):
        query.run(4, random)
        query.set_clock(by)
    query.run(6, random)


def asynchronous(query: Query, random: Random) -> None:
    for _ in range(4):
        query.run(1, random)
        query.run(random.randrange(2, 7), random, logged=False)
    query.run(1, random)


def copied(query: Query, random: Random) -> None:
    query.run(6, random)
    query.wait(HOUR)
    query.copy()


def copied_and_continued(query: Query, random: Random) -> None:
    query.run(6, random)
    query.wait(SECOND)
    query.copy()
    query.run(6, random)


def no_times(query: Query, random: Random) -> None:
    query.run(4, random)
    query.plan(timed=False)
    query.wait(5 * SECOND)
    query.commit()
    query.wait(5 * SECOND)
    query.run(4, random)


def lost_commit(query: Query, random: Random) -> None:
    query.run(8, random)
    (query.folder / "commits" / "4").unlink()
    query.truth = [(a, b, None if newest == 4 else newest) for a, b, newest in query.truth]


HISTORIES = (
    *(plain, uncommitted, seconds, back, back_inside_a_batch, ahead, to_and_fro, asynchronous),
    *(copied, copied_and_continued, no_times, lost_commit),
)
HERE_ALL = {plain, uncommitted, ahead}
"""Histories in which every time is told, once a batch was committed."""


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
def test_an_answer_is_what_was_committed_then(
    history: Callable[[Query, Random], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(3):  # 36 checkpoints
        random = Random(seed)
        query = Query(tmp_path / str(seed))
        history(query, random)
        query.wait(HOUR)
        monkeypatch.setattr("ckpt.checkpoint.times.time", lambda now=query.now + query.clock: now / 1000)
        answered, refused = check(query, random)
        if history in HERE_ALL:
            assert all(query.list_truths(ms) <= {None} for ms in refused)
        elif history is seconds:
            assert len(answered) > len(refused)


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Query:
    """Three batches, each planned at the full minute, and committed 20 s later."""
    query = Query(tmp_path / "cp")
    for _ in range(3):
        query.plan()
        query.wait(20 * SECOND)
        query.commit()
        query.wait(40 * SECOND)
    monkeypatch.setattr("ckpt.checkpoint.times.time", lambda: (query.now + query.clock) / 1000)
    return query


def read(query: Query) -> Checkpoint:
    return read_checkpoint(open_storage(str(query.folder), {}), batches=0)


def refuse(query: Query, text: str) -> str:
    with pytest.raises(CkptError) as refused:
        find_batch(read(query), parse_time(text))
    line = str(refused.value)
    assert "\n" not in line
    return line.removeprefix(f"{query.folder}: ")


def test_the_answer_says_what_shows_it(query: Query) -> None:
    batch = find_batch(read(query), parse_time("2026-11-25T12:01:30"))
    assert isinstance(batch, BatchAt)
    assert batch == 1
    assert batch.says == (
        "2026-11-25T12:01:30Z (UTC, as no zone was given) is batch 1 (planned 2026-11-25T12:01:00Z, committed "
        "2026-11-25T12:01:20Z), and the next is batch 2 (planned 2026-11-25T12:02:00Z, committed 2026-11-25T12:02:20Z)"
        ", by the times in offsets/ and of the files of commits/"
    )
    query.plan()
    query.wait(MINUTE)
    planned = find_batch(read(query), parse_time("2026-11-25 13:03:30 Europe/Berlin"))
    assert isinstance(planned, BatchAt)
    assert planned == 2
    assert "the next is batch 3 (planned 2026-11-25T12:03:00Z, not committed)" in planned.says


def test_what_is_not_known_is_refused_with_what_it_can_be(query: Query) -> None:
    assert refuse(query, "2026-11-25T12:00:10Z").startswith("no batch here was committed at 2026-11-25T12:00:10Z: the")
    assert "is still to come" in refuse(query, "2026-11-25T13:00Z")
    query.copy()
    assert refuse(query, "2026-11-25T12:01:30Z") == (
        "at 2026-11-25T12:01:30Z it may be batch 0 (planned 2026-11-25T12:00:00Z, committed by 2026-11-25T12:01:00Z) "
        "or batch 1 (planned 2026-11-25T12:01:00Z, committed by 2026-11-25T12:02:00Z): "
        "no file shows when batch 1 was committed. Name the batch by its number"
    )
    query.set_clock(-2 * MINUTE)
    query.run(1, Random(0))
    query.wait(HOUR)
    assert "the clock went back from 2026-11-25T12:02:00Z to 2026-11-25T12:01:00Z" in refuse(query, "2026-11-25T12:02Z")


def test_batches_that_are_not_logged_are_said(query: Query) -> None:
    (query.folder / "offsets" / "1").unlink()
    refused = refuse(query, "2026-11-25T12:01:30Z")
    assert "it may be batch 0 (planned" in refused
    assert "or batch 2 (planned" in refused
    assert "batch 1 left no offsets" in refused


def test_times_as_they_are_typed() -> None:
    assert parse_time("2026-11-27 14:05 Europe/Berlin").astimezone(UTC) == parse_time("2026-11-27T13:05Z")
    assert parse_time("2026-11-27T14:05+01:00") == parse_time("2026-11-27T13:05Z")
    assert parse_time("2026-11-27").tzinfo is None
    ago = datetime.now(UTC) - parse_time("-1d2h3m4s")
    assert timedelta(seconds=-1) < ago - timedelta(1, 4, hours=2, minutes=3) < timedelta(seconds=10)
    for wrong in ("", "-", "-2", "2h", "20261127", "14:05", "now", "2026-11-27T14:05Z Europe/Berlin", "2026-13-01"):
        with pytest.raises(UsageError, match="write a time as"):
            parse_time(wrong)
    for zone in ("Europe/Nowhere", "Europe", "e/../../etc"):
        with pytest.raises(UsageError, match="knows no time zone"):
            parse_time(f"2026-11-27 14:05 {zone}")
    for twice in ("2026-10-25 02:30 Europe/Berlin", "2026-03-29 02:30 Europe/Berlin"):
        with pytest.raises(UsageError, match="is not one time, because the clocks were changed: write 2026-"):
            read_time(parse_time(twice))


def test_a_command_takes_a_time_for_a_batch(query: Query, run_ckpt: Ckpt, tmp_path: Path) -> None:
    at, path = "2026-11-25T12:01:30Z", query.folder
    for words in (
        ("rewind", path, "--to-time", at),
        ("copy", path, tmp_path / "new", "--plan", "--batch", at),
        ("offsets", "show", path, "--batch", at),
        ("handoff", path, "--batch", at),
    ):
        assert "Time      2026-11-25T12:01:30Z is batch 1 (planned" in run_ckpt(*words).stdout
    page = run_ckpt("rewind", path, "--to-batch", at).stdout
    assert page.endswith("--to-batch 1 --accept-replay --apply\n"), "the plan that is applied is this one"
    assert run_ckpt("rewind", path, "--to-time", "1").stderr.startswith("ckpt: '1' is no time: write a time")
    assert "not both" in run_ckpt("rewind", path, "--to-time", at, "--to-batch", 1).stderr


@pytest.mark.slow
def test_each_call_that_reads_state_takes_a_time(copy_of: CopyOf) -> None:
    path = copy_of("aggregation-hdfs-4.2")
    checkpoint = read_checkpoint(open_storage(str(path), {}), batches=0)
    for batch in checkpoint.commits.ids:
        written = (checkpoint.planned_ms(batch) + 1) * 1_000_000
        os.utime(path / "commits" / str(batch), ns=(written, written))
    before, after = (datetime.fromtimestamp(checkpoint.planned_ms(batch) / 1000 + 1, UTC) for batch in (7, 8))
    assert ckpt.state_show(path, batch=after).moment.batch == ckpt.state_count(path, batch=after).moment.batch == 8
    diff = ckpt.state_diff(path, from_batch=before, to_batch=after)
    assert (diff.before.batch, diff.after.batch) == (7, 8)
    assert diff.units == ckpt.state_diff(path, from_batch=7, to_batch=8).units
    assert "is batch 7 (planned" in str(diff)
    assert "is batch 8 (planned" in str(diff)
    request = ckpt.types.ExportRequest(
        str(path), to=str(path.parent / "out"), batch=after, changes_from=before, plan=True
    )
    (part,) = ckpt.export_state(request).parts
    assert (part.reading.changes_from, part.reading.moment.batch) == (7, 8)
