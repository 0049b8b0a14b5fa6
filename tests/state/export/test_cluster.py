"""The same exports on a Spark standalone cluster: its executors read, and write what a local session writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import ckpt
from tests.conftest import Ckpt, Run
from tests.copies.rewrite.continuing import state
from tests.state.export.runs import run_all
from tests.support.places import SAMPLES
from tests.support.services.spark_cluster import SparkCluster
from tests.support.spark import mutations

pytestmark = [pytest.mark.spark, pytest.mark.service]

EXPORTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "RocksDB changelog": ("aggregation-changelog-4.2", "checkpoint", ()),
    "HDFS-backed join side": ("join-hdfs-3.5", "checkpoint", ("--side", "right")),
    "moved transformWithState": ("tws-rocksdb-4.2", "moved", ("--variable", "parityTtl")),
    "path with a space": ("aggregation-hdfs-4.2", "with space", ()),
}
"""Sample, the name of its copy, and words of the command."""
REWRITTEN, IMPORTED = "tws-rocksdb-4.2", "session-window-changelog-4.2"


@dataclass(frozen=True)
class Exported:
    """What one application on the cluster exported: a folder for each of `EXPORTS`, which has the copy and `out`."""

    folder: Path
    runs: dict[str, Run]
    tasks: int

    def place(self, name: str) -> Path:
        return self.folder / name


@pytest.fixture(scope="module")
def exported(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """All exports, one after the other in one session, whose executors start once."""
    folder, before = tmp_path_factory.mktemp("cluster"), cluster.tasks()
    words = []
    for name, (sample, to, more) in EXPORTS.items():
        checkpoint = mutations.copy_of(SAMPLES / sample, folder / name / to, ())
        words.append([str(checkpoint), "--to", str(folder / name / "out"), *more])
    words.append(["rewrite", str(SAMPLES / REWRITTEN), "--into", str(folder / "rewritten"), "--partitions", "3"])
    local = ckpt.ExportRequest(
        str(SAMPLES / IMPORTED), to=str(folder / "rows"), all_units=True, engine=ckpt.Engine.NATIVE
    )
    ckpt.export_state(local)
    into = ["--into", str(folder / "imported"), "--partitions", "3"]
    words.append(["import-state", str(folder / "rows"), "--like", str(SAMPLES / IMPORTED), *into])
    runs = run_all(words, {"spark.master": cluster.master, **cluster.conf}).all
    ran = cluster.tasks()
    (application,) = ran.keys() - before.keys()
    return Exported(folder, dict(zip([*EXPORTS, REWRITTEN, IMPORTED], runs, strict=True)), ran[application])


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_on_a_cluster_is_the_local_one(
    name: str, exported: Exported, spark: Any, ckpt: Ckpt, tmp_path: Path
) -> None:
    _, to, words = EXPORTS[name]
    here, there = tmp_path / "local", exported.place(name) / "out"
    local = ckpt("export-state", "--engine", "spark", exported.place(name) / to, "--to", here, *words)
    assert local.exit_code == 0, local.stderr

    assert exported.runs[name].exit_code == 0, exported.runs[name].stderr
    assert content(there) == content(here) != []
    assert manifests(there) == manifests(here) != {}


def test_its_executors_wrote_every_file(exported: Exported) -> None:
    """Each file is the work of a task, and the driver has no executor of its own."""
    assert exported.tasks >= len([*exported.folder.rglob("part-*.parquet")]) >= len(EXPORTS)


@pytest.mark.parametrize(("sample", "new"), [(REWRITTEN, "rewritten"), (IMPORTED, "imported")])
def test_its_executors_write_state_too(sample: str, new: str, exported: Exported) -> None:
    run = exported.runs[sample]
    assert run.exit_code == 0, run.stderr
    assert state(exported.folder / new) == state(SAMPLES / sample)
    assert ckpt.verify_state(str(exported.folder / new)).damages == ()


def content(folder: Path) -> list[tuple[str, str, str]]:
    """The rows of all files in order: folder, names and types of the columns, and the row as text."""
    found = []
    for path in folder.rglob("part-*.parquet"):
        table = pq.read_table(path, partitioning=None)
        where = str(path.parent.relative_to(folder))
        found += [(where, str(table.schema), str(row)) for row in table.to_pylist()]
    return sorted(found)


def manifests(folder: Path) -> dict[str, Any]:
    """What each folder says of itself."""
    files = folder.rglob("_ckpt_export.json")
    return {str(path.parent.relative_to(folder)): json.loads(path.read_text()) for path in files}
