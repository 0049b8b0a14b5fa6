"""Checkpoint and target on S3, with Spark: the export is the local one, and a failed one leaves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ckpt.storage import open_storage
from tests.conftest import CopyOf
from tests.state.export.runs import run_all
from tests.state.export.test_cluster import content, manifests
from tests.support.places import ROOT
from tests.support.remedies import spoil
from tests.support.services.fixtures import or_skip
from tests.support.services.s3 import S3Server, s3a_jars
from tests.support.spark.live import EVERY_CASE

pytestmark = [pytest.mark.spark, pytest.mark.service]

SAMPLES = {
    "HDFS-backed": ("join-hdfs-3.5", ("--side", "left")),
    "changelog": ("aggregation-changelog-4.2", ()),
}
if EVERY_CASE:
    SAMPLES |= {
        "RocksDB": ("aggregation-rocksdb-4.2", ()),
        "moved": ("tws-rocksdb-4.2", ("--variable", "rows")),
    }


def test_s3(s3: S3Server, copy_of: CopyOf, tmp_path: Path) -> None:
    """Export samples that lie there to a place there; then once more onto it, and from a damaged one."""
    with or_skip("s3a"):
        jars = {"spark.jars": ",".join(map(str, s3a_jars()))}
    s3.file_system().create_dir("exports")
    target, options = "s3a://exports/of state", s3.options

    def upload(folder: Path) -> str:
        return "s3a" + s3.upload(folder).removeprefix("s3")

    door = [word for name, value in options.items() for word in ("--storage-options", f"{name}={value}")]
    damaged = copy_of("aggregation-changelog-4.2", to="damaged")
    for changelog in (damaged / "state" / "0" / "1").glob("*.changelog"):
        spoil(changelog)
    local, remote = [], []
    for name, (sample, words) in SAMPLES.items():
        local.append([f"sample_checkpoints/{sample}", "--to", str(tmp_path / "local" / name), *words])
        remote.append([upload(ROOT / "sample_checkpoints" / sample), "--to", f"{target}/{name}", *words, *door])
    again = [*remote[1], "--batch", "2"]
    local[1] += ["--batch", "2"]
    failing = [upload(damaged), "--batch", "4", *door, "--to"]
    runs = [*local, *remote, [*again, "--plan"], [*again, "--mode", "overwrite"], [*failing, f"{target}/failed"]]
    runs.append([*failing, f"{target}/HDFS-backed", "--mode", "overwrite"])

    told = run_all(runs, jars | s3.confs, timeout=600).all

    for run in told[: 2 * len(SAMPLES)]:
        assert run.exit_code == 0, run.stderr
    planned, replaced, failed, kept = told[2 * len(SAMPLES) :]
    assert (planned.exit_code, f"{target}/changelog already exists" in planned.refusal()) == (2, True)
    assert replaced.exit_code == 0, replaced.stderr
    for run in (failed, kept):
        assert (run.exit_code, "failed in Spark" in run.refusal()) == (3, True)
    found = download(target, options, tmp_path / "remote")
    assert {path.partition("/")[0] for path in found} == set(SAMPLES)
    for name in SAMPLES:
        here, there = tmp_path / "local" / name, tmp_path / "remote" / name
        assert content(there) == content(here) != []
        assert same_moment(there) == same_moment(here)


def same_moment(folder: Path) -> dict[str, Any]:
    """What a manifest says, but for where the checkpoint lies and how it is reached there."""
    (manifest,) = manifests(folder).values()
    return {key: manifest[key] for key in manifest.keys() - {"checkpoint", "location", "mounted", "confs"}}


def download(uri: str, options: dict[str, str], to: Path) -> list[str]:
    """Copy a remote folder here, through ckpt's own door; the paths of its files."""
    storage = open_storage(uri, options)
    paths = [path for path, _ in storage.list_tree().walk()]
    for path in paths:
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (to / path).write_bytes(storage.read(path))
    return paths
