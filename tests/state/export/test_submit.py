"""``spark-submit`` of ckpt, by the command that docs/export.md gives."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.state.export import rows
from tests.support.places import ROOT

PAGE = (ROOT / "docs" / "export-remote.md").read_text(encoding="utf-8")


@pytest.mark.spark
def test_the_command_of_the_page(tmp_path: Path) -> None:
    """It is run by a shell as it stands; the session is that of spark-submit, and the rows are the known ones."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        pytest.skip("pyspark is not installed")
    (command,) = re.findall(r"```sh\n(spark-submit .*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "sample_checkpoints").symlink_to(ROOT / "sample_checkpoints")
    programs = (Path(found.origin).parent / "bin", Path(sys.executable).parent)
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}

    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=400)

    assert done.returncode == 0, done.stderr
    folder = tmp_path / "exported" / "windows"
    answer = rows.ANSWERS["windowed-aggregation-hdfs-4.2"]["operators"]["0"]["views"][0]["rows"]
    table = pq.read_table(folder)
    assert table.num_rows == json.loads((folder / "_ckpt_export.json").read_text())["rows"] == len(answer)
    assert sum(table["value_count"].to_pylist()) == sum(row["value"]["count"] for row in answer)
    assert done.stdout.startswith(f"Exported {len(answer)} rows of operator 0 (stateStoreSave), batch 9, to")


def test_the_settings_for_s3_are_those_that_are_tested() -> None:
    """The page's command names the settings that ``test_remote.py`` gives to Spark and to ckpt, with other values."""
    from itertools import count

    from tests.support.services.s3 import S3Server

    server = S3Server(9000, Path(), count())
    (command,) = re.findall(r"```sh\n([^`]*endpoint_override[^`]*)```", PAGE)
    told = dict(re.findall(r"--conf ([\w.]+)=(\S+)", command))
    assert told.pop("spark.jars.packages").startswith("org.apache.hadoop:hadoop-aws:")
    assert told.keys() == server.confs.keys()
    assert told["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert set(re.findall(r"--storage-options (\w+)=", command)) == server.options.keys()
