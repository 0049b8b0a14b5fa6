"""A server of Spark Connect on a loopback port; its client's packages are the dependency group `connect`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.places import ROOT
from tests.support.services.process import Unavailable, free_port, listening, prepared, running, spark_home

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
}


def client_packages() -> Path:
    """The folder of the client's packages, for the end of `sys.path`; downloaded once. Raises Unavailable."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", "{}"]
    return prepared("connect", [*pip, "--group", f"{ROOT / 'pyproject.toml'}:connect"])


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Start a server with the Spark that is installed; gives its URL. Raises Unavailable."""
    port, home = free_port(), spark_home()
    if not list(home.glob("jars/spark-connect_*.jar")):
        raise Unavailable("this pyspark has no server of Spark Connect")
    settings = {**_SETTINGS, "spark.connect.grpc.binding.port": port, "spark.connect.grpc.binding.address": "127.0.0.1"}
    confs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    server = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    command: list[str | Path] = [home / "bin" / "spark-submit", "--master", "local[2]", *confs, *server]
    with running(command, folder, lambda: listening(port)):
        yield f"sc://127.0.0.1:{port}"
