"""Starts a query on a checkpoint whose topic something has happened to: JSON jobs and answers, a line each."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from tests.changes.fixes.async_gap.kafka_query import session
from tests.restart.oracle import worker

WAITS = {
    "kafkaConsumer.pollTimeoutMs": "3000",
    "kafka.default.api.timeout.ms": "6000",
    "kafka.request.timeout.ms": "5000",
}
"""How long Kafka's consumer waits for rows that do not come, instead of 120 s, and for a partition, instead of 60 s."""


def answer(spark: Any, job: dict[str, Any]) -> dict[str, Any]:
    """The batches that ran, Spark's error, and the newest offsets file that is there afterwards."""
    checkpoint, own = Path(job["checkpoint"]), spark.newSession()
    reader = own.readStream.format("kafka").options(**WAITS, **job["options"])
    rows = reader.option("startingOffsets", "earliest").load().select("topic", "partition", "offset")
    error = None
    handle = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    try:
        handle.processAllAvailable()
    except Exception as problem:
        error = str(problem)
    finally:
        with contextlib.suppress(Exception):
            handle.stop()
    ran = [json.loads(one.json) if hasattr(one, "json") else one for one in handle.recentProgress]
    newest = max(int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*"))
    end = json.loads((checkpoint / "offsets" / str(newest)).read_text().splitlines()[2])
    batches = [[one["batchId"], one["numInputRows"]] for one in ran if one["numInputRows"] or one["batchId"] > 1]
    return {"error": error, "batches": batches, "newest": [newest, end]}


if __name__ == "__main__":
    worker.serve(lambda spark, job, _: answer(spark, job), session)
