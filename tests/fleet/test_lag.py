"""``ckpt scan --sources`` at a real broker: what each query has not read yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ckpt
from tests.fleet.test_scan import alone
from tests.live.cases import Broker, Case
from tests.places import SAMPLES

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")


@pytest.mark.service
def test_the_lag_is_what_the_topic_has_beyond_the_latest_batch(kafka: str, tmp_path: Path) -> None:
    broker, given = Broker(kafka), {"kafka.bootstrap.servers": kafka}
    topic, checkpoint = Case("more-rows", True).make(broker, tmp_path / "query")
    end = json.loads((checkpoint / "offsets/1").read_text().splitlines()[-1])
    broker.fill(topic, 5)

    found = ckpt.scan([str(tmp_path), str(SAMPLES / "stateless-4.2")], kafka_options=given)

    lags = {one.path: one.lag for one in found.checkpoints}
    assert lags[str(SAMPLES / "stateless-4.2")] is None
    (live,) = ckpt.ask_sources(ckpt.open_checkpoint(str(checkpoint)), {0: given})
    assert live.kafka is not None
    ends = sum(one.latest for one in live.kafka.partitions.values())
    assert lags[str(checkpoint)] == ends - sum(end[topic].values()) >= 10
    assert [one.sources_error for one in found.checkpoints] == [None, None]


@pytest.mark.slow
def test_brokers_that_do_not_answer_are_said_and_the_rest_is_as_without_them() -> None:
    path = str(SAMPLES / "kafka-4.2")
    (one,) = ckpt.scan(path, kafka_options={"kafka.bootstrap.servers": "127.0.0.1:1"}).checkpoints
    assert one.lag is None
    assert one.sources_error is not None
    assert "127.0.0.1:1" in one.sources_error
    assert (one.verdict, one.codes, one.error) == (alone(path, {}).verdict, (), None)
