"""Named streaming queries, startable under every pyspark from 3.5 to 4.3 without ckpt being installed.

The samples are made by them and the oracle restarts them, so a query here may never change its plan:
a checkpoint resumes only under the plan that wrote it. All but the file source read `rate-micro-batch`, whose
rows and offsets are the same in every run: batch N brings `ROWS` rows stamped `START_MS + N` seconds.
Under `trigger(availableNow=True)` one start of a `rate-micro-batch` query runs one new batch.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import pandas_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ROWS = 10
START_MS = 1_700_000_000_000
INPUTS = Path("/tmp/ckpt-samples/inputs")
KAFKA = "spark.ckpt.kafka"
"""The session setting that holds the bootstrap servers for the queries that need `kafka`."""

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
    own = spark.newSession()
    for key, value in {**query.conf, **(STATE_STORES[store] if store else {}), **(conf or {})}.items():
        own.conf.set(key, value)
    if query.inputs and not inputs.joinpath(query.name).is_dir():
        query.inputs(inputs / query.name)
    writer = query.build(own, inputs / query.name).writeStream.outputMode(query.output_mode)
    writer = writer.option("checkpointLocation", str(checkpoint)).options(**(options or {}))
    writer = writer.trigger(**(trigger or {"availableNow": True}))
    if query.sink_name:  # Python's writer has no name() as of 4.3
        writer._jwrite = writer._jwrite.name(query.sink_name)
    return writer.foreachBatch(sink).start() if callable(sink) else writer.format(sink).start()


def write_input_files(folder: Path, count: int = 12) -> None:
    """Write `count` JSON files of five rows, with fixed modification times so that they are read in order."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number in range(count):
        path = folder / f"part-{number:02}.json"
        rows = ({"id": number * 5 + row, "name": f"row {row}"} for row in range(5))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (START_MS / 1000 + number,) * 2)


def _rate(spark: SparkSession, rows: int = ROWS) -> DataFrame:
    """Rows (timestamp, value); `value` counts up from 0, one distinct timestamp a batch."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    return reader.option("numPartitions", 1).option("startTimestamp", START_MS).load()


def _keyed(spark: SparkSession, keys: int = 7) -> DataFrame:
    """Rows (timestamp, value, key) with `keys` different keys."""
    return _rate(spark).selectExpr("timestamp", "value", f"value % {keys} AS key")


def _stateless(spark: SparkSession, _: Path) -> DataFrame:
    return _rate(spark).selectExpr("value", "value * 2 AS twice")


def _two_sources(spark: SparkSession, _: Path) -> DataFrame:
    left = _rate(spark).selectExpr("'left' AS side", "value")
    return left.unionByName(_rate(spark, ROWS * 2).selectExpr("'right' AS side", "value"))


def _named_sources(spark: SparkSession, _: Path) -> DataFrame:
    def named(name: str, rows: int) -> DataFrame:
        reader = spark.readStream.name(name).format("rate-micro-batch").option("rowsPerBatch", rows)
        return reader.option("numPartitions", 1).option("startTimestamp", START_MS).load()

    return named("orders", ROWS).unionByName(named("refunds", ROWS * 2)).select("value")


def _file_source(spark: SparkSession, inputs: Path) -> DataFrame:
    return spark.readStream.schema("id BIGINT, name STRING").option("maxFilesPerTrigger", 1).json(str(inputs))


def _aggregation(spark: SparkSession, _: Path) -> DataFrame:
    return _keyed(spark).groupBy("key").agg({"*": "count", "value": "sum"})


def _windowed_aggregation(spark: SparkSession, _: Path) -> DataFrame:
    from pyspark.sql.functions import window

    late = _keyed(spark).withWatermark("timestamp", "2 seconds")
    return late.groupBy(window("timestamp", "2 seconds"), "key").agg({"*": "count", "value": "sum"})


def _dedup(spark: SparkSession, _: Path) -> DataFrame:
    return _keyed(spark, 25).dropDuplicates(["key"])


def _dedup_within_watermark(spark: SparkSession, _: Path) -> DataFrame:
    return _keyed(spark, 25).withWatermark("timestamp", "3 seconds").dropDuplicatesWithinWatermark(["key"])


def _join(spark: SparkSession, _: Path) -> DataFrame:
    from pyspark.sql.functions import expr

    left = _rate(spark).selectExpr("timestamp AS left_time", "value AS left_value")
    right = _rate(spark, ROWS // 2).selectExpr("timestamp AS right_time", "value * 2 AS right_value")
    within = expr(
        "left_value = right_value AND "
        "right_time BETWEEN left_time - INTERVAL 1 SECOND AND left_time + INTERVAL 1 SECOND"
    )
    left, right = left.withWatermark("left_time", "2 seconds"), right.withWatermark("right_time", "2 seconds")
    return left.join(right, within, "leftOuter")


def _session_window(spark: SparkSession, _: Path) -> DataFrame:
    from pyspark.sql.functions import session_window

    # Each key is seen every few batches, so that some sessions close while others stay open.
    rows = _rate(spark).selectExpr("timestamp", "value", "value DIV 4 % 10 AS key")
    rows = rows.withWatermark("timestamp", "1 seconds")
    return rows.groupBy(session_window("timestamp", "2 seconds"), "key").count()


def _pandas_with_state(spark: SparkSession, _: Path) -> DataFrame:
    late = _keyed(spark, 50).withWatermark("timestamp", "1 seconds")
    return late.groupBy("key").applyInPandasWithState(
        pandas_state.counting_function(),
        "key BIGINT, rows BIGINT, expired BOOLEAN",
        "rows BIGINT, last STRING",
        "append",
        "EventTimeTimeout",
    )


def _transform_with_state(spark: SparkSession, _: Path) -> DataFrame:
    return (
        _keyed(spark, 5)
        .groupBy("key")
        .transformWithStateInPandas(
            pandas_state.processing_time_processor(), "key BIGINT, rows BIGINT", "Append", "ProcessingTime"
        )
    )


def _transform_with_state_event_time(spark: SparkSession, _: Path) -> DataFrame:
    late = _keyed(spark, 5).withWatermark("timestamp", "1 seconds")
    return late.groupBy("key").transformWithStateInPandas(
        pandas_state.event_time_processor(), "key BIGINT, rows BIGINT", "Append", "EventTime"
    )


def _dedup_aggregation(spark: SparkSession, _: Path) -> DataFrame:
    return _keyed(spark, 25).dropDuplicates(["key"]).selectExpr("key % 4 AS part").groupBy("part").count()


def _limit(spark: SparkSession, _: Path) -> DataFrame:
    return _rate(spark).limit(25)


def _continuous_rate(spark: SparkSession, _: Path) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", 4).option("numPartitions", 2).load()


def _delta(spark: SparkSession, inputs: Path) -> DataFrame:
    return spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(inputs))


def _kafka(spark: SparkSession, _: Path) -> DataFrame:
    """The topic `orders` of the broker at the session setting `KAFKA`."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", spark.conf.get(KAFKA))
    reader = reader.option("subscribe", "orders").option("startingOffsets", "earliest")
    return reader.option("maxOffsetsPerTrigger", 20).load().select("key", "value")


_NO_IDLE_BATCHES = {_STREAMING + "noDataMicroBatches.enabled": "false"}

_EVOLUTION = {
    _STREAMING + "queryEvolution.enableSourceEvolution": "true",
    _STREAMING + "offsetLog.formatVersion": "2",
}

_ALL = (
    Query("stateless", _stateless, stateful=False),
    Query("two-sources", _two_sources, stateful=False),
    Query("named-sources", _named_sources, conf=_EVOLUTION, stateful=False, since="4.2"),
    Query(
        "named-sink",
        _stateless,
        conf={_STREAMING + "queryEvolution.enableSinkEvolution": "true"},
        stateful=False,
        sink_name="ledger",
        since="4.3",
    ),
    Query("file-source", _file_source, stateful=False, inputs=write_input_files),
    Query("aggregation", _aggregation, "update"),
    Query("windowed-aggregation", _windowed_aggregation),
    Query("dedup", _dedup),
    Query("dedup-within-watermark", _dedup_within_watermark),
    Query("join", _join),
    Query("session-window", _session_window),
    Query("pandas-with-state", _pandas_with_state),
    # Processing-time timers make Spark run batches without data for ever under availableNow.
    Query("transform-with-state", _transform_with_state, conf=_NO_IDLE_BATCHES, since="4.0"),
    Query("transform-with-state-event-time", _transform_with_state_event_time, since="4.0"),
    Query("dedup-aggregation", _dedup_aggregation, "update"),
    Query("limit", _limit),
    Query("continuous-rate", _continuous_rate, stateful=False),
    Query("delta", _delta, stateful=False, needs="delta"),
    Query("kafka", _kafka, stateful=False, needs="kafka"),
)

QUERIES: dict[str, Query] = {query.name: query for query in _ALL}
