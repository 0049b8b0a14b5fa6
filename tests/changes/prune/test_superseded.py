"""``ckpt prune FLOW --superseded`` removes versions that no run of a pipeline uses, and gives them back."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec
import pytest

import ckpt
from ckpt.errors import NotFound, UsageError
from tests.conftest import Ckpt
from tests.support.pipelines import STATEFUL, build_storage, flow_of
from tests.support.places import ROOT

NOW: dict[str, Any] = {"superseded": True, "apply": True, "grace": 0}


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_pruned_and_undone(tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/1", "keys/keys/10", sample=STATEFUL)
    flow = flow_of(storage, "keys/keys")
    (flow / "notes").write_text("mine")
    (flow / "1" / "mine.txt").write_text("mine")
    before, live = tree(flow), tree(flow / "10")

    plan, receipt = ckpt.prune(str(flow), **NOW)

    assert receipt.applied, receipt.problem
    assert sorted(path.name for path in flow.iterdir()) == ["1", "10", "notes"]
    assert [path.name for path in (flow / "1").iterdir()] == ["mine.txt"]
    assert tree(flow / "10") == live
    assert [pruned.kind for pruned in plan.pruned] == ["superseded"]
    assert ckpt.inspect(str(flow / "10")).sound

    _, receipt = ckpt.prune(str(flow), undo=receipt.backup, grace=0)

    assert receipt.undone, receipt.problem
    assert tree(flow) == before


def test_on_remote_storage(tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/1")
    flow = "memory://pruned/_checkpoints/c/d/keys/keys"
    fsspec.filesystem("memory").put(str(flow_of(storage, "keys/keys")), flow.removeprefix("memory:/"), recursive=True)
    files = ckpt.inspect(f"{flow}/0").checkpoint.listing.files

    plan, receipt = ckpt.prune(flow, **NOW)

    assert receipt.applied, receipt.problem
    assert len(plan.steps) == files
    with pytest.raises(NotFound):
        ckpt.inspect(f"{flow}/0")
    assert ckpt.inspect(flow).sound
    _, receipt = ckpt.prune(flow, undo=receipt.backup, grace=0)
    assert receipt.undone, receipt.problem
    assert ckpt.inspect(f"{flow}/0").sound


def test_nothing_goes_before_the_new_version_has_a_batch(tmp_path: Path) -> None:
    flow = flow_of(build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/1="), "keys/keys")
    plan, receipt = ckpt.prune(str(flow), **NOW)
    assert plan.refused == "version 1, which runs use, has not committed a batch yet"
    assert not receipt.applied


def test_one_version_is_left_alone(tmp_path: Path) -> None:
    flow = flow_of(build_storage(tmp_path / "storage", "keys/keys/0"), "keys/keys")
    plan, _ = ckpt.prune(str(flow), **NOW)
    assert (plan.needed, plan.steps) == (False, ())


@pytest.mark.parametrize("place", ["keys/keys/1", "keys"])
def test_it_is_for_the_folder_of_a_flow(place: str, tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/1")
    with pytest.raises(UsageError, match="flow's folder in a declarative pipeline"):
        ckpt.prune(str(flow_of(storage, place)), superseded=True)


def test_the_command_says_what_goes(tmp_path: Path, run_ckpt: Ckpt) -> None:
    flow = flow_of(build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/1"), "keys/keys")
    said = run_ckpt("prune", str(flow), "--superseded")
    assert said.exit_code == 1
    assert "runs use version 1, and no other" in said.stdout
    assert f"ckpt prune {flow} --superseded --apply" in " ".join(said.stdout.split())
    assert (flow / "0" / "metadata").is_file()


_KILLED = """
import os, sys
import ckpt
from ckpt.storage.local_writer import LocalWriter

left = int(sys.argv[2])


def counted(real):
    def call(self, path):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return real(self, path)

    return call


LocalWriter.remove, LocalWriter.remove_folder = counted(LocalWriter.remove), counted(LocalWriter.remove_folder)
ckpt.prune(sys.argv[1], superseded=True, apply=True, grace=0)
"""


@pytest.mark.parametrize("after", [0, 1, 12, 27, 28])
@pytest.mark.slow
def test_one_that_is_killed_is_undone(after: int, tmp_path: Path) -> None:
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/1")
    flow, before = flow_of(storage, "keys/keys"), tree(flow_of(storage, "keys/keys"))

    killed = subprocess.run([sys.executable, "-c", _KILLED, str(flow), str(after)], cwd=ROOT, check=False)

    assert killed.returncode == 9
    assert (len(tree(flow)) < len(before)) == (after > 0)
    (backup,) = flow.parent.glob("keys.ckpt-backup-*")
    _, receipt = ckpt.prune(str(flow), undo=str(backup), grace=0)
    assert receipt.undone, receipt.problem
    assert tree(flow) == before


def test_nothing_goes_while_runs_may_use_it(tmp_path: Path) -> None:
    alike = flow_of(build_storage(tmp_path / "alike", "keys/keys/0", "keys/keys/007", "keys/keys/7"), "keys/keys")
    linked = flow_of(build_storage(tmp_path / "linked", "keys/keys/0", "keys/keys/1"), "keys/keys")
    (linked / "2").symlink_to("1")
    broken = flow_of(build_storage(tmp_path / "broken", "keys/keys/0", "keys/keys/1", sample=STATEFUL), "keys/keys")
    shutil.rmtree(broken / "1" / "offsets")
    for flow, reason in ((alike, "same number"), (linked, "symbolic link"), (broken, "not known to restart")):
        before = tree(flow)
        plan, receipt = ckpt.prune(str(flow), **NOW)
        assert reason in str(plan.refused)
        assert not receipt.applied
        assert tree(flow) == before


def test_a_file_that_runs_take_for_the_newest_version_stops_it(tmp_path: Path) -> None:
    flow = flow_of(build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/1"), "keys/keys")
    (flow / "9").write_text("mine")
    with pytest.raises(NotFound, match=r"9 is a file .*: pipeline runs use the highest version.*; move it away"):
        ckpt.prune(str(flow), **NOW)


def test_every_command_says_to_move_such_a_file_away(tmp_path: Path, ckpt: Ckpt) -> None:
    """Obeyed, the version before it is the newest again."""
    storage = build_storage(tmp_path / "storage", "keys/keys/0", "keys/keys/1")
    flow = flow_of(storage, "keys/keys")
    (flow / "9").write_text("mine")
    for words in (("inspect", storage), ("inspect", flow), ("inspect", flow / "9"), ("preflight", flow / "9")):
        assert "move it away" in ckpt(*words).refusal()
    explained = ckpt("explain", "java.io.FileNotFoundException: x", "--checkpoint", flow / "9")
    assert "move it away" in explained.stderr
    (flow / "9").rename(tmp_path / "9")
    assert ckpt("inspect", flow, "-o", "json").json()["checkpoint"]["path"].endswith("keys/1")
