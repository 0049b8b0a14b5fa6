"""A real Kafka broker on a loopback port, and the jars a Spark 4.2 session needs for it, through Maven."""

import base64
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.record import packages
from tests.support.services.maven import jars
from tests.support.services.process import free_port, listening, run, running

SPARK = "4.2"
"""The Spark minor version that the tests run, and the connector's jars are for."""

_SERVER = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{listeners}
controller.listener.names=CONTROLLER
log.dirs={data}
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""

_SECURED = """listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_SSL,MUTUAL:SSL
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.login.plain.sasl.jaas.config={plain} required user_{user}="{password}";
listener.name.login.scram-sha-512.sasl.jaas.config={scram} required;
ssl.keystore.location={folder}/broker.p12
ssl.keystore.password={password}
ssl.truststore.location={folder}/trusted.p12
ssl.truststore.password={password}
listener.name.mutual.ssl.client.auth=required
"""
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
USER, PASSWORD = "me", "not-for-others"


def connector_jars(minor: str = SPARK) -> list[Path]:
    """The jars for `spark.jars`, downloaded once; those of 4.2 for later versions. Raises Unavailable."""
    return sorted(jars("kafka-connector", **packages.KAFKA.get(minor, {})).glob("*.jar"))


@contextmanager
def kafka_broker(folder: Path, listeners: str = "", more: str = "", *users: str) -> Iterator[str]:
    """Run a broker that keeps its topics, of two partitions each, in an empty folder; gives `host:port`.

    `more` is configuration, also of more `listeners`; `users` are those who log in by SCRAM. Raises Unavailable.
    """
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars('kafka-broker')}/*"]
    port, controller = free_port(), free_port()
    properties = folder / "server.properties"
    of_server = _SERVER.format(port=port, controller=controller, data=folder / "topics", listeners=listeners)
    properties.write_text(of_server + more)
    scram = [word for user in users for word in ("--add-scram", user)]
    run([*java, "kafka.tools.StorageTool", "format", f"--cluster-id={_uuid()}", "-c", str(properties), *scram])
    with running([*java, "kafka.Kafka", properties], folder, lambda: listening(port)):
        yield f"127.0.0.1:{port}"


@dataclass(frozen=True)
class Secured:
    """A broker with TLS, and what clients need."""

    plain: str  # `host:port` without any of it
    login: str  # with the name and password above, by PLAIN or SCRAM-SHA-512
    mutual: str  # for clients with the certificate of `client`
    trusted: Path  # PEM
    client: Path  # PKCS#12, with the password above


@contextmanager
def secured_broker(folder: Path) -> Iterator[Secured]:
    """The same with two more listeners. Raises Unavailable."""
    login, mutual = (f"127.0.0.1:{free_port()}" for _ in range(2))
    for name in ("broker", "client"):
        _keytool(folder, name, "-genkeypair", "-keyalg", "RSA", "-dname", f"CN={name}", "-ext", "san=ip:127.0.0.1")
        _keytool(folder, name, "-exportcert", "-rfc", "-file", f"{folder}/{name}.pem")
    _keytool(folder, "trusted", "-importcert", "-noprompt", "-file", f"{folder}/client.pem")
    more = _SECURED.format(folder=folder, plain=PLAIN, scram=SCRAM, user=USER, password=PASSWORD)
    scram = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
    with kafka_broker(folder, f",LOGIN://{login},MUTUAL://{mutual}", more, scram) as plain:
        yield Secured(plain, login, mutual, folder / "broker.pem", folder / "client.p12")


def _keytool(folder: Path, store: str, *words: str) -> None:
    place = ["-keystore", f"{folder}/{store}.p12", "-storepass", PASSWORD, "-alias", store]
    run(["keytool", *words, *place, "-storetype", "PKCS12"])


def _uuid() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
