"""The benchmarks run, at tiny sizes; how fast anything is cannot be tested here."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

ROWS = (
    "a small checkpoint (stateless-4.2), against import typer, pyarrow.fs",
    "a small checkpoint (aggregation-hdfs-4.2), against import typer, pyarrow.fs",
    "pyspark reading state-metadata",
    "200 batches (801 files), against a bare walk",
    "20 partitions x 20 versions, HDFS-backed (463 files), against a bare walk",
    "20 partitions x 20 versions, RocksDB (523 files), against a bare walk",
    "20 partitions x 20 versions, HDFS-backed, in a simulated object store",
    "20 partitions x 20 versions, RocksDB, in a simulated object store",
)


@pytest.mark.skipif(not Path(sys.executable).with_name("ckpt").exists(), reason="ckpt is not installed beside Python")
def test_a_quick_run_prints_every_row_and_leaves_nothing_behind(tmp_path):
    command = [sys.executable, str(ROOT / "benchmarks" / "inspect.py"), "--quick"]
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)

    assert done.returncode == 0, done.stderr
    starts = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")][2:]
    assert len(starts) == len(ROWS)
    assert all(line.startswith(row) for line, row in zip(starts, ROWS, strict=True))
    assert list(tmp_path.iterdir()) == []
