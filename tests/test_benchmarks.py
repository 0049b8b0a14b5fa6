"""The benchmarks run, at tiny sizes; how fast anything is cannot be tested here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.support.spark import classes
from tests.support.spark.live import EVERY_CASE

ROWS = (
    "a small checkpoint (stateless-4.2), against import typer, pyarrow.fs",
    "a small checkpoint (aggregation-hdfs-4.2), against import typer, pyarrow.fs",
    "a small checkpoint (aggregation-hdfs-4.2), against --names-only",
    "pyspark reading state-metadata",
    "200 batches (801 files), against a bare walk",
    "20 partitions x 20 versions, HDFS-backed (463 files), against a bare walk",
    "20 partitions x 20 versions, RocksDB (483 files), against a bare walk",
    "20 partitions x 20 versions, HDFS-backed, copied there, in S3",
    "20 partitions x 20 versions, HDFS-backed, written there, in S3",
    "20 partitions x 20 versions, RocksDB, copied there, in S3",
    "20 partitions x 20 versions, RocksDB, written there, in S3",
)


INSTALLED = pytest.mark.skipif(
    not Path(sys.executable).with_name("ckpt").exists(), reason="ckpt is not installed beside Python"
)


def rows_of(tmp_path: Path, *words: str) -> list[str]:
    """The rows that a benchmark prints, without the two lines above them; it may leave nothing behind."""
    command = [sys.executable, str(ROOT / "benchmarks" / words[0]), *words[1:]]
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    java = {name: os.environ[name] for name in ("JAVA_HOME", *classes.SETTINGS) if name in os.environ}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env=environment | java)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
    return [line for line in done.stdout.splitlines() if line][2:]


@INSTALLED
@pytest.mark.slow
@pytest.mark.skipif(not EVERY_CASE, reason="timed, not proven: CKPT_TEST_ALL=1")
def test_a_quick_run_prints_every_row_and_leaves_nothing_behind(tmp_path):
    starts = [line for line in rows_of(tmp_path, "inspect.py", "--quick") if not line.startswith(" ")]
    assert len(starts) == len(ROWS)
    assert all(line.startswith(row) for line, row in zip(starts, ROWS, strict=True))


@INSTALLED
@pytest.mark.slow
@pytest.mark.skipif(not EVERY_CASE, reason="timed, not proven: CKPT_TEST_ALL=1")
def test_verifying_a_few_bytes_runs_too(tmp_path):
    lines = rows_of(tmp_path, "verify.py", "--megabytes", "1", "--pairs", "1")
    names = [f"{kind}{more}" for kind in ("deltas", "SST files") for more in ("", " with hidden checksums")]
    assert [line.partition(", ")[0] for line in lines if not line.startswith(" ")] == names
    assert len(lines) == 3 * len(names)


@INSTALLED
@pytest.mark.slow
def test_scanning_a_few_checkpoints_runs_too(tmp_path):
    lines = rows_of(tmp_path, "scan.py", "--checkpoints", "5", "--pairs", "1")
    names = ["5 checkpoints of 26 files (stateless-4.2)", "5 checkpoints of 94 files (aggregation-hdfs-4.2)"]
    assert [line.partition(", ")[0] for line in lines if not line.startswith(" ")] == names
    assert len(lines) == 4 * len(names)


@INSTALLED
@pytest.mark.slow
def test_points_of_few_partitions_run_too(tmp_path):
    lines = rows_of(tmp_path, "points.py", "--quick")
    rows = [line.partition(", 4 partitions")[0] for line in lines if not line.startswith(" ")]
    assert rows[0] == "a full copy"
    assert [row.partition(" ")[0] for row in rows[-3:]] == ["--since", "--keep,", "--keep,"]
    assert len(lines) == 4 * len(rows)


@INSTALLED
@pytest.mark.slow
@pytest.mark.skipif(not EVERY_CASE, reason="timed, not proven: CKPT_TEST_ALL=1")
def test_a_model_of_small_checkpoints_is_made_too(tmp_path):
    (tmp_path / "made").mkdir()
    lines = rows_of(tmp_path / "made", "scale.py", "--quick", "--record", str(tmp_path / "scale.json"))
    record = json.loads((tmp_path / "scale.json").read_text())
    commands = [line for line in lines if not line.startswith(" ")]
    assert commands == [*record["commands"]]
    assert len(commands) == 7
    for costs in record["commands"].values():
        assert costs["measured"]["requests"] == pytest.approx(costs["predicted"]["requests"], rel=0.05)
        assert costs["growth"]["requests"] <= 10


@pytest.fixture(scope="module")
def few_keys(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Words of a benchmark; one makes the checkpoints of 200 keys, and the other finds them."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    folder = str(tmp_path_factory.mktemp("checkpoints"))
    return ["--keys", "200", "--pairs", "1", "--providers", "RocksDB", "--folder", folder]


@INSTALLED
@pytest.mark.spark
@pytest.mark.skipif(not EVERY_CASE, reason="timed, not proven: CKPT_TEST_ALL=1")
def test_state_of_few_keys_is_measured_too(few_keys, tmp_path):
    lines = rows_of(tmp_path, "state.py", *few_keys)
    assert [line for line in lines if not line.startswith(" ")] == [
        "one key of 200, RocksDB, against pyspark",
        "200 keys, RocksDB, to Parquet, against spark-submit",
    ]


@INSTALLED
@pytest.mark.spark
@pytest.mark.skipif(not EVERY_CASE, reason="timed, not proven: CKPT_TEST_ALL=1")
def test_exports_of_few_keys_run_too(few_keys, tmp_path):
    lines = rows_of(tmp_path, "export.py", *few_keys)
    assert [line for line in lines if not line.startswith(" ")][:-1] == [
        f"{keys} keys, RocksDB, to Parquet, against bare Spark" for keys in (20, 200)
    ]
    assert lines[-1].startswith("200 keys, RocksDB, with spark.driver.memory=1g: exported in ")
    ratios = [line.split() for line in lines if line.startswith("    wall")]
    assert len(ratios) == 2
    assert all(float(wall) > 0 and float(cpu) > 0 for _, wall, _, cpu, *_ in ratios)
