"""Somebody else writes to the checkpoint: another ckpt, or a query that was started after all."""

import fcntl
import itertools
import os
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.apply import apply_plan, undo
from ckpt.changes.fixes.repair_async import plan_repair
from ckpt.changes.plan import ChangePlan
from ckpt.storage import open_storage
from ckpt.storage.local_writer import LocalWriter, open_writer
from ckpt.storage.writer import Attributes
from tests.changes.applying import GAP, NOW, Facts, apply, facts, refused
from tests.changes.every_plan import built, planned
from tests.conftest import Ckpt, CopyOf

THEIRS = b"v1\n{}\n{}"


def test_two_at_once(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    checkpoint = copy_of(GAP)
    before = facts(tmp_path)
    handle = os.open(checkpoint, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        run = ckpt("repair-async", checkpoint, *NOW, "-o", "json")
        assert "another ckpt process is changing" in refused(run)
        assert facts(tmp_path) == before
    finally:
        os.close(handle)
    assert ckpt("repair-async", checkpoint, *NOW).exit_code == 0


def test_a_query_that_writes_between_the_two_looks(
    ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = copy_of(GAP)
    for file in checkpoint.rglob("*"):
        os.utime(file, (1, 1_600_000_000))

    def write(_: float) -> None:
        (checkpoint / "commits" / ".32.tmp").write_bytes(b"v1")
        os.utime(checkpoint / "commits" / ".32.tmp", (1, 1_600_000_000))

    monkeypatch.setattr(time, "sleep", write)
    run = ckpt("repair-async", checkpoint, "--apply", "--quiet", "-o", "json")
    assert "changed while ckpt was checking" in refused(run)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


EVERY = ["a sample", "relocation", "rewind with state", "skip", "offsets", "repair that reads again"]
"""A change of each command."""


class Interrupted(LocalWriter):
    """A folder in which something happens before the ``at``-th file is created, replaced or removed."""

    def __init__(self, top: Path, at: int, happens: Callable[[], object]) -> None:
        super().__init__(str(top), str(top))
        self._left, self._happens = at, happens

    @property
    def done(self) -> bool:
        return self._left <= 0

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._happens()

    def create(self, path: str, data: bytes, attributes: Attributes | None = None) -> None:
        self._count()
        super().create(path, data, attributes)

    def replace(self, path: str, data: bytes, was: bytes, attributes: Attributes | None = None) -> None:
        self._count()
        super().replace(path, data, was, attributes)

    def remove(self, path: str) -> None:
        self._count()
        super().remove(path)


def next_batch(checkpoint: Path) -> str:
    """Where a query writes the offsets of its next batch."""
    files = [path.name for folder in ("offsets", "commits") for path in (checkpoint / folder).glob("[0-9]*")]
    return f"offsets/{max(map(int, files)) + 1}"


def first_of(change: str, tmp_path: Path) -> tuple[Path, ChangePlan]:
    checkpoint, planner = built(change, tmp_path / "checkpoint")
    return checkpoint, planned(planner, checkpoint)


@pytest.mark.parametrize("changed", [True, False], ids=["a file of the plan", "another file"])
@pytest.mark.parametrize("change", EVERY)
def test_a_query_that_starts_between_the_plan_and_its_apply(change: str, changed: bool, tmp_path: Path) -> None:
    checkpoint, plan = first_of(change, tmp_path)
    path = plan.steps[-1].path if changed else next_batch(checkpoint)
    (checkpoint / path).write_bytes(THEIRS)
    before = facts(checkpoint)
    receipt = apply(plan, checkpoint, tmp_path / "backup")
    assert path in str(receipt.problem)
    assert not receipt.applied
    assert facts(checkpoint) == before
    assert not (tmp_path / "backup").exists()


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["offsets", "a file that no start looks at", "of an undo"])
@pytest.mark.parametrize("change", EVERY)
def test_a_query_that_writes_at_any_moment(change: str, moment: str, tmp_path: Path) -> None:
    """The change notices it; afterwards only the files of the query differ from those before the change."""
    first, plan = first_of(change, tmp_path)
    theirs = "commits/.9.tmp" if moment.startswith("a file") else next_batch(first)
    before, undoing, backup = facts(first), moment == "of an undo", tmp_path / "backup"
    assert not undoing or apply(plan, first, backup).applied
    for at in itertools.count(1):
        checkpoint = copied(first, tmp_path / f"changed {at}")
        storage = open_storage(str(checkpoint))
        writer = Interrupted(checkpoint, at, partial((checkpoint / theirs).write_bytes, THEIRS))
        if undoing:
            query_id = plan.inspection.checkpoint.query_id
            receipt = undo(storage, writer, open_storage(str(backup)), query_id, storage.list_tree(), 0)
        else:
            receipt = apply_plan(plan, storage, writer, open_writer(str(tmp_path / f"backup {at}")), 0)
        done = receipt.undone if undoing else receipt.applied
        if not writer.done:
            break
        assert not done
        assert theirs in str(receipt.problem)
        assert without(theirs, facts(checkpoint)) == before
    assert done
    assert facts(checkpoint) == before or not undoing
    assert at > len(plan.steps)


def copied(first: Path, to: Path) -> Path:
    shutil.copytree(first, to)
    return to


def without(path: str, found: Facts) -> Facts:
    """Everything but what they wrote."""
    return {one: of for one, of in found.items() if one != path}


@pytest.mark.parametrize("at", ["create", "check"])
def test_a_query_that_starts_while_it_is_repaired(
    at: str, copy_of: CopyOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = copy_of(GAP)
    plan = plan_repair(open_storage(str(checkpoint)))
    before = facts(checkpoint)
    theirs = "offsets/30" if at == "create" else "offsets/32"
    link = os.link

    def interfering(*args: Any, **kwargs: Any) -> None:
        if args[1] == ("30" if at == "create" else ".30.crc"):
            (checkpoint / theirs).write_bytes(THEIRS)
        link(*args, **kwargs)

    monkeypatch.setattr(os, "link", interfering)
    receipt = apply(plan, checkpoint, tmp_path / "backup")
    assert receipt.problem
    assert not receipt.applied
    left = facts(checkpoint)
    assert left.pop(theirs)[-1] == THEIRS, "what they wrote is theirs"
    assert left == before
