"""A planned change, or an undo, that is killed after any change to the disk: undo restores, the same finishes it.

What a kill leaves is what is on the disk while the process is stopped at the same change, and one run can be stopped
at each; every eighth is a kill.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from ckpt.changes.plan import NEVER_FINISHED, ChangePlan
from ckpt.changes.steps import FileAction, FileStep
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.inspection.inspection import inspect
from ckpt.storage import open_storage
from tests.changes.applying import Facts, apply, facts, undo
from tests.changes.every_plan import CHANGES, Planner, built, planned
from tests.changes.killing import killed, stops
from tests.support.places import ROOT
from tests.support.spark.live import EVERY_CASE

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Scene:
    """A checkpoint and the backup beside it, as a crash left them."""

    top: Path
    planner: Planner

    @property
    def checkpoint(self) -> Path:
        return self.top / "checkpoint"

    @property
    def backup(self) -> Path:
        return self.top / "backup"

    def copy(self, name: str) -> "Scene":
        to = self.top.with_name(name)
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.top, to, symlinks=True, copy_function=partial(_copy, {}))
        return Scene(to, self.planner)

    def plan(self) -> ChangePlan:
        return self.planner(open_storage(str(self.checkpoint)))


Make = Callable[[str], tuple[Scene, ChangePlan]]


def _copy(copied: dict[int, str], file: str, to: str) -> None:
    """Copy a file, or link its second name to the copy of the first."""
    inode = os.lstat(file).st_ino
    if inode in copied:
        os.link(copied[inode], to)
    else:
        shutil.copy2(file, to)
        copied[inode] = to


def crashes(
    first: Scene, whole: Scene, action: Callable[[Scene], object], *, without_links: bool = False, each: int = 1
) -> Iterator[tuple[int, Scene]]:
    """What kills leave, one after the other, of an action on what is a copy of the first; it is done on the whole."""
    for at in stops(partial(action, whole), without_links=without_links):
        if (at - 1) % each:
            continue
        if at % 8:
            yield at, whole.copy("crashed")
        else:
            crashed = first.copy("crashed")
            assert killed(at, partial(action, crashed), without_links=without_links)
            yield at, crashed


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is such a thing: what a kill leaves is the same, and flushing it costs nothing."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="ckpt-test-", dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture
def scene(memory: Path) -> Make:
    def make(pattern: str) -> tuple[Scene, ChangePlan]:
        top = memory / "first"
        top.mkdir()
        scene = Scene(top, built(pattern, top / "checkpoint")[1])
        for number, file in enumerate(sorted(path for path in scene.checkpoint.rglob("*") if path.is_file())):
            file.chmod((0o644, 0o600, 0o664)[number % 3])
        return scene, planned(scene.planner, scene.checkpoint)

    return make


def restores(scene: Scene, before: Facts) -> None:
    """Undo brings everything back; where nothing was changed yet, there may be nothing to undo by."""
    manifest = (scene.backup / "manifest.json").exists()
    receipt = undo(scene.checkpoint, scene.backup)
    assert receipt.undone if manifest else "is not a backup" in str(receipt.problem)
    assert facts(scene.checkpoint) == before


def finishes(scene: Scene, plan: ChangePlan, before: Facts) -> None:
    """The same command again does what is left; and both can be taken back, the last first."""
    again = scene.plan()
    second = scene.top / "second backup"
    if again.refused == NEVER_FINISHED:  # a mark is in the place of the newest offsets: only an undo helps
        assert undo(scene.checkpoint, scene.backup).undone
        assert facts(scene.checkpoint) == before
        return
    if again.steps:
        assert apply(again, scene.checkpoint, second).applied
    assert not scene.plan().needed
    now = inspect(read_checkpoint(open_storage(str(scene.checkpoint)))).forecasts
    assert [(f.outcome, f.batch_id, f.sources, f.error) for f in now] == [
        (f.outcome, f.batch_id, f.sources, f.error) for f in plan.after
    ]
    if again.steps:
        assert undo(scene.checkpoint, second).undone
    if (scene.backup / "manifest.json").exists():
        assert undo(scene.checkpoint, scene.backup).undone
    assert facts(scene.checkpoint) == before


LINKLESS = ("no checksums", "unreadable predecessor")  # enough of them for file systems without hard links


@pytest.mark.parametrize(
    ("pattern", "without_links"), [*((one, False) for one in CHANGES), *((one, True) for one in LINKLESS)]
)
def test_a_change_killed_anywhere_is_undone_or_finished(pattern: str, without_links: bool, scene: Make) -> None:
    first, plan = scene(pattern)
    before = facts(first.checkpoint)
    begun, whole = 0, first.copy("whole")
    for at, crashed in crashes(first, whole, performed, without_links=without_links):
        assert [step.path for step in plan.steps if missing(step, crashed)] == [], "a file is replaced in one moment"
        if (crashed.backup / "manifest.json").exists():
            begun += 1
        else:
            assert facts(crashed.checkpoint) == before, "nothing is changed before the backup is whole"
            if at % 4:
                continue  # one like the other
        if EVERY_CASE or at % 3 == 0:
            finishes(crashed.copy("again"), plan, before)
        restores(crashed, before)
    assert begun > 2
    restores(whole, before)


UNDONE = [
    *("unreadable predecessor", "rewind", "relocation", "rewind with state", "skip", "repair that tidies and rewinds"),
    *("repair that reads again", "offsets", "offsets of a batch that left state"),
]


@pytest.mark.parametrize("pattern", UNDONE)
def test_an_undo_killed_anywhere_is_finished_by_another(pattern: str, scene: Make) -> None:
    first, _ = scene(pattern)
    before = facts(first.checkpoint)
    done, halfway = first.copy("done"), first.copy("halfway")
    changes = sum(1 for _ in stops(partial(performed, done)))
    assert killed(changes - 4, partial(performed, halfway))
    for begun, each in ((done, 1), (halfway, 1 if EVERY_CASE else 3)):
        undone, seen = begun.copy("undone"), 0
        for seen, crashed in crashes(begun, undone, taken_back, each=each):  # noqa: B007
            restores(crashed, before)
        assert seen > 2
        assert facts(undone.checkpoint) == before


def missing(step: FileStep, scene: Scene) -> bool:
    """Whether a file that is replaced is not there."""
    return step.action is FileAction.REPLACE and not (scene.checkpoint / step.path).exists()


def performed(scene: Scene) -> None:
    """Plan anew, as the command does, and apply."""
    assert apply(scene.plan(), scene.checkpoint, scene.backup).applied


def taken_back(scene: Scene) -> None:
    """Undo, as the command does."""
    undo(scene.checkpoint, scene.backup)


# The same with the real command in a process of its own.


def command(at: int, record: Path, *words: object) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "tests.changes.killing", str(at), str(record), *map(str, words)]
    return subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_the_command_itself_killed_leaves_no_lock_and_finishes_the_second_time(scene: Make, tmp_path: Path) -> None:
    first, _ = scene("unreadable predecessor")
    before = facts(first.checkpoint)
    record = tmp_path / "record"
    whole = first.copy("whole")
    words = ("repair-async", whole.checkpoint, "--apply", "--accept-replay", "--grace", 0)
    assert command(0, record, *words, "--backup", whole.backup).returncode == 0
    changes = json.loads(record.read_text())
    for at in (len(changes) // 2, len(changes) - 8):
        crashed = first.copy("crashed")
        words = ("repair-async", crashed.checkpoint, "--apply", "--accept-replay", "--grace", 0)
        assert command(at, record, *words, "--backup", crashed.backup).returncode == -9
        same = command(0, record, *words, "--backup", crashed.backup)
        assert same.returncode == 0 or "name another folder with --backup" in " ".join(same.stdout.split())
        again = crashed.copy("again")
        done = command(0, record, "repair-async", again.checkpoint, *words[2:], "-o", "json")
        assert done.returncode == 0, done.stdout + done.stderr
        if (crashed.backup / "manifest.json").exists():
            undone = command(0, record, "repair-async", crashed.checkpoint, "--undo", crashed.backup, "--grace", 0)
            assert undone.returncode == 0, undone.stdout + undone.stderr
        assert facts(crashed.checkpoint) == before


CALL = re.compile(
    r"^\d+ +(?P<call>openat|write|fsync|linkat|unlinkat?|renameat2?|fchmod|fchown|utimensat|mkdir(?:at)?)\((?P<rest>.*)"
)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_change_escapes_the_count(scene: Make, tmp_path: Path) -> None:
    first, _ = scene("unreadable predecessor")
    words = ("--apply", "--accept-replay", "--grace", 0)
    counted, traced = first.copy("counted"), first.copy("traced")
    record, trace = tmp_path / "record", tmp_path / "trace"
    done = command(0, record, "repair-async", counted.checkpoint, *words, "--backup", counted.backup)
    assert done.returncode == 0
    watch = ["strace", "-f", "-y", "-o", str(trace), sys.executable, "-m", "ckpt", "repair-async"]
    ran = subprocess.run(
        [*watch, str(traced.checkpoint), *map(str, words), "--backup", str(traced.backup)],
        cwd=ROOT,
        capture_output=True,
        timeout=120,
    )
    if b"ptrace" in ran.stderr:
        pytest.skip("strace may not trace here")
    assert ran.returncode == 0, ran.stderr
    found = [
        match for line in trace.read_text().splitlines() if (match := CALL.match(line)) and str(traced.top) in line
    ]
    done_so = [match for match in found if " = -1 " not in match["rest"]]
    calls = [match["call"] for match in done_so if match["call"] != "openat" or "O_CREAT" in match["rest"]]
    names = {
        "openat": "open",
        "linkat": "link",
        "unlinkat": "unlink",
        "utimensat": "utime",
        "mkdirat": "mkdir",
        "renameat": "replace",
    }
    assert [names.get(call, call) for call in calls] == [
        name for name in json.loads(record.read_text()) if name != "half a write"
    ]
