"""Makes samples inside a Spark interpreter: `python -m tests.support.spark.making NAME ...` from the repository root.

Started by `sample_checkpoints/make.py`, once for each Spark version and set of jars; each sample is written
to `ORIGIN / name`. Jars come in `CKPT_SPARK_JARS`, Kafka's bootstrap servers in `CKPT_KAFKA`.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .plans import KAFKA
from .queries import INPUTS, QUERIES, session, start
from .samples import ORIGIN, SAMPLES, Sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_ASYNC = {
    "asyncProgressTrackingEnabled": "true",
    "asyncProgressTrackingCheckpointIntervalMs": "2000",
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}
_PATIENCE_S = 300


def _launch(spark: SparkSession, sample: Sample, checkpoint: Path, **more: Any) -> StreamingQuery:
    servers = os.environ.get("CKPT_KAFKA")
    conf = {**sample.conf, **({KAFKA: servers} if servers else {})}
    return start(spark, QUERIES[sample.query], checkpoint, store=sample.store, conf=conf, **more)


def _wait_for_commit(query: StreamingQuery, checkpoint: Path, batch: int, after_gap: bool = False) -> None:
    """Wait for a commit of `batch` or a later one; with `after_gap`, for one whose predecessor was not logged."""
    deadline = time.monotonic() + _PATIENCE_S

    def done() -> bool:
        committed = {int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")}
        latest = max(committed, default=-1)
        return latest >= batch and not (after_gap and latest - 1 in committed)

    while not done():
        if not query.isActive or time.monotonic() > deadline:
            raise RuntimeError(f"no commit of batch {batch} in {checkpoint}: {query.exception()}")
        time.sleep(0.05)


def _starts(spark: SparkSession, sample: Sample, checkpoint: Path) -> None:
    for _ in range(sample.count):
        query = _launch(spark, sample, checkpoint)
        if not query.awaitTermination(_PATIENCE_S):
            raise TimeoutError(f"{sample.name} does not end")


def _steady(spark: SparkSession, sample: Sample, checkpoint: Path) -> None:
    query = _launch(spark, sample, checkpoint, trigger={"processingTime": "3 seconds"})
    _wait_for_commit(query, checkpoint, sample.count)
    time.sleep(0.3)
    query.stop()


def _killed(spark: SparkSession, sample: Sample, checkpoint: Path) -> None:
    """Kill the JVM inside batch `count`, after its rows were read and its state was written."""
    jvm = spark.sparkContext._gateway.proc

    def die(rows: DataFrame, batch: int) -> None:
        rows.collect()
        if batch == sample.count:
            os.kill(jvm.pid, signal.SIGKILL)

    _launch(spark, sample, checkpoint, sink=die, trigger={"processingTime": "1 second"})
    jvm.wait(_PATIENCE_S)


def _async(spark: SparkSession, sample: Sample, checkpoint: Path) -> None:
    options, sink, feed = dict(_ASYNC), "noop", None
    if QUERIES[sample.query].needs == "kafka":
        servers = os.environ["CKPT_KAFKA"]
        options |= {"kafka.bootstrap.servers": servers, "topic": "copies"}
        sink, feed = "kafka", _feed_orders(spark, servers)
    trigger = {"processingTime": "150 milliseconds"}
    query = _launch(spark, sample, checkpoint, options=options, sink=sink, trigger=trigger)
    _wait_for_commit(query, checkpoint, sample.count, after_gap=True)
    query.stop()
    if feed:
        feed.stop()


def _continuous(spark: SparkSession, sample: Sample, checkpoint: Path) -> None:
    query = _launch(spark, sample, checkpoint, sink="console", trigger={"continuous": "1 second"})
    time.sleep(sample.count)
    query.stop()


def _real_time(spark: SparkSession, sample: Sample, checkpoint: Path) -> None:
    """Each batch takes as long as the trigger says, and is logged when it is over."""
    query = _launch(spark, sample, checkpoint, sink="console", trigger={"realTime": "5 seconds"})
    _wait_for_commit(query, checkpoint, sample.count)
    query.stop()


RUNS: dict[str, Callable[[SparkSession, Sample, Path], None]] = {
    "starts": _starts,
    "steady": _steady,
    "killed": _killed,
    "async": _async,
    "continuous": _continuous,
    "real-time": _real_time,
}


def _feed_orders(spark: SparkSession, servers: str) -> StreamingQuery:
    """Start writing to the topic `orders` without end."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 40).load()
    writer = rows.selectExpr("CAST(value AS STRING) AS key", "CAST(timestamp AS STRING) AS value").writeStream
    writer = writer.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", "orders")
    scratch = ORIGIN / "local" / "feed"
    shutil.rmtree(scratch, ignore_errors=True)
    return writer.option("checkpointLocation", str(scratch)).trigger(processingTime="200 milliseconds").start()


def _prepare_kafka(spark: SparkSession) -> None:
    """Put 100 rows into the topic `orders`, once."""
    rows = spark.range(100).selectExpr("CAST(id AS STRING) AS key", "CAST(id * 2 AS STRING) AS value")
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", os.environ["CKPT_KAFKA"])
    writer.option("topic", "orders").save()


def _prepare_delta(spark: SparkSession) -> None:
    """Make the Delta table that the query reads: five versions, of which the first adds two files."""
    shutil.rmtree(INPUTS / "delta", ignore_errors=True)
    for version in range(5):
        rows = spark.range(version * 10, version * 10 + 10).repartition(2 if version == 0 else 1)
        rows.write.format("delta").mode("append").save(str(INPUTS / "delta"))


_PREPARATIONS = {"kafka": _prepare_kafka, "delta": _prepare_delta, "": lambda _: None}


_MASTER = "local[6]"  # real-time mode needs a slot for each partition of each stage


def _session(needs: str) -> SparkSession:
    conf = {
        "spark__local__dir": str(ORIGIN / "local"),
        "spark__sql__warehouse__dir": str(ORIGIN / "warehouse"),
        "spark__sql__streaming__stateStore__maintenanceInterval": "300ms",
        "spark__python__authenticate__socketTimeout": "120s",
    }
    if needs == "delta":
        conf |= {
            "spark__jars__packages": "io.delta:delta-spark_4.2_2.13:4.4.0",
            "spark__sql__extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark__sql__catalog__spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
    elif needs:
        conf["spark__jars"] = os.environ["CKPT_SPARK_JARS"]
    spark = session(master=_MASTER, **conf)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main(names: list[str]) -> int:
    """Make the samples called `names`, which share a Spark version and its jars; return how many failed."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    chosen = [sample for sample in SAMPLES if sample.name in names]
    (needs,) = {QUERIES[sample.query].needs for sample in chosen}
    spark = _session(needs)
    _PREPARATIONS[needs](spark)
    failed = 0
    for sample in chosen:
        began = time.monotonic()
        shutil.rmtree(ORIGIN / sample.name, ignore_errors=True)
        try:
            RUNS[sample.run](spark, sample, ORIGIN / sample.name)
        except Exception:
            failed += 1
            traceback.print_exc()
        sys.stderr.write(f"{sample.name}: {time.monotonic() - began:.0f} s\n")
    return failed


if __name__ == "__main__":
    status = main(sys.argv[1:])
    os._exit(status)  # a killed JVM cannot be asked to stop; a living one ends with its parent
