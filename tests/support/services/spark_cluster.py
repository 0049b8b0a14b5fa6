"""A Spark standalone cluster on one machine: a master and two workers, from the installed pyspark itself."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.support.services.process import Unavailable, free_port, listening, running, spark_home
from tests.support.spark import classes

_DEPLOY = "org.apache.spark.deploy"
_WORKERS = 2
_SIZE = ("--cores", "1", "--memory", "640m")


@dataclass(frozen=True)
class SparkCluster:
    """Where it is, and the folder in which each worker keeps one folder for each application."""

    master: str
    work: Path

    @property
    def conf(self) -> dict[str, str]:
        """What keeps a driver on the loopback, and makes it wait for an executor on each worker."""
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": classes.for_executors(),
            "spark.scheduler.minRegisteredResourcesRatio": "1",
        }

    def tasks(self, application: str) -> list[int]:
        """How many tasks the executor on each worker says it finished."""
        logs = sorted(self.work.glob(f"*/{application}/*/stderr"))
        return [log.read_text(errors="replace").count(": Finished task ") for log in logs]

    @property
    def applications(self) -> set[str]:
        """Every application that has had an executor."""
        return {folder.name for folder in self.work.glob("*/app-*")}


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    """Start one. Raises Unavailable."""
    home = spark_home()
    program = home / "bin" / "spark-class"
    if not program.is_file():
        raise Unavailable(f"pyspark has no {program.name}")
    cluster = SparkCluster(f"spark://127.0.0.1:{free_port()}", folder / "work")
    port = int(cluster.master.rpartition(":")[2])
    env = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    with ExitStack() as stack:

        def start(service: str, own: Path, ready: Callable[[], bool], *words: str | Path) -> None:
            own.mkdir()
            listen = ("--host", "127.0.0.1", "--webui-port", "0")
            stack.enter_context(running([program, f"{_DEPLOY}.{service}", *listen, *words], own, ready, env=env))

        start("master.Master", folder / "master", lambda: listening(port), "--port", str(port))
        for number in range(_WORKERS):
            own = folder / f"worker-{number}"
            registered = partial(_is_registered, own / "service.log")
            start("worker.Worker", own, registered, *_SIZE, "-d", cluster.work / str(number), cluster.master)
        yield cluster


def _is_registered(log: Path) -> bool:
    return "Successfully registered" in log.read_text(errors="replace")
