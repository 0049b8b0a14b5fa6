"""A driver that copies one Kafka topic into another: JSON jobs and answers, a line each (see tests/oracle/record.py).

Its session gets the connector's jars from `CKPT_SPARK_JARS` and the broker from `CKPT_KAFKA`.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.oracle import observe, worker
from tests.spark import queries

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

PARTITIONS = 2
INTERVAL_MS = 2000
ASYNC = {"asyncProgressTrackingEnabled": "true", "asyncProgressTrackingCheckpointIntervalMs": str(INTERVAL_MS)}
PATIENCE_S = 120


def session(scratch: Path) -> Any:
    """A session with the Kafka connector."""
    jars = os.environ["CKPT_SPARK_JARS"]
    spark = queries.session(app="ckpt-kafka", spark__jars=jars, spark__local__dir=str(scratch / "local"))
    spark.sparkContext.setLogLevel("OFF")
    return spark


def fill(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Write the numbers 0 to `count` - 1 to a topic: number n becomes offset n // 2 of partition n % 2."""
    rows = spark.range(0, job["count"], 1, 1)  # one task keeps their order
    fields = "CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value", f"CAST(id % {PARTITIONS} AS INT) AS partition"
    rows.selectExpr(*fields).write.format("kafka").options(**_kafka(), topic=job["topic"]).save()
    return {}


def follow(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Start copying with asynchronous progress tracking, and let it run."""
    _copying(spark, job, per_batch=20).options(**ASYNC).trigger(processingTime="50 milliseconds").start()
    return {}


def resume(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Copy what is left with synchronous tracking: the batches that ran, and Spark's error."""
    handle, error = _copying(spark, job, per_batch=1500).trigger(availableNow=True).start(), None
    try:
        if not handle.awaitTermination(PATIENCE_S):
            error = "it does not end"
    except Exception as problem:
        error = str(problem)
    finally:
        with contextlib.suppress(Exception):
            handle.stop()
    batches = [
        {"batch": one["batchId"], "from": one["sources"][0]["startOffset"], "to": one["sources"][0]["endOffset"]}
        for one in observe.progress(handle)
    ]
    return {"batches": batches, "error": error}


def read(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Everything in a topic: partition, offset and text of each record."""
    topic = spark.read.format("kafka").options(**_kafka(), subscribe=job["topic"]).load()
    rows = topic.selectExpr("partition", "offset", "CAST(value AS STRING) AS value").collect()
    return {"records": [list(row) for row in rows]}


def _copying(spark: Any, job: dict[str, Any], per_batch: int) -> DataStreamWriter:
    reader = spark.readStream.format("kafka").options(**_kafka(), subscribe=job["from"], startingOffsets="earliest")
    rows = reader.options(maxOffsetsPerTrigger=per_batch, **job.get("options", {})).load()
    rows = rows.selectExpr("key", "concat_ws(' ', partition, offset, CAST(value AS STRING)) AS value")
    writer = rows.writeStream.format("kafka").options(**_kafka(), topic=job["to"])
    done: DataStreamWriter = writer.option("checkpointLocation", job["checkpoint"])
    return done


def _kafka() -> dict[str, str]:
    return {"kafka.bootstrap.servers": os.environ["CKPT_KAFKA"]}


_JOBS = {"fill": fill, "follow": follow, "resume": resume, "read": read}


def answer(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Do a job."""
    return _JOBS[job["do"]](spark, job)


if __name__ == "__main__":
    worker.serve(lambda spark, job, _: answer(spark, job), session)
