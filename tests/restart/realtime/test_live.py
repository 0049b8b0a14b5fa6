"""Six recorded starts on the installed Spark: they end as recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.changes.fixes.async_gap.test_kafka_incident import pytestmark as of_the_connector
from tests.restart.oracle.starts import RECORDS
from tests.restart.oracle.test_live import essence
from tests.restart.realtime import cases, starts
from tests.restart.realtime.record import ANSWERS
from tests.support.services.kafka import kafka_broker
from tests.support.spark import plans, topics

pytestmark = of_the_connector

LIVE = (
    "real-time-4.2-planned/realtime",
    "real-time-4.2-planned/sync",
    "real-time-4.3-uncommitted/realtime",
    "real-time-4.3-predecessor-missing/realtime",
    "kafka-4.2-all-uncommitted/realtime",
    "new-append/realtime",
)


@pytest.fixture(scope="module")
def broker(kafka_jars: str, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker of its own, whose topic `orders` has what the recorded starts had."""
    with kafka_broker(tmp_path_factory.mktemp("broker")) as at, pytest.MonkeyPatch.context() as patch:
        patch.setenv(topics.BROKER, at)
        topics.fill(spark, "orders", RECORDS)
        yield at


@pytest.mark.parametrize("name", LIVE)
def test_spark_still_answers_as_recorded(spark: Any, broker: str, name: str, tmp_path: Path) -> None:
    minor = ".".join(spark.version.split(".")[:2])
    start = next(start for start in cases.STARTS if start.name == name)
    there = replace(start, conf={**start.conf, plans.KAFKA: broker})
    answer = starts.run(spark, there, tmp_path / "ckpt-oracle-live")
    assert essence(answer) == essence(ANSWERS.read(minor)["answers"][name])
