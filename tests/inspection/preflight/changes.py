"""Queries, and what somebody may change in them between two starts on one checkpoint.

Startable under every pyspark from 3.5 to 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.support.spark.plans import keyed, rate
from tests.support.spark.queries import STATE_STORES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Build: TypeAlias = "Callable[[SparkSession, Path], DataFrame]"
_STREAMING = "spark.sql.streaming."
_STATE = _STREAMING + "stateStore."
FORMAT = _STATE + "checkpointFormatVersion"


@dataclass(frozen=True)
class Base:
    """A query whose checkpoint is made; `store` is one of `STATE_STORES`."""

    name: str
    build: Build
    output_mode: str = "append"
    store: str = "hdfs"
    conf: Mapping[str, str] = field(default_factory=dict)
    since: str = "3.5"

    @property
    def settings(self) -> dict[str, str]:
        """Of the session that makes its checkpoint."""
        return {**STATE_STORES[self.store], **self.conf}


@dataclass(frozen=True)
class Change:
    """A query that is started on the checkpoint of a base: what is not given is as there."""

    name: str
    base: str
    build: Build | None = None
    output_mode: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    unseen: bool = False  # nothing that ckpt can look at shows it

    @property
    def id(self) -> str:
        """Such as ``aggregation: key type``."""
        return f"{self.base}: {self.name}"


def sql(rows: DataFrame, keys: list[str], *aggregates: str) -> DataFrame:
    from pyspark.sql.functions import expr

    return rows.groupBy(*(expr(key) for key in keys)).agg(*(expr(one) for one in aggregates))


def aggregated(*aggregates: str, keys: tuple[str, ...] = ("key", "CAST(value % 2 AS INT) AS part")) -> Build:
    return lambda spark, _: sql(keyed(spark), list(keys), *aggregates)


TWO = ("count(*) AS n", "sum(value) AS total")


def windowed(size: str, delay: str | None = "2 seconds", slide: str | None = None) -> Build:
    def build(spark: SparkSession, _: Path) -> DataFrame:
        from pyspark.sql.functions import count, window

        rows = keyed(spark) if delay is None else keyed(spark).withWatermark("timestamp", delay)
        return rows.groupBy(window("timestamp", size, slide), "key").agg(count("*").alias("n"))

    return build


def session_window(gap: str) -> Build:
    def build(spark: SparkSession, _: Path) -> DataFrame:
        from pyspark.sql.functions import session_window

        return (
            keyed(spark)
            .withWatermark("timestamp", "1 seconds")
            .groupBy(session_window("timestamp", gap), "key")
            .count()
        )

    return build


def deduplicated(*columns: str) -> Build:
    return lambda spark, _: keyed(spark, 25).selectExpr("*", "key % 3 AS part").dropDuplicates(list(columns))


def within_watermark(spark: SparkSession, _: Path) -> DataFrame:
    return keyed(spark, 25).withWatermark("timestamp", "3 seconds").dropDuplicatesWithinWatermark(["key"])


def joined(how: str, equal: str = "l = r", *columns: str) -> Build:
    def build(spark: SparkSession, _: Path) -> DataFrame:
        from pyspark.sql.functions import expr

        left = rate(spark).selectExpr("timestamp AS t", "value AS l", "value % 3 AS l3", *columns)
        right = rate(spark, 5).selectExpr("timestamp AS u", "value * 2 AS r", "value % 3 AS r3")
        left, right = left.withWatermark("t", "2 seconds"), right.withWatermark("u", "2 seconds")
        bound = "u BETWEEN t - INTERVAL 1 SECOND AND t + INTERVAL 1 SECOND"
        found: DataFrame = left.join(right, expr(f"{equal} AND {bound}"), how)
        return found

    return build


def files(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema("id BIGINT, name STRING").option("maxFilesPerTrigger", 1).json(str(folder))


def both(*, swapped: bool = False, folder: str = "") -> Build:
    def build(spark: SparkSession, inputs: Path) -> DataFrame:
        left = files(spark, inputs.with_name(folder) if folder else inputs).selectExpr("id AS value")
        right = rate(spark).select("value")
        return right.unionByName(left) if swapped else left.unionByName(right)

    return build


def ticking(spark: SparkSession, _: Path) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", 5).load().select("value")


def groups(state: str, update: Callable[[int], tuple[Any, ...]], timeout: str = "ProcessingTimeTimeout") -> Build:
    def build(spark: SparkSession, _: Path) -> DataFrame:
        import pandas as pd

        def run(key: tuple[int], frames: Iterator[pd.DataFrame], kept: Any) -> Iterator[pd.DataFrame]:
            count = sum(len(one) for one in frames)
            kept.update(update(count))
            yield pd.DataFrame({"key": [key[0]], "n": [count]})

        return keyed(spark).groupBy("key").applyInPandasWithState(run, "key BIGINT, n BIGINT", state, "append", timeout)

    return build


def variables(
    *wanted: tuple[str, str, str, int | None], mode: str = "None", timers: bool = False, output_mode: str = "Append"
) -> Build:
    """transformWithState with variables (name, kind, schema, TTL)."""

    def build(spark: SparkSession, _: Path) -> DataFrame:
        import pandas as pd
        from pyspark.sql.streaming.stateful_processor import StatefulProcessor

        class Keeps(StatefulProcessor):
            def init(self, handle: Any) -> None:
                self.handle = handle
                self.kept = []
                for name, kind, schema, ttl in wanted:
                    if kind == "map":
                        found = handle.getMapState(name, "k BIGINT", schema, ttl)
                    else:
                        found = getattr(handle, f"get{kind.capitalize()}State")(name, schema, ttl)
                    self.kept.append((kind, schema, found))

            def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
                count = sum(len(one) for one in rows)
                if timers:
                    self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 86_400_000)
                for kind, schema, found in self.kept:
                    row = tuple(str(count) if "STRING" in one else count for one in schema.split(","))
                    if kind == "value":
                        found.update(row)
                    elif kind == "list":
                        found.put([row])
                    else:
                        found.updateValue((1,), row)
                yield pd.DataFrame({"key": [key[0]], "n": [count]})

            def handleExpiredTimer(self, key: Any, timerValues: Any, info: Any) -> Iterator[pd.DataFrame]:
                yield pd.DataFrame({"key": [key[0]], "n": [-1]})

            def close(self) -> None:
                pass

        return (
            keyed(spark).groupBy("key").transformWithStateInPandas(Keeps(), "key BIGINT, n BIGINT", output_mode, mode)
        )

    return build


COUNT, SEEN = ("rows", "value", "n BIGINT", None), ("seen", "list", "n BIGINT", None)
_QUIET = {_STREAMING + "noDataMicroBatches.enabled": "false"}

BASES = (
    Base("stateless", lambda spark, _: rate(spark).selectExpr("value * 2 AS twice")),
    Base("two", both()),
    Base("aggregation", aggregated(*TWO), "update"),
    Base("aggregation-rocksdb", aggregated(*TWO), "update", "changelog"),
    Base("aggregation-format2", aggregated(*TWO), "update", "format2", since="4.2"),
    Base("window", windowed("2 seconds")),
    Base("session", session_window("2 seconds")),
    Base("dedup", deduplicated("key")),
    Base("dedup-within", within_watermark),
    Base("join", joined("leftOuter")),
    Base("groups", groups("n BIGINT, last STRING", lambda n: (n, str(n))), conf=_QUIET),
    Base("variables", variables(COUNT, SEEN), store="changelog", conf=_QUIET, since="4.0"),
    Base("two-operators", lambda spark, _: sql(deduplicated("key")(spark, _), ["part"], "count(*) AS n"), "update"),
)
BY_NAME = {base.name: base for base in BASES}


def _dedup_before(spark: SparkSession, folder: Path) -> DataFrame:
    rows = keyed(spark).dropDuplicates(["value"])
    return sql(rows, ["key", "CAST(value % 2 AS INT) AS part"], *TWO)


CHANGES = (
    *(Change("nothing", base.name) for base in BASES),
    # Keys, aggregates, operators
    Change(
        "key type",
        "aggregation",
        aggregated(*TWO, keys=("CAST(key AS STRING) AS key", "CAST(value % 2 AS INT) AS part")),
    ),
    Change("key name", "aggregation", aggregated(*TWO, keys=("key AS user", "CAST(value % 2 AS INT) AS part"))),
    Change(
        "key added",
        "aggregation",
        aggregated(*TWO, keys=("key", "CAST(value % 2 AS INT) AS part", "value % 3 AS third")),
    ),
    Change("key dropped", "aggregation", aggregated(*TWO, keys=("key",))),
    Change("keys swapped", "aggregation", aggregated(*TWO, keys=("CAST(value % 2 AS INT) AS part", "key"))),
    Change("new aggregate", "aggregation", aggregated(*TWO, "max(value) AS top")),
    Change("dropped aggregate", "aggregation", aggregated(TWO[0])),
    Change("aggregate type", "aggregation", aggregated(TWO[0], "sum(CAST(value AS DOUBLE)) AS total")),
    Change("aggregates swapped", "aggregation", aggregated(*TWO[::-1])),
    Change("max for sum", "aggregation", aggregated(TWO[0], "max(value) AS total")),
    Change("sum of another column", "aggregation", aggregated(TWO[0], "sum(value * 2) AS total"), unseen=True),
    Change("complete mode", "aggregation", output_mode="complete"),
    Change("append mode", "aggregation", output_mode="append"),
    Change("no aggregation", "aggregation", lambda spark, _: keyed(spark).select("key"), "append"),
    Change(
        "deduplication instead",
        "aggregation",
        lambda spark, _: keyed(spark).selectExpr("key", "CAST(value % 2 AS INT) AS part").dropDuplicates(),
    ),
    Change("deduplication before", "aggregation", _dedup_before),
    Change("aggregation", "stateless", aggregated(*TWO), "update"),
    Change("aggregation dropped", "two-operators", deduplicated("key"), "append"),
    Change("deduplication dropped", "two-operators", lambda spark, _: sql(keyed(spark), ["key"], "count(*) AS n")),
    # Windows and watermarks
    Change("window size", "window", windowed("4 seconds"), unseen=True),
    Change("sliding window", "window", windowed("4 seconds", slide="2 seconds")),
    Change("watermark delay", "window", windowed("2 seconds", "10 seconds"), unseen=True),
    Change("no watermark", "window", windowed("2 seconds", None)),
    Change("no watermark, update", "window", windowed("2 seconds", None), "update"),
    Change("update mode", "window", output_mode="update"),
    Change("watermark policy", "window", conf={_STREAMING + "multipleWatermarkPolicy": "max"}),
    Change("gap", "session", session_window("9 seconds"), unseen=True),
    # Deduplication and joins
    Change("another column", "dedup", deduplicated("part"), unseen=True),
    Change("column added", "dedup", deduplicated("key", "part")),
    Change("column of another type", "dedup", deduplicated("timestamp")),
    Change("within watermark", "dedup", within_watermark),
    Change("inner", "join", joined("inner"), unseen=True),
    Change("full outer", "join", joined("fullOuter"), unseen=True),
    Change("equality added", "join", joined("leftOuter", "l = r AND l3 = r3")),
    Change("column added", "join", joined("leftOuter", "l = r", "value + 1 AS more")),
    # Arbitrary state
    Change("state field added", "groups", groups("n BIGINT, last STRING, top BIGINT", lambda n: (n, str(n), n))),
    Change("state field type", "groups", groups("n BIGINT, last BIGINT", lambda n: (n, n))),
    Change("state field renamed", "groups", groups("n BIGINT, newest STRING", lambda n: (n, str(n)))),
    Change("no timeout", "groups", groups("n BIGINT, last STRING", lambda n: (n, str(n)), "NoTimeout")),
    Change("variable added", "variables", variables(COUNT, SEEN, ("more", "value", "n BIGINT", None))),
    Change("variable removed", "variables", variables(COUNT)),
    Change("variable type", "variables", variables(("rows", "value", "n STRING", None), SEEN)),
    Change("variable field added", "variables", variables(("rows", "value", "n BIGINT, m BIGINT", None), SEEN)),
    Change("variable kind", "variables", variables(("rows", "list", "n BIGINT", None), SEEN)),
    Change("TTL", "variables", variables(("rows", "value", "n BIGINT", 86_400_000), SEEN, mode="ProcessingTime")),
    Change("time mode", "variables", variables(COUNT, SEEN, mode="ProcessingTime")),
    Change("timers", "variables", variables(COUNT, SEEN, mode="ProcessingTime", timers=True)),
    Change("update mode", "variables", variables(COUNT, SEEN, output_mode="Update"), "update"),
    # Sources
    Change("source added", "two", lambda spark, folder: both()(spark, folder).unionByName(rate(spark).select("value"))),
    Change("source removed", "two", lambda spark, folder: files(spark, folder)),
    Change("sources swapped", "two", both(swapped=True)),
    Change("another folder", "two", both(folder="moved")),
    Change("another kind", "stateless", ticking),
    Change("files instead", "stateless", files),
    Change("source added", "stateless", lambda spark, _: rate(spark).unionByName(rate(spark))),
    # Settings
    Change("provider", "aggregation", conf=STATE_STORES["changelog"]),
    Change("provider", "aggregation-rocksdb", conf=STATE_STORES["hdfs"]),
    Change("changelog off", "aggregation-rocksdb", conf=STATE_STORES["rocksdb"]),
    Change("partitions", "aggregation", conf={"spark.sql.shuffle.partitions": "5"}),
    Change("codec", "aggregation", conf={_STATE + "compression.codec": "zstd"}),
    Change("aggregation format", "aggregation", conf={_STREAMING + "aggregation.stateFormatVersion": "1"}),
    Change("join format", "join", conf={_STREAMING + "join.stateFormatVersion": "1"}),
    Change("state format 2", "aggregation", conf={FORMAT: "2"}),
    Change("state format 2", "aggregation-rocksdb", conf={FORMAT: "2"}),
    Change("state format 1", "aggregation-format2", conf={FORMAT: "1"}),
)


def bases(minor: str) -> list[Base]:
    """Those that a version can make."""
    return [base for base in BASES if base.since <= minor]


def changes(minor: str) -> list[Change]:
    """Those that can be tried on the checkpoints of a version."""
    return [change for change in CHANGES if BY_NAME[change.base].since <= minor]
