"""The checkpoints under `sample_checkpoints/`, as data: which query wrote each and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "sample_checkpoints"
GOLDENS = FOLDER.parents[1] / "shared" / "golden"
"""Checkpoints from Spark's own tests. They lie beside the repository on some machines and are no part of it."""
ORIGIN = Path("/tmp/ckpt-samples")
"""Where the samples were written: `ORIGIN / name`. Paths inside them begin so."""


@dataclass(frozen=True)
class Sample:
    """A checkpoint as Spark left it.

    `run` is how it came about: `starts` starts the query `count` times with `availableNow`; `steady` runs it
    once, with a trigger every two seconds, up to batch `count`, which gives the maintenance thread time for
    snapshots; `killed` runs it until SIGKILL inside batch `count`; `async` tracks progress asynchronously at
    least up to batch `count`; `continuous` runs it for `count` seconds with the continuous trigger;
    `real-time` runs it in real-time mode up to batch `count`.
    """

    name: str
    spark: str
    query: str
    about: str
    store: str | None = None
    run: str = "starts"
    count: int = 6
    conf: Mapping[str, str] = field(default_factory=dict)


def _join_format(version: int) -> dict[str, str]:
    return {"spark.sql.streaming.join.stateFormatVersion": str(version)}


_SNAPSHOTS = {"spark.sql.streaming.stateStore.minDeltasForSnapshot": "3"}
_OFFSETS_V2 = {"spark.sql.streaming.offsetLog.formatVersion": "2"}
_SINK_EVOLUTION = {"spark.sql.streaming.queryEvolution.enableSinkEvolution": "true"}
_AVRO = {"spark.sql.streaming.stateStore.encodingFormat": "avro"}
_CLEAN = "Clean stop"
_KILLED = "SIGKILLed inside the last batch: planned, not committed"

SAMPLES: tuple[Sample, ...] = (
    # Spark 3.5
    Sample("stateless-3.5", "3.5", "stateless", _CLEAN),
    Sample("stateless-killed-3.5", "3.5", "stateless", _KILLED, run="killed", count=4),
    Sample("two-sources-3.5", "3.5", "two-sources", _CLEAN, count=4),
    Sample("file-source-3.5", "3.5", "file-source", "12 batches, so the source log has a `.compact`", count=1),
    Sample("async-3.5", "3.5", "stateless", "Asynchronous progress tracking", run="async", count=40),
    Sample("aggregation-hdfs-3.5", "3.5", "aggregation", "Deltas only", "hdfs"),
    Sample("aggregation-rocksdb-3.5", "3.5", "aggregation", "A zip for every version", "rocksdb", count=4),
    Sample("join-hdfs-3.5", "3.5", "join", "Four stores, watermark", "hdfs", count=4),
    Sample("dedup-within-watermark-hdfs-3.5", "3.5", "dedup-within-watermark", "Watermark", "hdfs", count=4),
    Sample("session-window-hdfs-3.5", "3.5", "session-window", "Open sessions", "hdfs", count=5),
    Sample("pandas-with-state-hdfs-3.5", "3.5", "pandas-with-state", "Event-time timeouts", "hdfs", count=5),
    # Spark 4.0
    Sample("stateless-4.0", "4.0", "stateless", _CLEAN, count=4),
    Sample("aggregation-killed-hdfs-4.0", "4.0", "aggregation", _KILLED, "hdfs", "killed", 4),
    Sample("aggregation-changelog-4.0", "4.0", "aggregation", "Changelogs only", "changelog"),
    Sample("join-rocksdb-4.0", "4.0", "join", "Four stores, watermark", "rocksdb", count=3),
    Sample("dedup-hdfs-4.0", "4.0", "dedup", "No watermark", "hdfs", count=4),
    Sample("tws-changelog-4.0", "4.0", "transform-with-state", "All variable kinds", "changelog", count=3),
    # Spark 4.2
    Sample("stateless-4.2", "4.2", "stateless", _CLEAN),
    Sample("two-sources-offsets-v2-4.2", "4.2", "two-sources", "Offset log v2", conf=_OFFSETS_V2, count=4),
    Sample("named-sources-4.2", "4.2", "named-sources", "Offset log v2 with source names", count=4),
    Sample("file-source-4.2", "4.2", "file-source", "12 batches, so the source log has a `.compact`", count=1),
    Sample("async-4.2", "4.2", "stateless", "Asynchronous progress tracking", run="async", count=40),
    Sample("continuous-4.2", "4.2", "continuous-rate", "Continuous processing", run="continuous", count=6),
    Sample("aggregation-hdfs-4.2", "4.2", "aggregation", "With snapshots", "hdfs", "steady", 9, _SNAPSHOTS),
    Sample("aggregation-rocksdb-4.2", "4.2", "aggregation", "Zips and SST files", "rocksdb"),
    Sample(
        "aggregation-changelog-4.2",
        "4.2",
        "aggregation",
        "With snapshots",
        "changelog",
        "steady",
        9,
        _SNAPSHOTS,
    ),
    Sample("windowed-aggregation-hdfs-4.2", "4.2", "windowed-aggregation", "Watermark", "hdfs", count=5),
    Sample("dedup-aggregation-hdfs-4.2", "4.2", "dedup-aggregation", "Two operators", "hdfs", count=4),
    Sample("limit-hdfs-4.2", "4.2", "limit", "One partition", "hdfs", count=4),
    Sample("join-changelog-4.2", "4.2", "join", "Four stores, watermark", "changelog", count=4),
    Sample("session-window-changelog-4.2", "4.2", "session-window", "Open sessions", "changelog", count=5),
    Sample("pandas-with-state-changelog-4.2", "4.2", "pandas-with-state", "Timeouts", "changelog", count=5),
    Sample("tws-rocksdb-4.2", "4.2", "transform-with-state", "All variable kinds", "rocksdb", count=3),
    Sample(
        "tws-event-time-changelog-4.2",
        "4.2",
        "transform-with-state-event-time",
        "Event-time timers, some fired",
        "changelog",
        count=5,
    ),
    Sample("aggregation-format2-4.2", "4.2", "aggregation", "State format 2", "format2", "steady", 7, _SNAPSHOTS),
    Sample("join-v3-changelog-4.2", "4.2", "join", "Join state format 3", "changelog", count=3, conf=_join_format(3)),
    Sample("tws-avro-changelog-4.2", "4.2", "transform-with-state", "Avro state", "changelog", count=2, conf=_AVRO),
    # Spark 4.3
    Sample("stateless-4.3", "4.3", "stateless", _CLEAN, count=4),
    Sample("named-sink-4.3", "4.3", "named-sink", "Commit log v3", count=4, conf=_SINK_EVOLUTION),
    Sample("aggregation-killed-changelog-4.3", "4.3", "aggregation", _KILLED, "changelog", "killed", 4),
    Sample("windowed-aggregation-rocksdb-4.3", "4.3", "windowed-aggregation", "Watermark", "rocksdb", count=4),
    Sample("dedup-changelog-4.3", "4.3", "dedup", "No watermark", "changelog", count=4),
    Sample("aggregation-hdfs-4.3", "4.3", "aggregation", "Deltas only", "hdfs", count=3),
    Sample("join-v4-changelog-4.3", "4.3", "join", "Join state format 4", "changelog", count=3, conf=_join_format(4)),
    Sample("named-file-sources-4.3", "4.3", "named-file-sources", "Logs of file sources by name", count=1),
    Sample("join-format2-4.3", "4.3", "join", "State format 2", "format2", count=3),
    Sample("tws-format2-4.3", "4.3", "transform-with-state", "State format 2", "format2", count=3),
    # With services
    Sample("delta-4.2", "4.2", "delta", "Delta table with several versions", count=1),
    Sample("kafka-4.2", "4.2", "kafka", "Two partitions, 20 rows a batch", count=1),
    Sample("continuous-kafka-4.2", "4.2", "kafka-orders", "Kafka, continuous", run="continuous", count=6),
    Sample("real-time-4.2", "4.2", "kafka-orders", "Real-time mode", run="real-time", count=1),
    Sample("real-time-4.3", "4.3", "kafka-orders", "Real-time mode, commit log v2", run="real-time", count=1),
    Sample("real-time-aggregation-4.3", "4.3", "kafka-counts", "Real-time state", "format2", "real-time", 1),
    Sample("async-kafka-4.2", "4.2", "kafka", "Kafka to Kafka, asynchronous", run="async", count=30),
)
