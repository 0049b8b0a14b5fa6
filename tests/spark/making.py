"""Makes samples inside a Spark interpreter: `python -m tests.spark.making VERSION NAME ...` from the repository root.

Started by `sample_checkpoints/make.py`, once for each Spark version and set of jars. Each sample is written to
`ORIGIN / name` and what the state reader says of it to `ORIGIN / "answers" / name.json`.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .queries import QUERIES, session, start
from .samples import ORIGIN, SAMPLES, Sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ASYNC = {
    "asyncProgressTrackingEnabled": "true",
    "asyncProgressTrackingCheckpointIntervalMs": "1000",
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}
_PATIENCE_S = 300


def _wait_for_commit(checkpoint: Path, batch: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    commits = checkpoint / "commits"
    while not any(int(path.name) >= batch for path in commits.glob("[0-9]*")):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no commit of batch {batch} in {checkpoint}")
        time.sleep(0.05)


def _starts(spark: SparkSession, sample: Sample, checkpoint: Path) -> None:
    for _ in range(sample.count):
        query = start(spark, QUERIES[sample.query], checkpoint, store=sample.store, conf=sample.conf)
        if not query.awaitTermination(_PATIENCE_S):
            raise TimeoutError(f"{sample.name} does not end")


def _steady(spark: SparkSession, sample: Sample, checkpoint: Path) -> None:
    query = start(
        spark,
        QUERIES[sample.query],
        checkpoint,
        store=sample.store,
        conf=sample.conf,
        trigger={"processingTime": "2 seconds"},
    )
    _wait_for_commit(checkpoint, sample.count)
    time.sleep(0.5)
    query.stop()


def _killed(spark: SparkSession, sample: Sample, checkpoint: Path) -> None:
    """Kill the JVM inside batch `count`, after its rows were read and its state was written; does not return."""

    def die(rows: DataFrame, batch: int) -> None:
        rows.collect()
        if batch == sample.count:
            os.kill(jvm, signal.SIGKILL)

    jvm = spark.sparkContext._gateway.proc.pid
    start(
        spark,
        QUERIES[sample.query],
        checkpoint,
        store=sample.store,
        conf=sample.conf,
        sink=die,
        trigger={"processingTime": "1 second"},
    )
    deadline = time.monotonic() + _PATIENCE_S
    while spark.sparkContext._gateway.proc.poll() is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{sample.name} was not killed")
        time.sleep(0.1)
    os._exit(0)


def _async(spark: SparkSession, sample: Sample, checkpoint: Path) -> None:
    query = start(
        spark,
        QUERIES[sample.query],
        checkpoint,
        conf=sample.conf,
        options=_ASYNC,
        trigger={"processingTime": "150 milliseconds"},
    )
    _wait_for_commit(checkpoint, sample.count)
    query.stop()


def _continuous(spark: SparkSession, sample: Sample, checkpoint: Path) -> None:
    query = start(
        spark, QUERIES[sample.query], checkpoint, sink="console", trigger={"continuous": "1 second"}
    )
    time.sleep(sample.count)
    query.stop()


RUNS: dict[str, Callable[[SparkSession, Sample, Path], None]] = {
    "starts": _starts,
    "steady": _steady,
    "killed": _killed,
    "async": _async,
    "continuous": _continuous,
}


def main(names: list[str]) -> None:
    """Make the samples called `names`, which share a Spark version and a set of jars."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session(
        spark__local__dir=str(ORIGIN / "local"),
        spark__sql__warehouse__dir=str(ORIGIN / "warehouse"),
        spark__sql__streaming__stateStore__maintenanceInterval="300ms",
    )
    spark.sparkContext.setLogLevel("ERROR")
    for sample in SAMPLES:
        if sample.name in names:
            checkpoint = ORIGIN / sample.name
            shutil.rmtree(checkpoint, ignore_errors=True)
            RUNS[sample.run](spark, sample, checkpoint)
            print(f"{sample.name}: made by Spark {spark.version}", file=sys.stderr)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
