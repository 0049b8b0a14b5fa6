"""The topics of a broker that the sessions of tests read, and the settings under which they find it."""

from __future__ import annotations

import os
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
