"""``ckpt export-state --salvage``: every partition that can be read, and which cannot."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq

import ckpt as library
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import SAMPLES

JOIN = "join-changelog-4.2"


def test_the_partitions_that_can_be_read(copy_of: CopyOf, ckpt: Ckpt, tmp_path: Path) -> None:
    damaged, to = copy_of(JOIN), tmp_path / "state"
    shutil.rmtree(damaged / "state/0/1/right-keyWithIndexToValue")
    words = ("export-state", damaged, "--all-units", "--to", to)
    assert ckpt(*words).exit_code == 3
    refused = ckpt(*words, "--salvage")
    assert (refused.exit_code, to.exists()) == (3, False)
    assert "1 partition of state is lost: --accept-loss accepts that" in refused.stderr
    planned = ckpt(*words, "--salvage", "--plan")
    assert "operator 0, partition 1: there are no files" in " ".join(planned.stdout.split())
    done = ckpt(*words, "--salvage", "--accept-loss", "-o", "json")
    assert done.exit_code == 0, done.stderr
    assert contract.disagreements(done.json(), "export-state") == []
    assert [(lost["operator"], lost["partition"]) for lost in done.json()["lost"]] == [(0, 1)]
    assert json.loads((to / "_ckpt_export.json").read_text())["lost"] == [{"operator": 0, "partition": 1}]
    for side in ("left", "right"):
        whole = library.read_state_arrow(str(SAMPLES / JOIN), side=side, partition_id=True).to_pylist()
        kept = sorted(row["key_field0"] for row in whole if row["partition_id"] == 0)
        (folder,) = to.glob(f"operator-0-{side}*")
        rows = pq.read_table(folder).to_pylist()
        assert sorted(row["key_field0"] for row in rows) == kept != []


def test_what_no_salvage_fits_is_refused(ckpt: Ckpt, tmp_path: Path) -> None:
    for more in (("--operator", "0"), ("--all-units", "--engine", "spark"), ("--all-units", "--format", "json")):
        run = ckpt("export-state", SAMPLES / JOIN, "--to", tmp_path / "state", "--salvage", *more)
        assert run.exit_code == 2, more
        assert "--salvage" in run.stderr
        assert not (tmp_path / "state").exists()
