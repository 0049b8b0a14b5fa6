"""What holds of every plan, whatever the gap: it changes nothing, keeps its promise, loses no row, can be undone."""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from ckpt.changes.check_fix import find_starts
from ckpt.changes.fixes.repair_async import AsyncRepairPlan, Strategy, plan_repair
from ckpt.changes.steps import FileAction, FileStep, view_changed
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.registry import SourceRange
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.restart.findings import Forecast, Outcome, Severity
from ckpt.storage import open_storage
from ckpt.versions import Progress
from tests.changes.applying import Facts, apply, facts, undo
from tests.changes.fixes.async_gap.gaps import Gap, gaps

pytestmark = pytest.mark.slow

EXAMPLES = os.environ.get("CKPT_EXAMPLES")  # to look longer, and elsewhere each time
MANY = settings(
    max_examples=int(EXAMPLES or 40),
    suppress_health_check=list(HealthCheck),
    database=None,
)
Build = Callable[[Gap], Path]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Build a pattern in a new folder, with various permissions and old times."""
    numbers = iter(range(10**6))

    def build(gap: Gap) -> Path:
        shutil.rmtree(tmp_path / "tree", ignore_errors=True)
        top = gap.build(tmp_path / "tree" / str(next(numbers)))
        for number, file in enumerate(sorted(path for path in top.rglob("*") if path.is_file())):
            file.chmod((0o644, 0o600, 0o640, 0o664)[number % 4])
            os.utime(file, ns=(1, 1_600_000_000_123_456_789 + number))
        return top

    return build


def inspected(top: Path) -> Inspection:
    return inspect(read_checkpoint(open_storage(str(top)), batches=0))


def told(forecasts: Iterable[Forecast]) -> list[tuple[Any, ...]]:
    """What forecasts come to, without their reasons."""
    return [
        (f.spark, f.progress, f.outcome, f.batch_id, f.reexecutes, f.sources, f.error, f.never_run) for f in forecasts
    ]


def troubles(found: Inspection) -> set[str]:
    return {one.finding.diagnosis.code for one in found.findings if one.severity is not Severity.NOTE}


def starts_after(plan: AsyncRepairPlan) -> list[Forecast]:
    """Synchronous starts after the repair, with the versions that somebody may try."""
    starts = find_starts(plan.inspection, plan.inspection_after) if plan.inspection_after else ()
    return [f for f in starts if f.progress is Progress.SYNC]


@pytest.mark.slow
@MANY
@given(gap=gaps())
@example(gap=Gap(offsets=(1,), commits=(1,), checksums=True, stale=("offsets/1",)))
@pytest.mark.parametrize("strategy", Strategy)
def test_planned_applied_and_taken_back(strategy: Strategy, gap: Gap, build: Build) -> None:
    top = build(gap)
    before, found = facts(top), inspected(top)
    plan = plan_repair(open_storage(str(top)), strategy)
    assert facts(top) == before, "planning changes nothing"
    if not plan.steps:
        assert plan.refused or not plan.needed
        return
    assert plan.needed

    backup = top.with_name(f"{top.name}.backup")
    assert apply(plan, top, backup).applied
    after, now = facts(top), inspected(top)
    assert told(now.forecasts) == told(plan.after), "the promise is kept"
    assert not troubles(now) - troubles(found), "a repair makes no new trouble"
    if all(f.outcome.runs for f in starts_after(plan)):
        assert not troubles(now) & {"CKPT201", "CKPT202"}
    only_what_is_named(plan, before, after)

    again = plan_repair(open_storage(str(top)), strategy)
    assert (again.needed, again.steps) == (False, ()), "nothing is left to be done"
    assert not apply(plan, top, top.with_name(f"{top.name}.again")).applied
    assert facts(top) == after, "a plan is applied once"

    for _ in range(2):
        assert undo(top, backup).undone
        assert facts(top) == before, "everything is as it was, and undoing again is harmless"


def only_what_is_named(plan: AsyncRepairPlan, before: Facts, after: Facts) -> None:
    """A plan touches nothing else, and leaves owners and permissions of what it rewrites."""
    changed = {step.path for step in plan.steps}
    assert {path: of for path, of in after.items() if path not in changed} == {
        path: of for path, of in before.items() if path not in changed
    }
    for path in changed & before.keys() & after.keys():
        assert after[path][:3] == before[path][:3]


# Which rows a start reads.


def not_after(begin: Any, end: Any) -> bool:
    """Whether a place in a Kafka source lies at or before another; None is the beginning."""
    return begin is None or all(begin[topic][part] <= end[topic][part] for topic in begin for part in begin[topic])


def skips(gap: Gap, forecast: Forecast) -> bool:
    """Whether a start begins behind the end of the newest batch that is known to be committed.

    A commit says that the batch of that id was done, and so were all before it, with offsets in the log or without.
    """
    if not gap.commits:
        return any(one.start is not None for one in forecast.sources)
    known = gap.end(max(gap.commits))
    return any(not not_after(one.start, known[one.index]) for one in forecast.sources)


def announced(plan: AsyncRepairPlan, forecast: Forecast) -> bool:
    """Whether what a start reads again was announced, or it begins where the plan lets the query begin."""
    promised = [
        *(replay.sources for replay in plan.replay or ()),
        *(f.sources for f in starts_after(plan) if f.outcome.runs),
    ]
    return any(no_later_ranges(ranges, forecast.sources) for ranges in promised)


def no_later(one: Forecast, other: Forecast) -> bool:
    return no_later_ranges(one.sources, other.sources)


def no_later_ranges(ranges: Sequence[SourceRange], others: Sequence[SourceRange]) -> bool:
    """Whether ranges begin where others do, or before."""
    pairs = [(one.start, other.start) for one, other in zip(ranges, others, strict=True)]
    return all(a is None or (b is not None and not_after(a, b)) for a, b in pairs)


def tells_all_that_is_read_again(plan: AsyncRepairPlan, gap: Gap, forecast: Forecast) -> bool:
    """Whether the plan tells what a start reads again, without holes, and asks before batches known to be done."""
    logged, done = gap.end(max((*gap.offsets, *gap.commits))), gap.end(max(gap.commits, default=0))
    for read in forecast.sources:
        told = [replay.sources[read.index] for replay in plan.replay or ()]
        if gap.commits and not not_after(done[read.index], read.start or NOWHERE) and plan.repeats is None:
            return False
        if read.start == logged[read.index]:
            continue
        if not told or told[0].start != read.start or any(a.end != b.start for a, b in pairwise(told)):
            return False
        if told[-1].end is not None and told[-1].end != logged[read.index]:
            return False
    return True


NOWHERE = {"orders": {"0": -1, "1": -1}}  # before the first row
READS = (Outcome.RESUMES, Outcome.STARTS_FRESH, Outcome.FAILS_IN_BATCH, Outcome.FAILS_AT_COMMIT)


def moments(steps: tuple[FileStep, ...]) -> Iterable[tuple[FileStep, ...]]:
    """Every state that a crash may leave: after each step, and within one that replaces a file."""
    for count, step in enumerate(steps):
        yield steps[:count]
        if step.action is FileAction.REPLACE:
            yield (*steps[:count], FileStep(step.path, step.before, None))
    yield steps


@MANY
@given(gap=gaps())
@pytest.mark.parametrize("strategy", [Strategy.FILL, Strategy.REWIND])
def test_no_row_is_skipped_whenever_it_stops(strategy: Strategy, gap: Gap, build: Build) -> None:
    if gap.stateful:
        return  # its offsets are those of another source
    storage = open_storage(str(build(gap)))
    plan = plan_repair(storage, strategy)
    if not plan.steps:
        return
    for forecast in starts_after(plan):
        assert not skips(gap, forecast), forecast
        if forecast.outcome.runs:
            assert tells_all_that_is_read_again(plan, gap, forecast)
    listing = plan.inspection.checkpoint.listing
    for done in moments(plan.steps):
        now = inspect(read_checkpoint(view_changed(storage, listing, done))).forecasts
        for old, forecast, new in zip(plan.before, now, plan.after, strict=True):
            if told([forecast])[0][:-1] in (told([old])[0][:-1], told([new])[0][:-1]):  # whatever else never runs
                continue
            if forecast.outcome in (Outcome.FAILS_AT_START, Outcome.REFUSED):
                continue
            where = (forecast, [step.path for step in done])
            assert forecast.outcome in READS, where
            assert not skips(gap, forecast) or (old.outcome in READS and no_later(forecast, old)), where
            assert announced(plan, forecast), where
