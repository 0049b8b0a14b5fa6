"""Named streaming queries, startable under every pyspark from 3.5 to 4.3 without ckpt being installed.

The samples are made by them and the oracle restarts them, so a query here may never change its plan:
a checkpoint resumes only under the plan that wrote it; `plans.py` has the plans.
Under `trigger(availableNow=True)` one start of a `rate-micro-batch` query runs one new batch.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import plans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

INPUTS = Path("/tmp/ckpt-samples/inputs")

_STREAMING = "spark.sql.streaming."
_ROCKSDB_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_HDFS_PROVIDER = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
_CHANGELOG = _STREAMING + "stateStore.rocksdb.changelogCheckpointing.enabled"
_FORMAT = _STREAMING + "stateStore.checkpointFormatVersion"

STATE_STORES: dict[str, dict[str, str]] = {
    "hdfs": {_STREAMING + "stateStore.providerClass": _HDFS_PROVIDER},
    "rocksdb": {_STREAMING + "stateStore.providerClass": _ROCKSDB_PROVIDER, _CHANGELOG: "false"},
    "changelog": {_STREAMING + "stateStore.providerClass": _ROCKSDB_PROVIDER, _CHANGELOG: "true"},
    "format2": {_STREAMING + "stateStore.providerClass": _ROCKSDB_PROVIDER, _CHANGELOG: "true", _FORMAT: "2"},
}
"""Session settings for each kind of state store; `format2` is state store checkpoint format 2 (4.2+)."""


@dataclass(frozen=True)
class Query:
    """A streaming query by name.

    `build` gives its plan; `inputs` writes the files that it reads, if it reads files; `needs` names the
    service or jars (`kafka`, `delta`) that a session must have besides Spark; `since` is the first Spark
    version that has it."""

    name: str
    build: Callable[[SparkSession, Path], DataFrame]
    output_mode: str = "append"
    conf: Mapping[str, str] = field(default_factory=dict)
    stateful: bool = True
    inputs: Callable[[Path], None] | None = None
    since: str = "3.5"
    needs: str = ""
    sink_name: str | None = None


def session(app: str = "ckpt-samples", master: str = "local[2]", **builder_conf: str) -> SparkSession:
    """Return a small local session, tuned to come up fast: batches of ten rows are not worth compiling for.

    `builder_conf` keys use `__` for `.` and win over the settings here.
    """
    from pyspark.sql import SparkSession

    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.ui.showConsoleProgress": "false",
    } | {key.replace("__", "."): value for key, value in builder_conf.items()}
    builder = SparkSession.builder.appName(app).master(master)
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def own_session(
    spark: SparkSession, conf: Mapping[str, str] | None = None, partitions: int | None = None
) -> SparkSession:
    """Open a session with these settings, which no other query sees."""
    own = spark.newSession()
    shuffled = {} if partitions is None else {"spark.sql.shuffle.partitions": str(partitions)}
    for key, value in {**shuffled, **(conf or {})}.items():
        own.conf.set(key, value)
    return own


def drain(
    frame: DataFrame,
    checkpoint: Path | str,
    output_mode: str = "append",
    sink: str | Callable[[DataFrame, int], Any] | None = None,
    **options: str,
) -> dict[int, list[Any]]:
    """Run a query to the end of what is there: the rows of each batch, unless there is another sink for them."""
    batches: dict[int, list[Any]] = {}
    writer = frame.writeStream.outputMode(output_mode).option("checkpointLocation", str(checkpoint)).options(**options)
    writer = writer.trigger(availableNow=True)
    sink = sink or _keep_in(batches)
    _wait(writer.foreachBatch(sink).start() if callable(sink) else writer.format(sink).start())
    return batches


def run(spark: SparkSession, query: Query, checkpoint: Path | str, **how: Any) -> dict[int, list[Any]]:
    """Start a query, as `start` does, and wait for its end: the rows of each batch, unless they have another sink."""
    batches: dict[int, list[Any]] = {}
    _wait(start(spark, query, checkpoint, **{"sink": _keep_in(batches), **how}))
    return batches


def _keep_in(batches: dict[int, list[Any]]) -> Callable[[DataFrame, int], None]:
    """Return a function for foreachBatch."""

    def keep(rows: DataFrame, number: int) -> None:
        batches[number] = rows.collect()

    return keep


def _wait(handle: StreamingQuery) -> None:
    try:
        assert handle.awaitTermination(300), "it does not end"
    finally:
        handle.stop()


def start(
    spark: SparkSession,
    query: Query,
    checkpoint: Path | str,
    *,
    store: str | None = None,
    sink: str | Callable[[DataFrame, int], None] = "noop",
    trigger: Mapping[str, Any] | None = None,
    options: Mapping[str, str] | None = None,
    conf: Mapping[str, str] | None = None,
    inputs: Path = INPUTS,
) -> StreamingQuery:
    """Start `query` on `checkpoint` in a session of its own, so that no setting leaks into the next query.

    `store` names one of `STATE_STORES`; `sink` is a format or a foreachBatch function; `trigger` holds the
    arguments of `DataStreamWriter.trigger` (default: `availableNow`); `conf` is set last. Input files are
    written when missing.
    """
    own = own_session(spark, {**query.conf, **(STATE_STORES[store] if store else {}), **(conf or {})})
    if query.inputs and not inputs.joinpath(query.name).is_dir():
        query.inputs(inputs / query.name)
    writer = query.build(own, inputs / query.name).writeStream.outputMode(query.output_mode)
    writer = writer.option("checkpointLocation", str(checkpoint)).options(**(options or {}))
    writer = _set_trigger(spark, writer, trigger or {"availableNow": True})
    if query.sink_name:  # Python's writer has no name() as of 4.3
        writer._jwrite = writer._jwrite.name(query.sink_name)
    return writer.foreachBatch(sink).start() if callable(sink) else writer.format(sink).start()


def _set_trigger(spark: SparkSession, writer: Any, trigger: Mapping[str, Any]) -> Any:
    """Set a trigger; that of real-time mode through the JVM, where this Spark has it and Python has not (4.1)."""
    if "realTime" not in trigger or "realTime" in inspect.signature(writer.trigger).parameters:
        return writer.trigger(**trigger)
    of_jvm = spark.sparkContext._jvm.org.apache.spark.sql.execution.streaming.RealTimeTrigger
    writer._jwrite = writer._jwrite.trigger(of_jvm.apply(trigger["realTime"]))
    return writer


def write_input_files(folder: Path, count: int = 12) -> None:
    """Write `count` JSON files of five rows, with fixed modification times so that they are read in order."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number in range(count):
        path = folder / f"part-{number:02}.json"
        rows = ({"id": number * 5 + row, "name": f"row {row}"} for row in range(5))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (plans.START_MS / 1000 + number,) * 2)


_NO_IDLE_BATCHES = {_STREAMING + "noDataMicroBatches.enabled": "false"}

_EVOLUTION = {
    _STREAMING + "queryEvolution.enableSourceEvolution": "true",
    _STREAMING + "offsetLog.formatVersion": "2",
}

_ALL = (
    Query("stateless", plans.stateless, stateful=False),
    Query("two-sources", plans.two_sources, stateful=False),
    Query("named-sources", plans.named_sources, conf=_EVOLUTION, stateful=False, since="4.2"),
    Query(
        "named-sink",
        plans.stateless,
        conf={_STREAMING + "queryEvolution.enableSinkEvolution": "true"},
        stateful=False,
        sink_name="ledger",
        since="4.3",
    ),
    Query("file-source", plans.file_source, stateful=False, inputs=write_input_files),
    Query(
        "named-file-sources",
        plans.named_file_sources,
        conf=_EVOLUTION,
        stateful=False,
        inputs=write_input_files,
        since="4.2",
    ),
    Query("aggregation", plans.aggregation, "update"),
    Query("windowed-aggregation", plans.windowed_aggregation),
    Query("dedup", plans.dedup),
    Query("dedup-within-watermark", plans.dedup_within_watermark),
    Query("join", plans.join),
    Query("session-window", plans.session_window),
    Query("pandas-with-state", plans.pandas_with_state),
    # Processing-time timers make Spark run batches without data for ever under availableNow.
    Query("transform-with-state", plans.transform_with_state, conf=_NO_IDLE_BATCHES, since="4.0"),
    Query("transform-with-state-event-time", plans.transform_with_state_event_time, since="4.0"),
    Query("collecting", plans.collecting, since="4.0"),
    Query("dedup-aggregation", plans.dedup_aggregation, "update"),
    Query("limit", plans.limit),
    Query("continuous-rate", plans.continuous_rate, stateful=False),
    Query("delta", plans.delta, stateful=False, needs="delta"),
    Query("kafka", plans.kafka(), stateful=False, needs="kafka"),
    Query("kafka-orders", plans.kafka_orders, "update", stateful=False, needs="kafka"),
    Query("kafka-counts", plans.kafka_counts, "update", needs="kafka"),
    Query("kafka-aggregation", plans.kafka_aggregation, "update", needs="kafka"),
    Query("kafka-appended", plans.kafka_orders, stateful=False, needs="kafka"),
    Query("kafka-join", plans.kafka_join, needs="kafka"),
    Query("kafka-dedup", plans.kafka_dedup, "update", needs="kafka"),
    Query("kafka-sessions", plans.kafka_sessions, needs="kafka"),
    Query("kafka-lenient", plans.kafka(failOnDataLoss="false"), stateful=False, needs="kafka"),
    Query("kafka-renamed", plans.kafka("renamed"), stateful=False, needs="kafka"),
    Query("kafka-renamed-lenient", plans.kafka("renamed", failOnDataLoss="false"), stateful=False, needs="kafka"),
    Query("joined-by-spark-2-inner", plans.joined_by_spark_2("inner")),
    Query("joined-by-spark-2-outer", plans.joined_by_spark_2("leftOuter")),
    Query("joined-by-spark-2-semi", plans.joined_by_spark_2("leftSemi")),
    Query("decimals-of-spark-2", plans.decimals_of_spark_2, "complete"),
    Query("dedup-of-spark-2", plans.dedup_of_spark_2),
    Query("counts-of-spark-2", plans.counts_of_spark_2, "update"),
)

QUERIES: dict[str, Query] = {query.name: query for query in _ALL}
