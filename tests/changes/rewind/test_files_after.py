"""What has to go for a query to stand as after a batch: all of it, nothing else, in an order that may stop midway."""

import re
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from ckpt.changes.plan import ChangePlan, inspect_changed
from ckpt.changes.rewind.files_after import find_files_after
from ckpt.changes.steps import FileContent, plan_unread_removals, view_changed
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.registry import decode
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.restart.findings import Forecast, Outcome
from ckpt.storage import open_storage
from ckpt.versions import Progress
from tests.changes.applying import apply, facts, undo
from tests.conftest import CopyOf
from tests.support.places import SAMPLES, some_quick

WHOLE = sorted(path.name for path in SAMPLES.iterdir() if (path / "commits").is_dir() and "damaged" not in path.name)
INTERRUPTED = (
    "aggregation-format2-4.2",
    "aggregation-hdfs-3.5",
    "file-source-4.2",
    "join-v4-changelog-4.3",
    "stateless-killed-3.5",
    "two-sources-offsets-v2-4.2",
)
_ENDING = r"(?:delta|snapshot|zip|changelog)(?:\.crc){0,2}"
STATE_FILE = re.compile(rf"state/\d+/\d+/(?:[a-z][\w-]*/)?\.?(\d+)(?:_[\w-]+)?\.{_ENDING}")
LOG_FILE = re.compile(r"(?:offsets|commits|state/\d+/_metadata/v2)/\.?(\d+)(?:\.crc)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal(ChangePlan):
    """A plan of nothing but removals."""

    command: ClassVar[str] = "test"


def opened(top: Path) -> Checkpoint:
    return read_checkpoint(open_storage(str(top)), batches=0)


def removal(top: Path, batch: int, *, keep_planned: bool = False) -> Removal:
    found = opened(top)
    steps = tuple(plan_unread_removals(found.listing, find_files_after(found, batch, keep_planned=keep_planned)))
    before = inspect(found)
    after = inspect_changed(open_storage(str(top)), before, steps)
    return Removal(inspection=before, needed=bool(steps), steps=steps, inspection_after=after)


def targets(name: str) -> list[int]:
    """The batches of a sample that both logs have, the one before too."""
    found = opened(SAMPLES / name)
    return [i for i in found.commits.ids if i in found.offsets and (not i or i - 1 in found.offsets)]


@pytest.mark.parametrize("name", WHOLE)
def test_every_file_of_later_batches_goes_and_no_other(name: str) -> None:
    found = opened(SAMPLES / name)
    for batch in targets(name):
        gone = {step.path for step in plan_unread_removals(found.listing, find_files_after(found, batch))}
        expected = set()
        for path, _ in found.listing.walk():
            state, log = STATE_FILE.fullmatch(path), LOG_FILE.fullmatch(path)
            if (state and int(state[1]) > batch + 1) or (log and int(log[1]) > batch):
                expected.add(path)
        assert {path for path in gone if not path.startswith("sources/")} == expected
        kept = {
            step.path for step in plan_unread_removals(found.listing, find_files_after(found, batch, keep_planned=True))
        }
        planned = {f"offsets/{batch + 1}", f"offsets/.{batch + 1}.crc"}
        assert {path for path in gone - kept if not path.startswith("sources/")} == planned & expected


@pytest.mark.parametrize("name", some_quick(INTERRUPTED, 6))
@pytest.mark.parametrize("keep_planned", [True, False])
def test_an_interrupted_removal_starts_as_before_or_as_planned_or_not_at_all(name: str, keep_planned: bool) -> None:
    storage = open_storage(str(SAMPLES / name))
    found = opened(SAMPLES / name)
    latest = found.offsets.latest
    assert latest is not None
    for batch in [i for i in targets(name) if latest - 3 <= i < latest]:
        steps = tuple(plan_unread_removals(found.listing, find_files_after(found, batch, keep_planned=keep_planned)))
        state = [i for i, step in enumerate(steps) if step.path.startswith("state/")]
        moments = [i for i in range(1, len(steps)) if i not in state[3:-3] or i % 17 == 0]
        for count in moments:
            now = inspect(read_checkpoint(view_changed(storage, found.listing, steps[:count])))
            for forecast in _started(now):
                if forecast.outcome is Outcome.RESUMES:
                    again = forecast.batch_id == latest and forecast.reexecutes
                    assert again or forecast.batch_id in (latest + 1, batch + 1), (batch, steps[count - 1].path)
                else:
                    assert not forecast.outcome.runs, (batch, steps[count - 1].path, forecast)


def _started(now: Inspection) -> list[Forecast]:
    return [f for f in now.counted if f.progress is Progress.SYNC]


@pytest.mark.parametrize("left", [1, 9, 12])
def test_a_file_source_log_is_cut_only_where_the_rest_is_complete(left: int, copy_of: CopyOf) -> None:
    top = copy_of("file-source-4.2")
    found = opened(top)
    log = top / "sources" / "0"
    ends = {}
    for i in found.offsets.ids:
        read = found.offsets.readable(i)
        end = decode(read.sources[0].value) if read else None
        assert isinstance(end, FileOffset)
        ends[i] = end.log_offset
    batch = next(i for i, end in ends.items() if end >= min(left, max(ends.values()) - 1))
    gone = {path for path in find_files_after(found, batch) if path.startswith("sources/")}
    above = {f"sources/0/{path.name}" for path in log.iterdir() if path.name[0] != "."}
    above = {path for path in above if int(path.split("/")[2].removesuffix(".compact")) > ends[batch]}
    assert gone in (set(), above)
    for entry in range(ends[batch]):
        (log / str(entry)).unlink(missing_ok=True)
    if not any((log / f"{entry}.compact").exists() for entry in range(ends[batch] + 1)) and ends[batch]:
        assert not {path for path in find_files_after(opened(top), batch) if path.startswith("sources/")}


def test_checksum_files_alone_and_names_that_spark_takes_for_batches_go_too(copy_of: CopyOf) -> None:
    top = copy_of("aggregation-hdfs-4.2")
    last = max(opened(top).commits.ids)
    orphans = {f"offsets/.{last + 1}.crc", f"commits/.{last + 2}.crc", f"state/0/0/.{last + 2}.delta.crc"}
    orphans |= {f"state/0/1/{last + 3}.delta.crc", f"state/0/1/.{last + 3}.delta.crc.crc", f"offsets/0{last + 5}"}
    for path in orphans:
        (top / path).write_bytes(b"x")
    found = opened(top)
    assert {step.path for step in plan_unread_removals(found.listing, find_files_after(found, last))} == orphans


MANY, SIZE = 12, 4 << 20


def test_a_large_removal_is_planned_unread_and_never_held_in_memory(copy_of: CopyOf, tmp_path: Path) -> None:
    top = copy_of("aggregation-hdfs-4.2")
    last = max(opened(top).commits.ids)
    for number in range(MANY):
        (top / f"state/0/0/{last + 2 + number}.snapshot").write_bytes(bytes([number]) * SIZE)
    before = facts(top)
    tracemalloc.start()
    plan = removal(top, last)
    planned = tracemalloc.get_traced_memory()[1]
    assert {step.before for step in plan.steps} == {FileContent(SIZE, None)}
    assert planned < SIZE
    tracemalloc.reset_peak()
    receipt = apply(plan, top, tmp_path / "backup")
    assert receipt.applied, receipt.problem
    assert len(facts(top)) == len(before) - MANY
    assert undo(top, tmp_path / "backup").undone
    assert tracemalloc.get_traced_memory()[1] < 5 * SIZE
    tracemalloc.stop()
    assert facts(top) == before


def test_a_file_that_grew_since_the_plan_is_left(copy_of: CopyOf, tmp_path: Path) -> None:
    top = copy_of("aggregation-hdfs-4.2")
    plan = removal(top, max(opened(top).commits.ids) - 1)
    last = plan.steps[-1].path
    (top / last).write_bytes((top / last).read_bytes() + b" ")
    before = facts(top)
    receipt = apply(plan, top, tmp_path / "backup")
    assert last in str(receipt.problem)
    assert facts(top) == before
