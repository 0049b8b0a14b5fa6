"""The topics of a broker that the sessions of tests read, and the settings under which they find it."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

from . import plans

JARS, BROKER = "CKPT_SPARK_JARS", "CKPT_KAFKA"
"""Environment variables: the connector's jars, and `host:port` of the broker."""
PARTITIONS = 2


def options() -> dict[str, str]:
    """What readers and writers of Kafka need."""
    return {"kafka.bootstrap.servers": os.environ[BROKER]}


def settings() -> dict[str, str]:
    """Settings of a session that runs the queries which need Kafka; none without a broker."""
    return {"spark.jars": os.environ[JARS], plans.KAFKA: os.environ[BROKER]} if BROKER in os.environ else {}


def fill(spark: Any, topic: str, count: int, first: int = 0) -> None:
    """Write the numbers `first` to `count` - 1 to a topic: number n becomes offset n // 2 of partition n % 2."""
    rows = spark.range(first, count, 1, 1)  # one task keeps their order
    fields = "CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value", f"CAST(id % {PARTITIONS} AS INT) AS partition"
    rows.selectExpr(*fields).write.format("kafka").options(**options(), topic=topic).save()


def read(topic: str) -> list[tuple[int, int, str]]:
    """Partition, offset and text of every record of a topic, without a job of Spark."""
    from confluent_kafka import Consumer, TopicPartition

    parts = [TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)]
    with closing(Consumer({"bootstrap.servers": os.environ[BROKER], "group.id": "tests"})) as consumer:
        consumer.assign(parts)
        left = sum(consumer.get_watermark_offsets(part, timeout=30)[1] for part in parts)
        records: list[tuple[int, int, str]] = []
        while len(records) < left:
            batch = consumer.consume(left - len(records), timeout=30)
            assert batch, f"{left - len(records)} records of {topic} do not come"
            for message in batch:
                assert message.error() is None, message.error()
                records.append((message.partition(), message.offset(), message.value().decode()))
    return records
