"""What the runbook shows of Spark.

`python -m tests.changes.fixes.async_gap.runbook` writes it anew, from a real Kafka query.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docs.generate.sessions import RUNBOOK, WRITTEN, runbook
from tests.record.worker import Session, Worker
from tests.support.services.kafka import connector_jars, kafka_broker

ROLE = "kafka-copy"
TOPIC = "orders"  # that the sample read
RECORDS = 6000


def starting(driver: Session) -> Callable[[Path], str]:
    """What starts the query of the runbook, to which the topic holds the rest of the records."""

    def start(checkpoint: Path) -> str:
        job = {"do": "resume", "from": TOPIC, "to": "runbook", "checkpoint": str(checkpoint)}
        ran = driver.ask(job)
        if ran["error"] is not None:
            return f"pyspark.errors.exceptions.captured.StreamingQueryException: {_first_line(ran['error'])}"
        return "\n".join(_told(batch) for batch in ran["batches"])

    return start


def keeping_what_is_written(start: Callable[[Path], str], folder: Path) -> Callable[[Path], str]:
    """The same, and the log files that it adds to the checkpoint are copied to a folder."""

    def started(checkpoint: Path) -> str:
        before = set(checkpoint.glob("*/*"))
        output = start(checkpoint)
        shutil.rmtree(folder, ignore_errors=True)
        for log in ("offsets", "commits"):
            folder.joinpath(log).mkdir(parents=True)
            for file in set(checkpoint.joinpath(log).iterdir()) - before:
                shutil.copy2(file, folder / log)
        return output

    return started


def _first_line(error: str) -> str:
    return error.strip().splitlines()[0]


def _told(batch: dict[str, Any]) -> str:
    ends = [" ".join(f"{TOPIC}/{p}={offset}" for p, offset in batch[side][TOPIC].items()) for side in ("from", "to")]
    return f"batch {batch['batch']}: from {ends[0]} to {ends[1]}"


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, kafka_broker(Path(scratch)) as servers:
        environment = {"CKPT_SPARK_JARS": ",".join(map(str, connector_jars())), "CKPT_KAFKA": servers}
        with Worker(sys.executable, Path(scratch, "driver.log"), ROLE, environment) as driver:
            driver.ask({"do": "fill", "topic": TOPIC, "count": RECORDS})
            start = keeping_what_is_written(starting(driver), WRITTEN)
            RUNBOOK.write_text(runbook(start), encoding="utf-8")


if __name__ == "__main__":
    main()
