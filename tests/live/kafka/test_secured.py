"""`ckpt inspect --sources` at a real broker with TLS and logins, with the options of Spark's own reader."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.changes.fixes.async_gap.test_kafka_incident import pytestmark as of_the_connector
from tests.conftest import Ckpt
from tests.live.kafka import cases
from tests.live.kafka.cases import Broker, Case
from tests.support.services.fixtures import or_skip
from tests.support.services.kafka import PASSWORD, PLAIN, SCRAM, USER, Secured, secured_broker
from tests.support.spark.live import Here

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
pytestmark = of_the_connector


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with or_skip("Kafka"), secured_broker(tmp_path_factory.mktemp("secured")) as found:
        yield found


def login(secured: Secured, module: str, password: str = PASSWORD) -> dict[str, str]:
    """What a query's reader is given."""
    return {
        "kafka.bootstrap.servers": secured.login,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN" if module == PLAIN else "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{module} required username="{USER}" password="{password}";',
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(secured.trusted),
    }


def certified(secured: Secured) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": secured.mutual,
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(secured.trusted),
        "kafka.ssl.keystore.type": "PKCS12",
        "kafka.ssl.keystore.location": str(secured.client),
        "kafka.ssl.keystore.password": PASSWORD,
    }


def asked(options: dict[str, str], folder: Path) -> list[str]:
    """Words of a command, with secrets where they belong."""
    words = []
    for key, value in options.items():
        secret = "password" in key or "jaas" in key
        if secret:
            (folder / key).write_text(value)
        words += ["--source-options", f"0.{key}={f'@{folder / key}' if secret else value}"]
    return ["--sources", *words]


@pytest.mark.parametrize("way", ["plain", "scram", "certificate"])
def test_the_options_of_the_query_reach_the_broker(
    way: str, secured: Secured, kafka_jars: str, spark: Any, ckpt: Ckpt, tmp_path: Path
) -> None:
    topic, checkpoint = Case("more-rows", True).make(Broker(secured.plain), tmp_path / "checkpoint")
    options = certified(secured) if way == "certificate" else login(secured, PLAIN if way == "plain" else SCRAM)

    (source,) = ckpt("inspect", checkpoint, *asked(options, tmp_path), "-o", "json").json()["sources"]
    job = {"checkpoint": str(checkpoint), "options": {**options, "subscribe": topic}}
    said = Here(spark, cases.answer).ask(job)

    assert said["error"] is None
    assert source["live"]["waiting"] == sum(rows for _, rows in said["batches"]) == 20


@pytest.mark.parametrize(
    ("way", "words"),
    [("password", "Authentication failed"), ("trust", "certificate verify failed"), ("certificate", "certificate")],
)
def test_what_a_broker_refuses_is_one_line_without_secrets(
    way: str, words: str, secured: Secured, ckpt: Ckpt, tmp_path: Path
) -> None:
    _, checkpoint = Case("more-rows", True).make(Broker(secured.plain), tmp_path / "checkpoint")
    options = login(secured, SCRAM, "very-secret" if way == "password" else PASSWORD)
    if way == "trust":
        options["kafka.ssl.truststore.location"] = str(secured.client.with_name("client.pem"))
    if way == "certificate":
        options = {key: value for key, value in certified(secured).items() if "keystore" not in key}

    began = time.monotonic()
    run = ckpt("inspect", checkpoint, *asked(options, tmp_path))

    assert run.exit_code == 3
    assert time.monotonic() - began < 40
    assert words in run.unreached()
    assert "very-secret" not in run.unreached()
    assert PASSWORD not in run.unreached()
