"""The same export on a standalone cluster: a master and a worker on loopback, from pyspark's own ``bin/``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CopyOf
from tests.places import ROOT
from tests.services.process import Unavailable, free_port, listening, running

pytestmark = [pytest.mark.spark, pytest.mark.service]


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a cluster with one worker of two cores."""
    if find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    import pyspark

    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    port, ui, worker_ui = free_port(), free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    loopback = ["--host", "127.0.0.1", "--webui-port"]
    homes = [tmp_path_factory.mktemp(name) for name in ("master", "worker")]
    with ExitStack() as stack:
        try:
            command: list[str | Path] = [
                spark_class,
                f"{deploy}.master.Master",
                *loopback,
                str(ui),
                "--port",
                str(port),
            ]
            stack.enter_context(running(command, homes[0], lambda: listening(port)))
            command = [spark_class, f"{deploy}.worker.Worker", *loopback, str(worker_ui), "-c", "2", "-m", "1g"]
            command += ["--work-dir", homes[1], url]
            stack.enter_context(running(command, homes[1], lambda: "Successfully registered" in log(homes[1])))
        except Unavailable as error:
            pytest.skip(str(error))
        yield url


def log(home: Path) -> str:
    return (home / "service.log").read_text(errors="replace")


def test_a_cluster_exports_what_one_machine_does(master: str, copy_of: CopyOf, tmp_path: Path) -> None:
    """Of a moved transformWithState checkpoint under a name with a space: the mount must hold in the executors too."""
    checkpoint = copy_of("tws-rocksdb-4.2", to="moved here")
    exported: dict[str, Any] = {}
    for name, words in {
        "local": ["--master", "local[1]"],
        "cluster": ["--master", master, "--conf", "spark.executor.memory=512m", "--conf", "spark.executor.cores=2"],
    }.items():
        target = tmp_path / name
        words += ["--format", "json", "--conf", "spark.driver.host=127.0.0.1", "-o", "json"]
        done = subprocess.run(
            [sys.executable, "-m", "ckpt", "export-state", str(checkpoint), "--all", "--to", str(target), *words],
            cwd=ROOT,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        counts = {one["unit"]: one["rows"] for one in document["exports"]}
        rows = {
            folder.name: sorted(line for part in folder.glob("part-*") for line in part.read_text().splitlines())
            for folder in target.iterdir()
        }
        exported[name] = (counts, rows)
    assert exported["cluster"] == exported["local"]
    assert sum(map(len, exported["cluster"][1].values())) == sum(exported["cluster"][0].values()) > 50
