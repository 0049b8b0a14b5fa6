"""A Spark standalone cluster of two workers: its executors read, answer and write what this machine does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ckpt import export_state, read_state_arrow, state_verify
from ckpt.state.export.request import Engine, ExportRequest
from tests.conftest import Ckpt, Run
from tests.new.rewrite.continuing import state
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
    "initial state": ("session-window-changelog-4.2", "checkpoint", ("--shape", "initial-state")),
}
"""Sample, the name of its copy, and words of the command."""
REWRITTEN, IMPORTED = "tws-rocksdb-4.2", "session-window-changelog-4.2"
WRITTEN = {REWRITTEN: "rewritten", IMPORTED: "imported"}
ANSWERS: dict[str, tuple[str, ...]] = {
    "verify": ("verify", "join-rocksdb-4.0"),
    "count": ("count", "join-rocksdb-4.0"),
    "count of a key": ("count", "aggregation-hdfs-4.2", "--key", "key=3"),
    "diff": ("diff", "aggregation-hdfs-4.2", "--from-batch", "1"),
    "diff of other partitions": ("diff", REWRITTEN, WRITTEN[REWRITTEN]),
    "keys": ("keys", "aggregation-changelog-4.2"),
}
"""Words of ``ckpt state``, with a sample and maybe what was written before."""


@dataclass(frozen=True)
class Exported:
    """What one application on the cluster did: a folder for each of `EXPORTS`, which has the copy and `out`."""

    folder: Path
    runs: dict[str, Run]
    tasks: list[int]  # by worker

    def place(self, name: str) -> Path:
        return self.folder / name

    def words_of_answer(self, name: str) -> list[str]:
        command, sample, *more = ANSWERS[name]
        more = [str(self.folder / word) if word in WRITTEN.values() else word for word in more]
        return ["state", command, str(SAMPLES / sample), *more, "-o", "json"]

    def words_of_writing(self, sample: str, into: Path) -> list[str]:
        checkpoint, new = str(SAMPLES / sample), str(into)
        imported = ["import-state", str(self.folder / "rows"), new, "--like", checkpoint]
        first = ["rewrite", checkpoint, new] if sample == REWRITTEN else imported
        return [*first, "--partitions", "3", "-o", "json"]


@pytest.fixture(scope="module")
def exported(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """All exports, one after the other in one session, whose executors start once."""
    folder, before = tmp_path_factory.mktemp("cluster"), cluster.applications
    exported, words = Exported(folder, {}, []), []
    for name, (sample, to, more) in EXPORTS.items():
        checkpoint = mutations.copy_of(SAMPLES / sample, folder / name / to, ())
        words.append([str(checkpoint), "--to", str(folder / name / "out"), *more])
    export_state(ExportRequest(str(SAMPLES / IMPORTED), to=str(folder / "rows"), all_units=True, engine=Engine.NATIVE))
    words += (exported.words_of_writing(sample, folder / into) for sample, into in WRITTEN.items())
    words += map(exported.words_of_answer, ANSWERS)
    runs = run_all(words, {"spark.master": cluster.master, **cluster.conf}).all
    exported.runs.update(zip([*EXPORTS, *WRITTEN, *ANSWERS], runs, strict=True))
    (application,) = cluster.applications - before
    exported.tasks.extend(cluster.tasks(application))
    return exported


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
    part: dict[str, Any] = {word.removeprefix("--"): value for word, value in zip(words[::2], words[1::2], strict=True)}
    native = read_state_arrow(str(exported.place(name) / to), **part)
    tables = [pq.read_table(path, partitioning=None).cast(native.schema) for path in there.glob("part-*.parquet")]
    assert sorted(map(str, pa.concat_tables(tables).to_pylist())) == sorted(map(str, native.to_pylist()))


def test_both_workers_did_it(exported: Exported) -> None:
    """Each file is the work of a task, and the driver has no executor of its own."""
    assert len(exported.tasks) == 2
    assert min(exported.tasks) > len(WRITTEN) + len(ANSWERS)
    assert sum(exported.tasks) >= len([*exported.folder.rglob("part-*.parquet")]) >= len(EXPORTS)


@pytest.mark.parametrize("sample", WRITTEN)
def test_its_executors_write_state_too(sample: str, exported: Exported, ckpt: Ckpt, tmp_path: Path) -> None:
    there, run = exported.folder / WRITTEN[sample], exported.runs[sample]
    assert run.exit_code == 0, run.stderr
    here = ckpt(*exported.words_of_writing(sample, tmp_path / "new"))
    assert said(run.json(), there) == said(here.json(), tmp_path / "new")
    assert state(there) == state(SAMPLES / sample)
    assert state_verify(str(there)).damages == ()


@pytest.mark.parametrize("name", ANSWERS)
def test_its_executors_answer_as_processes_do(name: str, exported: Exported, ckpt: Ckpt) -> None:
    assert exported.runs[name] == ckpt(*exported.words_of_answer(name))


def said(document: Any, new: Path) -> Any:
    """What a command says of a new checkpoint, wherever that is: names by chance in its files are compressed."""
    return {**json.loads(json.dumps(document).replace(str(new), "NEW")), "bytes": None}


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
