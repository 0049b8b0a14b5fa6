"""What the tests of the repair do again and again: look at a tree, apply a plan, take it back."""

from pathlib import Path
from typing import Any

from ckpt.changes.apply import Receipt, apply_plan
from ckpt.changes.fixes.repair_async import repair_async
from ckpt.changes.plan import ChangePlan
from ckpt.storage import open_storage
from ckpt.storage.local_writer import open_writer
from tests.conftest import Run

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


def refused(run: Run) -> str:
    """The reason of a run that did nothing: in the document, and in one line."""
    assert run.exit_code == 3, run.stdout
    document = run.json()
    assert document["applied"] is False
    reason = document["refused"]
    assert isinstance(reason, str)
    assert reason.isprintable(), reason
    return reason
