"""A real Kafka broker on a loopback port, and the jars a Spark 4.2 session needs for it, through Maven."""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BROKER = ("org.apache.kafka:kafka_2.13:4.2.1",)
# The token provider lags behind in some registries, and 4.0.0 serves 4.2 as well.
_CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>ckpt</groupId><artifactId>jars</artifactId><version>1</version><dependencies>{}</dependencies></project>
"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>\n"
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"

_SERVER = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={data}
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


def connector_jars(cache: Path) -> list[Path]:
    """The jars for `spark.jars`, downloaded into `cache` once."""
    return _jars(cache / "kafka-connector", _CONNECTOR, alone=True)


@contextmanager
def broker(cache: Path, data: Path) -> Iterator[str]:
    """Run a broker that keeps its topics, of two partitions each, below `data`, which is emptied; gives `host:port`.

    Raises RuntimeError where it does not listen within a minute; what it said is in `data/broker.log`.
    """
    classpath = ":".join(map(str, _jars(cache / "kafka-broker", _BROKER, alone=False)))
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    port, controller = _free_port(), _free_port()
    properties = data / "server.properties"
    properties.write_text(_SERVER.format(port=port, controller=controller, data=data / "topics"))
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classpath]
    with (data / "broker.log").open("w") as log:
        format_it = [*java, "kafka.tools.StorageTool", "format", "-t", _uuid(), "-c", str(properties)]
        subprocess.run(format_it, check=True, stdout=log, stderr=log)
        process = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
        try:
            _wait_until_listening(process, port)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _jars(folder: Path, artifacts: tuple[str, ...], alone: bool) -> list[Path]:
    if not folder.is_dir():
        building = folder.with_name(folder.name + ".part")
        building.mkdir(parents=True, exist_ok=True)
        wanted = (_DEPENDENCY.format(*artifact.split(":"), _ALONE if alone else "") for artifact in artifacts)
        (building / "pom.xml").write_text(_POM.format("".join(wanted)))
        goal = ["dependency:copy-dependencies", "-DoutputDirectory=."]
        subprocess.run(["mvn", "-q", "-B", "-Dstyle.color=never", *goal], cwd=building, check=True)
        building.rename(folder)
    return sorted(folder.glob("*.jar"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _uuid() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _wait_until_listening(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"Kafka does not listen on port {port}")
