"""A Spark standalone cluster on one machine: a master and a worker, from the installed pyspark itself."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from tests.support.services.process import Unavailable, free_port, listening, running

_DEPLOY = "org.apache.spark.deploy"
_SIZE = ("--cores", "2", "--memory", "2g")


@dataclass(frozen=True)
class SparkCluster:
    """Where it is, and the folder in which the worker keeps one folder for each application."""

    master: str
    work: Path

    @property
    def conf(self) -> dict[str, str]:
        """What keeps a driver on the loopback."""
        return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

    def tasks(self) -> dict[str, int]:
        """How many tasks the executors of each application say they finished."""
        logs = self.work.glob("app-*/*/stderr")
        return {log.parts[-3]: log.read_text(errors="replace").count(": Finished task ") for log in logs}


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    """Start one. Raises Unavailable."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise Unavailable("pyspark is not installed")
    home = Path(found.origin).parent
    program = home / "bin" / "spark-class"
    if not program.is_file():
        raise Unavailable(f"pyspark has no {program.name}")
    cluster = SparkCluster(f"spark://127.0.0.1:{free_port()}", folder / "work")
    port = int(cluster.master.rpartition(":")[2])
    for name in ("master", "worker"):
        (folder / name).mkdir()
    log = folder / "worker" / "service.log"
    env = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    start = partial(running, env=env)
    listen = ["--host", "127.0.0.1", "--webui-port", "0"]
    master: list[str | Path] = [program, f"{_DEPLOY}.master.Master", *listen, "--port", str(port)]
    worker: list[str | Path] = [
        program,
        f"{_DEPLOY}.worker.Worker",
        *listen,
        *_SIZE,
        "-d",
        cluster.work,
        cluster.master,
    ]
    with (
        start(master, folder / "master", lambda: listening(port)),
        start(worker, folder / "worker", lambda: "Successfully registered" in log.read_text(errors="replace")),
    ):
        yield cluster
