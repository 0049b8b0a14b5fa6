"""A driver that copies one Kafka topic into another: a role of `tests/record/process.py`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.restart.oracle import observe
from tests.support.spark import topics

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

INTERVAL_MS = 2000
ASYNC = {"asyncProgressTrackingEnabled": "true", "asyncProgressTrackingCheckpointIntervalMs": str(INTERVAL_MS)}
PATIENCE_S = 120


def fill(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Write the numbers 0 to `count` - 1 to a topic."""
    topics.fill(spark, job["topic"], job["count"])
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


def _copying(spark: Any, job: dict[str, Any], per_batch: int) -> DataStreamWriter:
    reader = spark.readStream.format("kafka").options(
        **topics.options(), subscribe=job["from"], startingOffsets="earliest"
    )
    rows = reader.options(maxOffsetsPerTrigger=per_batch, **job.get("options", {})).load()
    rows = rows.selectExpr("key", "concat_ws(' ', partition, offset, CAST(value AS STRING)) AS value")
    writer = rows.writeStream.format("kafka").options(**topics.options(), topic=job["to"])
    done: DataStreamWriter = writer.option("checkpointLocation", job["checkpoint"])
    return done


_JOBS = {"fill": fill, "follow": follow, "resume": resume}


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    return _JOBS[job["do"]](spark, job)
