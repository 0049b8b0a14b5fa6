"""`ckpt inspect --sources` at a real broker: what it says, what Spark then does, and what its advice is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ckpt import open_checkpoint
from ckpt.live.asking import ask_sources
from ckpt.live.records import KafkaNow
from tests.changes.fixes.async_gap.test_kafka_incident import pytestmark as of_the_connector
from tests.commands import contract
from tests.conftest import Ckpt
from tests.live.first_remedy import advised, done
from tests.live.judging import inspected
from tests.live.kafka import cases
from tests.live.kafka.cases import CASES, Broker, Case
from tests.live.kafka.judging import disagreements
from tests.support.services.kafka import SPARK
from tests.support.spark.live import EVERY_CASE, Here

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
pytestmark = of_the_connector

SHOWN = ("more-rows", "recreated-with-4", "recreated-with-30", "expired-25-of-30", "partition-added", "deleted")
LIVE = [case for case in CASES if EVERY_CASE or (case.incident in SHOWN and case.committed and case.fail_on_data_loss)]


@pytest.fixture(scope="module")
def broker(kafka: str) -> Broker:
    return Broker(kafka)


@pytest.fixture(scope="module")
def driver(kafka_jars: str, spark: Any) -> Here:
    return Here(spark, cases.answer)


@pytest.mark.parametrize("case", LIVE, ids=lambda case: case.name)
def test_what_is_said_is_what_happens(case: Case, broker: Broker, driver: Here, tmp_path: Path) -> None:
    subscribe, checkpoint = case.make(broker, tmp_path / "checkpoint")
    job = case.job(subscribe, checkpoint, broker.servers)
    (source,) = ask_sources(open_checkpoint(str(checkpoint)), {0: job["options"]})
    assert isinstance(source.answer, KafkaNow)
    found = inspected(checkpoint, source.answer, SPARK)
    assert list(disagreements(case, found, driver.ask(job))) == []


OBEYED = [("recreated-with-15", False, 30), ("recreated-with-1-partition", True, 40), ("another-topic", True, 12)]
"""Incidents that `tests/live/remedies_followed.py` does not have: whether batch 1 was committed, and unread rows."""


@pytest.mark.parametrize(("incident", "committed", "rows"), OBEYED)
def test_obeying_the_advice_reads_every_row_that_is_there(
    incident: str, committed: bool, rows: int, broker: Broker, driver: Here, ckpt: Ckpt, tmp_path: Path
) -> None:
    case = Case(incident, committed)
    subscribe, checkpoint = case.make(broker, tmp_path / "checkpoint")
    given = {"kafka.bootstrap.servers": broker.servers, "subscribe": subscribe}
    asked = [word for key, value in given.items() for word in ("--source-options", f"0.{key}={value}")]
    document = ckpt("inspect", checkpoint, "--sources", *asked, "-o", "json").json()
    assert contract.disagreements(document) == []
    assert list(contract.contradictions(document)) == []
    seen = contract.keys_in(document)
    assert {key for key in contract.shapes() if key.startswith("sources[].live")} - seen == set()
    for number, call in enumerate(advised(checkpoint, given).commands()):
        done(call, number, tmp_path)
    said = driver.ask(case.job(subscribe, checkpoint, broker.servers))
    assert (said["error"], sum(count for _, count in said["batches"])) == (None, rows)


def test_asking_about_a_topic_does_not_make_it(broker: Broker, ckpt: Ckpt, tmp_path: Path) -> None:
    _, checkpoint = Case("deleted", True).make(broker, tmp_path / "checkpoint")
    options = {0: {"kafka.bootstrap.servers": broker.servers}}
    for _ in range(2):
        (source,) = ask_sources(open_checkpoint(str(checkpoint)), options)
        assert isinstance(source.answer, KafkaNow)
        assert {topic.id for topic in source.answer.topics.values()} == {None}


def test_a_login_that_a_broker_does_not_know_is_refused(broker: Broker, ckpt: Ckpt, tmp_path: Path) -> None:
    _, checkpoint = Case("more-rows", True).make(broker, tmp_path / "checkpoint")
    secret = tmp_path / "jaas"
    secret.write_text('a.b.PlainLoginModule required username="u" password="very-secret";')
    words = {"bootstrap.servers": broker.servers, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    typed = [f"0.kafka.{key}={value}" for key, value in {**words, "sasl.jaas.config": f"@{secret}"}.items()]
    run = ckpt("inspect", checkpoint, "--sources", *(word for one in typed for word in ("--source-options", one)))
    assert run.exit_code == 3
    assert "very-secret" not in run.unreached()


def test_topics_by_a_pattern(broker: Broker, tmp_path: Path) -> None:
    topic, checkpoint = Case("more-rows", True).make(broker, tmp_path / "checkpoint")
    broker.create(f"{topic}-more")
    options = {"kafka.bootstrap.servers": broker.servers, "subscribePattern": f"{topic}(-more)?"}
    (source,) = ask_sources(open_checkpoint(str(checkpoint)), {0: options})
    assert isinstance(source.answer, KafkaNow)
    assert source.answer.subscribed == frozenset({topic, f"{topic}-more"})
    (source,) = ask_sources(open_checkpoint(str(checkpoint)), {0: {**options, "subscribePattern": "other.*"}})
    assert source.not_asked is not None
    assert "does not match it" in source.not_asked
