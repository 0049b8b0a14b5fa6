"""Exports appear whole or not at all; what is there already stays unless it was to be replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import ckpt as ckpt_library
from ckpt.extras import install_command
from tests.commands import contract
from tests.conftest import Ckpt, CopyOf
from tests.support.places import ROOT
from tests.support.remedies import spoil
from tests.support.spark.live import trace

pytestmark = pytest.mark.spark

SAMPLE = "sample_checkpoints/windowed-aggregation-hdfs-4.2"


def test_the_manifest_says_exactly_which_state_this_is(ckpt: Ckpt, spark: Any, tmp_path: Path) -> None:
    target = tmp_path / "out"
    result = ckpt("export-state", "--engine", "spark", SAMPLE, "--to", target, "--batch", "5", "-o", "json")
    assert result.exit_code == 0, result.stderr
    document = result.json()
    assert contract.disagreements(document, "export-state") == []
    manifest = json.loads((target / "_ckpt_export.json").read_text())
    offsets = (ROOT / SAMPLE / "offsets" / "5").read_text().splitlines()
    commit = json.loads((ROOT / SAMPLE / "commits" / "5").read_text().splitlines()[1])
    assert manifest["checkpoint"] == SAMPLE
    assert manifest["query_id"] == json.loads((ROOT / SAMPLE / "metadata").read_text())["id"]
    assert manifest["operator"] == {"id": 0, "name": "stateStoreSave"}
    assert (manifest["batch"], manifest["state_version"]) == (5, 6)
    assert manifest["watermark_ms"] == json.loads(offsets[1])["batchWatermarkMs"]
    assert manifest["next_watermark_ms"] == commit["nextBatchWatermarkMs"]
    assert [end["offset"] for end in manifest["sources"]] == [json.loads(line) for line in offsets[2:]]
    assert manifest["rows"] == spark.read.parquet(str(target)).count()
    assert [field["name"] for field in manifest["schema"]["fields"]] == spark.read.parquet(str(target)).columns
    assert manifest["spark"] == spark.version
    (told,) = document["exports"]
    assert told.items() >= {key: manifest[key] for key in told.keys() & manifest.keys()}.items()


def test_a_delta_commit_carries_the_manifest_and_keeps_what_was(ckpt: Ckpt, spark: Any, tmp_path: Path) -> None:
    pytest.importorskip("delta", reason="delta-spark is not installed")
    target = tmp_path / "table"
    for batch, mode in ((3, "error"), (5, "overwrite")):
        words = ["--to", target, "--format", "delta", "--batch", str(batch), "--mode", mode]
        result = ckpt("export-state", "--engine", "spark", SAMPLE, *words)
        assert result.exit_code == 0, result.stderr
    history = spark.sql(f"DESCRIBE HISTORY delta.`{target}`").orderBy("version").collect()
    assert [json.loads(row["userMetadata"])["batch"] for row in history] == [3, 5]
    for row in history:
        rows = spark.read.format("delta").option("versionAsOf", row["version"]).load(str(target)).count()
        assert int(row["operationMetrics"]["numOutputRows"]) == rows
    assert json.loads((target / "_ckpt_export.json").read_text())["batch"] == 5


def test_what_is_there_is_replaced_only_when_asked(ckpt: Ckpt, spark: Any, tmp_path: Path) -> None:
    target = tmp_path / "out"
    assert ckpt("export-state", "--engine", "spark", SAMPLE, "--to", target, "--batch", "2").exit_code == 0
    again = ckpt("export-state", "--engine", "spark", SAMPLE, "--to", target)
    assert again.exit_code == 2
    assert "already exists: --mode overwrite replaces it" in again.refusal()
    assert json.loads((target / "_ckpt_export.json").read_text())["batch"] == 2
    over = ckpt("export-state", "--engine", "spark", SAMPLE, "--to", target, "--mode", "overwrite")
    assert over.exit_code == 0, over.stderr
    manifest = json.loads((target / "_ckpt_export.json").read_text())
    assert manifest["batch"] == 9
    assert spark.read.parquet(str(target)).count() == manifest["rows"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_was_not_exported_is_never_overwritten(ckpt: Ckpt, spark: Any, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("miaow")
    result = ckpt("export-state", "--engine", "spark", SAMPLE, "--to", tmp_path / "photos", "--mode", "overwrite")
    assert result.exit_code == 2
    assert "not overwritten" in result.refusal()
    assert (tmp_path / "photos" / "cat.jpg").read_text() == "miaow"


@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_a_failed_export_leaves_nothing(mode: str, ckpt: Ckpt, spark: Any, copy_of: CopyOf, tmp_path: Path) -> None:
    """Changelogs of one partition are damaged where no look at their ends shows it: Spark fails while it writes."""
    checkpoint = copy_of("aggregation-changelog-4.2")
    target = tmp_path / "out"
    if mode == "overwrite":
        assert ckpt("export-state", "--engine", "spark", checkpoint, "--to", target, "--batch", "1").exit_code == 0
    for changelog in (checkpoint / "state" / "0" / "1").glob("*.changelog"):
        spoil(changelog)
    result = ckpt("export-state", "--engine", "spark", checkpoint, "--to", target, "--batch", "4", "--mode", mode)
    assert result.exit_code == 3
    assert "failed in Spark" in result.refusal()
    there = {path.name for path in tmp_path.iterdir()} - {"checkpoint"}
    assert there == ({"out"} if mode == "overwrite" else set())
    if mode == "overwrite":
        assert json.loads((target / "_ckpt_export.json").read_text())["batch"] == 1


def test_all_or_nothing(ckpt: Ckpt, spark: Any, copy_of: CopyOf, tmp_path: Path) -> None:
    """The first operator is sound, the second fails: no folder appears."""
    checkpoint = copy_of("dedup-aggregation-hdfs-4.2")
    for delta in (checkpoint / "state" / "1" / "1").glob("*.delta"):
        spoil(delta)
    result = ckpt("export-state", "--engine", "spark", checkpoint, "--all-units", "--to", tmp_path / "all")
    assert result.exit_code == 3, result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_csv_refuses_what_it_cannot_hold_by_name(ckpt: Ckpt, spark: Any, tmp_path: Path) -> None:
    result = ckpt(
        "export-state", "--engine", "spark", SAMPLE, "--to", tmp_path / "out", "--format", "csv", "--shape", "raw"
    )
    assert result.exit_code == 2
    assert "column key (struct)" in result.refusal()
    assert list(tmp_path.iterdir()) == []


def test_a_table(ckpt: Ckpt, spark: Any, copy_of: CopyOf) -> None:
    """It is replaced when the new one is whole; a failed export leaves what was there, and nothing else."""
    damaged = copy_of("aggregation-changelog-4.2")
    for changelog in (damaged / "state" / "0" / "1").glob("*.changelog"):
        spoil(changelog)
    name = "exported_state"
    assert type(spark).getActiveSession() is spark
    before = {row["tableName"] for row in spark.sql("SHOW TABLES").collect()}
    try:
        failed = ckpt("export-state", "--engine", "spark", damaged, "--batch", "4", "--table", name)
        assert (failed.exit_code, "failed in Spark" in failed.refusal()) == (3, True)
        assert not spark.catalog.tableExists(name)
        assert ckpt("export-state", "--engine", "spark", SAMPLE, "--table", name).exit_code == 0
        assert spark.table(name).count() == 14
        again = ckpt("export-state", "--engine", "spark", SAMPLE, "--table", name)
        assert again.exit_code == 2
        assert f"--table {name} already exists: --mode overwrite replaces it" in again.refusal()
        failed = ckpt(
            "export-state", "--engine", "spark", damaged, "--batch", "4", "--table", name, "--mode", "overwrite"
        )
        assert failed.exit_code == 3
        assert spark.table(name).count() == 14
        other = ckpt(
            "export-state", "--engine", "spark", SAMPLE, "--batch", "2", "--table", f"`{name}`", "--mode", "overwrite"
        )
        assert other.exit_code == 0, other.stderr
        assert (
            spark.table(name).count()
            == ckpt_library.read_state(str(ROOT / SAMPLE), session=spark, batch=2).count()
            != 14
        )
        assert {row["tableName"] for row in spark.sql("SHOW TABLES").collect()} == before | {name}
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_a_table_is_not_put_into_a_checkpoint(ckpt: Ckpt, spark: Any, copy_of: CopyOf) -> None:
    checkpoint = copy_of("aggregation-hdfs-4.2")
    spark.sql(f"CREATE DATABASE inside LOCATION '{checkpoint}/warehouse'")
    try:
        before = trace(checkpoint)
        refused = ckpt("export-state", "--engine", "spark", checkpoint, "--table", "inside.t")
        assert trace(checkpoint) == before
    finally:
        spark.sql("DROP DATABASE inside")
    assert refused.exit_code == 2
    assert "would be in the checkpoint" in refused.refusal()


def test_a_table_that_nobody_would_find_is_refused(tmp_path: Path) -> None:
    """Spark's own catalog ends with the session that the command starts."""
    words = ["export-state", "--engine", "spark", str(ROOT / SAMPLE), "--table", "t", "--master", "local[1]"]
    command = [sys.executable, "-m", "ckpt", *words]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 2, run.stderr
    assert "nobody would find the table; use --to" in run.stderr
    assert list(tmp_path.iterdir()) == []


# In a process of its own.


def run(*words: str, env: dict[str, str] | None = None, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ckpt", *words],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_export_leaves_nothing_that_looks_whole(number: signal.Signals, tmp_path: Path) -> None:
    target = tmp_path / "out"
    started = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "ckpt",
            "export-state",
            "--engine",
            "spark",
            SAMPLE,
            "--to",
            str(target),
            "--master",
            "local[1]",
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 120
        while started.poll() is None and not list(tmp_path.glob(".out.ckpt-*")) and time.monotonic() < deadline:
            time.sleep(0.02)
        if number is signal.SIGINT:
            os.kill(started.pid, number)
        else:
            os.killpg(started.pid, number)
        _, errors = started.communicate(timeout=120)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
    if target.exists():
        assert (target / "_ckpt_export.json").is_file(), "it was quicker than the signal, and is whole"
        return
    if number is signal.SIGINT:
        assert started.returncode == 3, errors
        assert "ckpt: interrupted; nothing was written" in errors
        assert list(tmp_path.iterdir()) == []
    assert all(path.name.startswith(".out.ckpt-") for path in tmp_path.iterdir())


def test_without_java(tmp_path: Path) -> None:
    done = run("export-state", "--engine", "spark", SAMPLE, "--to", "no", env={"PATH": str(tmp_path), "JAVA_HOME": ""})
    assert done.returncode == 3
    assert done.stderr == (
        "ckpt: Spark needs Java, but the PATH has none: install Java 17 or later and set JAVA_HOME\n"
    )


def test_with_a_java_that_is_too_old(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.22\" 2024-01-16' >&2\n")
    java.chmod(0o755)
    done = run("export-state", "--engine", "spark", SAMPLE, "--to", "no", env={"JAVA_HOME": str(tmp_path)})
    assert done.returncode == 3
    assert "needs Java 17 or later" in done.stderr
    assert "is Java 11" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("version", "says"),
    [(None, f"pyspark is not installed: {install_command('spark')}"), ("3.5.9", "pyspark 3.5.9 has no")],
)
def test_with_no_pyspark_or_one_that_is_too_old(version: str | None, says: str, tmp_path: Path) -> None:
    """A process that finds no pyspark, or the metadata of an old one: what the package index would have installed."""
    hide = (
        "import sys, importlib.util, importlib.metadata as metadata\n"
        "found, told = importlib.util.find_spec, metadata.version\n"
        f"there = {version!r}\n"
        "importlib.util.find_spec = lambda n, p=None: None if n == 'pyspark' and there is None else found(n, p)\n"
        "metadata.version = lambda n: there if n == 'pyspark' and there else told(n)\n"
        "from ckpt.spark import installed\n"
        "try:\n"
        "    installed.find_pyspark_version()\n"
        "except installed.SparkMissing as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", hide], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert says in done.stdout, done.stderr


def test_a_pyspark_that_is_too_old_is_one_line(tmp_path: Path) -> None:
    """What the package metadata says that is found first, as in an environment with the old one."""
    (tmp_path / "pyspark-3.5.9.dist-info").mkdir()
    (tmp_path / "pyspark-3.5.9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: pyspark\nVersion: 3.5.9\n"
    )
    done = run("export-state", "--engine", "spark", SAMPLE, "--to", "no", env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == ("ckpt: pyspark 3.5.9 has no state reader that ckpt can use: pip install 'pyspark>=4.0.1'\n")


def test_where_renaming_is_copying_the_manifest_comes_last(spark: Any, tmp_path: Path) -> None:
    """As on object stores: a rename that is cut short leaves nothing, and no manifest at any moment before the end."""
    from ckpt.errors import CkptError
    from ckpt.spark.export import Files, Staged
    from ckpt.state.export.targets import ExportTarget, Format, Mode

    class Copying(Files):
        """Renames file by file, and at a file called ``bad`` no more."""

        def rename(self, path: str, to: str) -> None:
            for name in sorted(self.list_names(path) or []):
                assert not self.exists(f"{to}/_ckpt_export.json")
                if name == "bad":
                    raise CkptError("cut short")
                self.write(f"{to}/{name}", "copied")
            self.remove(path)

    for name, whole in (("good", True), ("bad", False)):
        files = Copying(spark)
        place = tmp_path / name
        staged = Staged(files, ExportTarget(f"file:{place}", None, Format.PARQUET, Mode.ERROR))
        staged._at_once = False
        files.write(f"{staged.path}/a", "data")
        files.write(f"{staged.path}/{name}", "data")
        if whole:
            staged.finish({"_ckpt_export.json": "{}"})
            assert {"a", "good", "_ckpt_export.json"} <= {path.name for path in place.iterdir()}
            continue
        with pytest.raises(CkptError, match="cut short"):
            staged.finish({"_ckpt_export.json": "{}"})
        staged.give_up()
        assert not place.exists()
        assert [path.name for path in tmp_path.iterdir()] == ["good"]


def test_one_document_on_stdout_and_no_chatter(tmp_path: Path) -> None:
    done = run(
        "export-state", "--engine", "spark", SAMPLE, "--to", str(tmp_path / "out"), "-o", "json", "--master", "local[1]"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["exports"][0]["rows"] == 14
    lines = [line for line in done.stderr.splitlines() if line and "incubator modules" not in line]
    assert lines == []
