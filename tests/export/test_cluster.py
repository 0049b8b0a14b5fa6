"""The same export on a Spark standalone cluster: its executors read, and write what a local session writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import Ckpt, CopyOf
from tests.services.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.service]


@pytest.mark.parametrize(
    ("sample", "to", "words"),
    [
        pytest.param("aggregation-changelog-4.2", "checkpoint", (), id="RocksDB changelog"),
        pytest.param("join-hdfs-3.5", "checkpoint", ("--side", "right"), id="HDFS-backed join side"),
        pytest.param("tws-rocksdb-4.2", "moved", ("--variable", "parityTtl"), id="moved transformWithState"),
        pytest.param("aggregation-hdfs-4.2", "with space", (), id="path with a space"),
    ],
)
def test_an_export_on_a_cluster_is_the_local_one(
    sample: str,
    to: str,
    words: tuple[str, ...],
    cluster: SparkCluster,
    spark: Any,
    ckpt: Ckpt,
    ckpt_process: Ckpt,
    copy_of: CopyOf,
    tmp_path: Path,
) -> None:
    checkpoint, here, there = copy_of(sample, to=to), tmp_path / "local", tmp_path / "cluster"
    local = ckpt("export-state", checkpoint, "--to", here, *words)
    assert local.exit_code == 0, local.stderr
    before = cluster.tasks()

    conf = [word for name, value in cluster.conf.items() for word in ("--conf", f"{name}={value}")]
    remote = ckpt_process(
        "export-state", checkpoint, "--to", there, *words, "--master", cluster.master, *conf, timeout=300
    )

    assert remote.exit_code == 0, remote.stderr
    assert content(there) == content(here) != []
    assert manifests(there) == manifests(here) != {}
    ran = cluster.tasks()
    (application,) = ran.keys() - before.keys()
    assert ran[application] > 0


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
