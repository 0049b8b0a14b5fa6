"""Records the files of a checkpoint, applies the plan of a command, and undoes it: steps that many tests share."""

import shlex
from pathlib import Path
from typing import Any

from ckpt.changes.apply import Receipt, apply_plan
from ckpt.changes.fixes.repair_async import repair_async
from ckpt.changes.plan import ChangePlan
from ckpt.storage import open_storage
from ckpt.storage.local_writer import open_writer
from tests.commands import contract
from tests.conftest import Ckpt, Run
from tests.support.places import SAMPLES

GAP = "async-kafka-4.2"
NOW = ("--apply", "--accept-replay", "--grace", 0)
Facts = dict[str, tuple[Any, ...]]


def facts(top: Path) -> Facts:
    """All that makes a tree: names, kinds, modes, owners, bytes, and the times of the files."""
    return {str(path.relative_to(top)): _facts(path) for path in sorted(top.rglob("*"))}


def _facts(path: Path) -> tuple[Any, ...]:
    of = path.lstat()
    owned = of.st_mode, of.st_uid, of.st_gid
    if path.is_symlink():
        return *owned, path.readlink()
    return owned if path.is_dir() else (*owned, of.st_mtime_ns, path.read_bytes())


def apply(plan: ChangePlan, top: Path, backup: Path) -> Receipt:
    """Perform a plan without waiting, whatever it costs."""
    uri = str(top)
    return apply_plan(plan, open_storage(uri), open_writer(uri), open_writer(str(backup)), 0)


def changed_by(plan: ChangePlan, files: dict[str, bytes]) -> dict[str, bytes]:
    """The files of a tree, by path, as the steps of a plan leave them."""
    changed = dict(files)
    for step in plan.steps:
        changed.pop(step.path, None)
        if isinstance(step.after, bytes):
            changed[step.path] = step.after
    return changed


def tree(uri: str, options: dict[str, str]) -> tuple[set[str], dict[str, bytes]]:
    """The folders and files that are there now."""
    storage = open_storage(uri, options)
    listing = storage.list_tree()
    return {*listing.folders}, {path: storage.read(path) for path, _ in listing.walk()}


def undo(top: Path, backup: Path) -> Receipt:
    """Take a repair back, without waiting."""
    return repair_async(str(top), undo=str(backup), grace=0)[1]


def look_at(sample: str, ckpt: Ckpt, command: str, *words: object) -> Run:
    """Run a command that changes nothing: its document is as published, and its page exits with the same code."""
    before, asked = facts(SAMPLES / sample), (*command.split(), f"sample_checkpoints/{sample}", *words)
    run = ckpt(*asked, "-o", "json")
    assert contract.disagreements(run.json(), command) == []
    page = ckpt(*asked)
    assert (page.exit_code, page.stdout != "") == (run.exit_code, True)
    assert facts(SAMPLES / sample) == before
    return run


def after_next(page: str) -> list[str]:
    """The words of the command that the page names next: the one that undoes, if there is one."""
    lines = [line.strip() for line in page.splitlines() if line.strip().startswith("ckpt ")]
    return shlex.split(next((line for line in lines if "--undo" in line), lines[-1]))[1:]


def obey(ckpt: Ckpt, top: Path, *words: object) -> str:
    """Plan a change, and apply it by the command that its page names; asked again there is nothing to do."""
    before, planned = facts(top), ckpt(*words)
    assert (planned.exit_code, facts(top)) == (1, before)
    assert "A PLAN, nothing is changed yet" in planned.stdout
    done = ckpt(*after_next(planned.stdout), "--grace", 0)
    assert done.exit_code == 0, done.stdout
    again = ckpt(*words)
    assert (again.exit_code, "NOTHING TO " in again.stdout) == (0, True)
    return done.stdout


def take_back(ckpt: Ckpt, top: Path, done: str, before: Facts) -> None:
    """Undo a change by the command that the page of its end names, twice."""
    words = [*after_next(done), "--grace", "0"]
    undone = ckpt(*words, "-o", "json")
    assert (undone.exit_code, contract.disagreements(undone.json(), words[0]), facts(top)) == (0, [], before)
    again = ckpt(*words)
    assert (again.exit_code, "NOTHING TO UNDO" in again.stdout, facts(top)) == (0, True, before)


def refused(run: Run) -> str:
    """The reason of a run that did nothing: in the document, and in one line."""
    assert run.exit_code == 3, run.stdout
    document = run.json()
    assert document["applied"] is False
    reason = document["refused"]
    assert isinstance(reason, str)
    assert reason.isprintable(), reason
    return reason
