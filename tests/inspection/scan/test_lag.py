"""``ckpt scan --sources`` at a real broker: what each query has not read yet."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ckpt import open_checkpoint, scan
from ckpt.live.asking import ask_sources
from ckpt.live.records import KafkaNow
from tests.conftest import Ckpt
from tests.inspection.scan.test_scan import alone
from tests.live.kafka.cases import SILENT, Broker, Case
from tests.support.places import SAMPLES

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")


@pytest.mark.service
def test_the_lag_is_what_the_topic_has_beyond_the_latest_batch(kafka: str, tmp_path: Path) -> None:
    broker, given = Broker(kafka), {"kafka.bootstrap.servers": kafka}
    topic, checkpoint = Case("more-rows", True).make(broker, tmp_path / "query")
    end = json.loads((checkpoint / "offsets/1").read_text().splitlines()[-1])
    broker.fill(topic, 5)

    found = scan([str(tmp_path), str(SAMPLES / "stateless-4.2")], sources=bool(given), source_options=given)

    lags = {one.path: one.lag for one in found.checkpoints}
    assert lags[str(SAMPLES / "stateless-4.2")] is None
    (live,) = ask_sources(open_checkpoint(str(checkpoint)), {0: given})
    assert isinstance(live.answer, KafkaNow)
    ends = sum(one.latest for one in live.answer.partitions.values())
    assert lags[str(checkpoint)] == ends - sum(end[topic].values()) >= 10
    assert [one.sources_error for one in found.checkpoints] == [None, None]


@pytest.mark.slow
def test_brokers_that_do_not_answer_are_said_and_the_rest_is_as_without_them() -> None:
    path = str(SAMPLES / "kafka-4.2")
    (one,) = scan(path, sources=True, source_options={"kafka.bootstrap.servers": "127.0.0.1:1"}).checkpoints
    assert one.lag is None
    assert one.sources_error is not None
    assert "127.0.0.1:1" in one.sources_error
    assert (one.verdict, one.codes, one.error) == (alone(path, {}).verdict, (), None)


@pytest.mark.service
def test_positions_are_committed_to_groups_that_only_ckpt_uses(kafka: str, ckpt: Ckpt, tmp_path: Path) -> None:
    broker, asked = Broker(kafka), ("--source-options", f"kafka.bootstrap.servers={kafka}")
    topic, checkpoint = Case("more-rows", True).make(broker, tmp_path / "orders")
    end = json.loads((checkpoint / "offsets/1").read_text().splitlines()[-1])[topic]

    for prefix, rows in (("lag-", 0), ("lag-", 3)):  # twice: it knows its own group again
        broker.fill(topic, rows)
        (one,) = ckpt("offsets", "commit", checkpoint, *asked, "--group", prefix, "-o", "json").json()["groups"]
        assert (one["group"], one["refused"]) == ("lag-orders", None)
        assert committed(kafka, "lag-orders", topic) == {int(part): offset for part, offset in end.items()}
        (row,) = ckpt("scan", checkpoint, "--sources", *asked, "-o", "json").json()["checkpoints"]
        assert row["lag"] == consumed(kafka, "lag-orders", topic, commit=False) > rows

    consumed(kafka, "their-orders", topic, commit=True)
    before = committed(kafka, "their-orders", topic)
    refused = ckpt("offsets", "commit", checkpoint, *asked, "--group", "their-", "-o", "json")
    assert refused.exit_code == 3
    assert "ckpt did not commit" in refused.json()["groups"][0]["refused"]
    assert committed(kafka, "their-orders", topic) == before

    shutil.copytree(checkpoint, tmp_path / "copies" / "orders")
    both = ckpt("offsets", "commit", checkpoint, tmp_path / "copies", *asked, "--group", "two-", "-o", "json").json()
    assert ["same name" in group["refused"] for group in both["groups"]] == [True, True]
    assert committed(kafka, "two-orders", topic) == {}


@pytest.mark.service
def test_a_group_with_members_is_left_alone(kafka: str, ckpt: Ckpt, tmp_path: Path) -> None:
    topic, checkpoint = Case("more-rows", True).make(Broker(kafka), tmp_path / "orders")
    with closing(reader(kafka, "busy-orders")) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        asked = ("--source-options", f"kafka.bootstrap.servers={kafka}", "--group", "busy-")
        (one,) = ckpt("offsets", "commit", checkpoint, *asked, "-o", "json").json()["groups"]
    assert one["refused"] == "group busy-orders has members, so it belongs to a consumer: choose another prefix"
    assert committed(kafka, "busy-orders", topic) == {}


@pytest.mark.service
def test_a_group_is_not_given_a_name_that_does_something_to_a_terminal(kafka: str, ckpt: Ckpt, tmp_path: Path) -> None:
    _, checkpoint = Case("more-rows", True).make(Broker(kafka), tmp_path / "a\x1b[31m")
    asked = ("--source-options", f"kafka.bootstrap.servers={kafka}", "--group", "named-")
    (one,) = ckpt("offsets", "commit", checkpoint, *asked, "-o", "json").json()["groups"]
    assert "unprintable name" in one["refused"]


def reader(kafka: str, group: str) -> Any:
    from confluent_kafka import Consumer

    given = {"bootstrap.servers": kafka, "group.id": group, "enable.auto.commit": False}
    return Consumer({**given, "auto.offset.reset": "earliest"}, logger=SILENT)


def consumed(kafka: str, group: str, topic: str, *, commit: bool) -> int:
    """How many rows a consumer of the group still finds."""
    from confluent_kafka import TopicPartition

    with closing(reader(kafka, group)) as consumer:
        consumer.assign([TopicPartition(topic, part) for part in range(2)])
        rows, quiet = 0, 0
        while quiet < 5:
            message = consumer.poll(0.2)
            rows, quiet = (rows + 1, 0) if message is not None else (rows, quiet + 1)
        if commit:
            consumer.commit(asynchronous=False)
        return rows


def committed(kafka: str, group: str, topic: str) -> dict[int, int]:
    from confluent_kafka import TopicPartition

    with closing(reader(kafka, group)) as consumer:
        found = consumer.committed([TopicPartition(topic, part) for part in range(2)], 10)
        return {one.partition: one.offset for one in found if one.offset >= 0}
