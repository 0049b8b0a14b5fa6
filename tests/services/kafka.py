"""A real Kafka broker on a loopback port, and the jars a Spark 4.2 session needs for it, through Maven."""

import base64
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.maven import jars
from tests.services.process import free_port, listening, run, running

SPARK = "4.2"
"""The Spark minor version that the tests run, and the connector's jars are for."""

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


_CONNECTORS = {
    "3.5": {"spark": "3.5.0", "scala": "2.12", "token": "3.5.0"},
    "4.0": {"spark": "4.0.0"},
    "4.1": {"spark": "4.1.3"},
}
"""What differs from the POM for other minor versions: a release of each that the registry has."""


def connector_jars(minor: str = SPARK) -> list[Path]:
    """The jars for `spark.jars`, downloaded once; those of 4.2 for later versions. Raises Unavailable."""
    return sorted(jars("kafka-connector", **_CONNECTORS.get(minor, {})).glob("*.jar"))


@contextmanager
def kafka_broker(folder: Path) -> Iterator[str]:
    """Run a broker that keeps its topics, of two partitions each, in an empty folder; gives `host:port`.

    Raises Unavailable.
    """
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars('kafka-broker')}/*"]
    port, controller = free_port(), free_port()
    properties = folder / "server.properties"
    properties.write_text(_SERVER.format(port=port, controller=controller, data=folder / "topics"))
    run([*java, "kafka.tools.StorageTool", "format", f"--cluster-id={_uuid()}", "-c", str(properties)])
    with running([*java, "kafka.Kafka", properties], folder, lambda: listening(port)):
        yield f"127.0.0.1:{port}"


def _uuid() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
