"""Changes that are planned by every byte of the state: what a plain look misses is no fix, and no sound checkpoint."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.fixes.repair import repair
from ckpt.changes.rewind.rewind import rewind
from tests.changes.applying import facts
from tests.conftest import Ckpt, CopyOf
from tests.laws.next_obeyed import look, obey
from tests.restart.oracle.cases import CASES
from tests.support.places import SAMPLES, some_quick
from tests.support.remedies import NOW
from tests.support.spark import mutations

DELTAS, KILLED = "aggregation-hdfs-4.2", "aggregation-killed-hdfs-4.0"
CHANGED = {  # the newest changes, or the newest snapshot, of one partition
    DELTAS: "state/0/1/10.delta",
    "aggregation-changelog-4.2": "state/0/1/10.changelog",
    "aggregation-rocksdb-4.2": "state/0/1/6.zip",
    "aggregation-format2-4.2": "state/0/1/8_*.changelog",
}
DEEP = ("--deep",)
CONTENTS = [case for case in CASES if case.name.startswith("contents-")]


def flip(checkpoint: Path, pattern: str, at: int = 17) -> str:
    """Change a byte of a file, by default of the checksum in its first block, and remove its hidden checksum file.

    Returns the path of the file.
    """
    (file,) = checkpoint.glob(pattern)
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)
    mutations.crc_of(file).unlink(missing_ok=True)
    return str(file.relative_to(checkpoint))


def errors(checkpoint: Path) -> list[str]:
    return [rated.finding.path for rated in look(checkpoint, DEEP).troubles]


@pytest.mark.parametrize("sample", some_quick([name for name in CHANGED if (SAMPLES / name).is_dir()], 6))
def test_who_obeys_a_deep_look_gets_out_and_back(sample: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    checkpoint = copy_of(sample)
    flip(checkpoint, CHANGED[sample], at=200 if "rocksdb" in sample else 17)
    before = facts(checkpoint)
    assert not repair(str(checkpoint), names_only=True)[0].needed, "names tell nothing"
    obeyed = obey(checkpoint, *DEEP)
    assert obeyed.faults == []
    assert [command[1] for command in obeyed.commands] == ["inspect", "repair", "repair"]
    assert all("--deep" in command for command in obeyed.commands)
    assert obeyed.documents[-1]["applied"]
    assert obeyed.documents[-1]["deep"]
    left = look(checkpoint, DEEP)
    assert {rated.finding.diagnosis.code for rated in left.troubles} <= {"CKPT419"}
    again = repair(str(checkpoint), deep=True)[0]
    assert not again.steps, "what is repaired needs no repair"
    undo = ckpt("repair", checkpoint, "--undo", obeyed.documents[-1]["backup"], "--grace", 0)
    assert undo.exit_code == 0
    assert facts(checkpoint) == before


def test_a_rewind_to_a_batch_whose_state_is_damaged_is_none(copy_of: CopyOf) -> None:
    checkpoint = copy_of(DELTAS)
    path = flip(checkpoint, "state/0/1/7.delta")
    to_6, to_5 = (rewind(str(checkpoint), to_batch=batch, deep=True)[0] for batch in (6, 5))
    assert to_6.possible == to_5.possible
    assert [batch for first, last in to_6.possible for batch in range(first, last + 1)] == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    assert path in str(to_6.refused)
    assert to_5.refused is None
    assert rewind(str(checkpoint), to_batch=6, names_only=True)[0].refused is None, "names tell nothing"


def test_what_follows_a_deep_look_holds_refuses_and_names_the_next_deep_look(
    ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path
) -> None:
    checkpoint = copy_of(DELTAS)
    path = flip(checkpoint, "state/0/1/10.delta")
    assert [ckpt("preflight", checkpoint, *how).exit_code for how in (["--names-only"], [], DEEP)] == [0, 1, 1]
    held = ckpt("preflight", checkpoint, "--deep", "-o", "json").json()
    assert [finding["path"] for finding in held["holds"]] == [path]
    assert not any("middle of a state file" in unseen for unseen in held["unknown"])
    run = ckpt("copy", checkpoint, tmp_path / "copy", "--deep")
    assert (run.exit_code, path in run.stderr, (tmp_path / "copy").exists()) == (3, True, False)
    assert ckpt("copy", checkpoint, tmp_path / "copy", "--deep", "--batch", 8).exit_code == 0
    assert errors(tmp_path / "copy") == []
    refused = ckpt("rewind", checkpoint, "--to-batch", 9, "--deep", "-o", "json").json()
    assert refused["next"][0]["command"] == ["ckpt", "repair", str(checkpoint), "--deep"]


def test_a_skip_needs_state_that_loads_and_not_what_a_crash_left(ckpt: Ckpt, copy_of: CopyOf) -> None:
    left = copy_of(KILLED)
    latest = max(int(path.name) for path in (left / "offsets").iterdir() if path.name.isdecimal())
    damaged = shutil.copytree(left, left.with_name("damaged"))
    flip(left, f"state/0/1/{latest + 1}.delta")
    flip(damaged, f"state/0/1/{latest}.delta")
    assert ckpt("skip", left, "--deep", "--apply", "--grace", 0).exit_code == 0
    assert errors(left) == []
    run = ckpt("skip", damaged, "--deep", "-o", "json")
    assert (run.exit_code, f"state/0/1/{latest}.delta" in run.json()["refused"]) == (3, True)
    assert run.json()["next"][0]["command"] == ["ckpt", "inspect", str(damaged), "--deep"]


@pytest.mark.slow
@pytest.mark.parametrize("case", some_quick(CONTENTS, 6), ids=lambda case: case.name)
def test_rows_that_do_not_fit_are_in_no_state_that_a_repair_goes_back_to(case: Any, copy_of: CopyOf) -> None:
    checkpoint = copy_of(case.sample)
    mutations.apply(checkpoint, case.mutations)
    assert errors(checkpoint)
    plan, receipt = repair(str(checkpoint), deep=True, **NOW)
    assert receipt.applied != bool(plan.refused or not plan.needed)
    assert not receipt.applied or not {"CKPT302", "CKPT325"} & {
        rated.finding.diagnosis.code for rated in look(checkpoint, DEEP).troubles
    }


def test_what_only_older_batches_need_asks_for_no_repair(copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-rocksdb-4.2")
    flip(checkpoint, "state/0/0/3.zip", 200)
    plan, _ = repair(str(checkpoint), deep=True)
    assert (plan.needed, plan.steps) == (False, ())


def test_an_undo_takes_no_deep_look(ckpt: Ckpt, copy_of: CopyOf, tmp_path: Path) -> None:
    run = ckpt("rewind", copy_of(DELTAS), "--undo", tmp_path / "none", "--deep")
    assert run.exit_code == 2
    assert "--deep" in run.refusal()
