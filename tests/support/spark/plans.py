"""What the queries of `queries.py` do.

All but those that read files, Delta or Kafka read `rate-micro-batch`, whose rows and offsets are the same in every run:
batch N brings `ROWS` rows stamped `START_MS + N` seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from . import pandas_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 10
START_MS = 1_700_000_000_000
KAFKA = "spark.ckpt.kafka"
"""The session setting that holds the bootstrap servers for the queries that need `kafka`."""
TIMES = "spark.ckpt.times"
"""The session setting that says how many times as much as usual a batch brings: it changes no plan."""
WITHOUT = "spark.ckpt.without"
"""The session setting that names a batch, counted by when its rows are stamped, whose rows a query does not see."""

GENERATION = "spark.ckpt.generation"
"""The session setting that says which schema the variables of `collecting` have; without it the newest."""


def rate(spark: SparkSession, rows: int = ROWS) -> DataFrame:
    """Rows (timestamp, value); `value` counts up from 0, one distinct timestamp a batch."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows * times(spark))
    found = reader.option("numPartitions", 1).option("startTimestamp", START_MS).load()
    without = spark.conf.get(WITHOUT, None)
    return found if without is None else found.where(f"timestamp <> timestamp_millis({START_MS + int(without) * 1000})")


def times(spark: SparkSession) -> int:
    """How many times as much as usual a batch brings."""
    return int(spark.conf.get(TIMES, "1") or 1)


def keyed(spark: SparkSession, keys: int = 7) -> DataFrame:
    """Rows (timestamp, value, key) with `keys` different keys."""
    return rate(spark).selectExpr("timestamp", "value", f"value % {keys} AS key")


def stateless(spark: SparkSession, _: Path) -> DataFrame:
    return rate(spark).selectExpr("value", "value * 2 AS twice")


def two_sources(spark: SparkSession, _: Path) -> DataFrame:
    left = rate(spark).selectExpr("'left' AS side", "value")
    return left.unionByName(rate(spark, ROWS * 2).selectExpr("'right' AS side", "value"))


def named_sources(spark: SparkSession, _: Path) -> DataFrame:
    def named(name: str, rows: int) -> DataFrame:
        reader = spark.readStream.name(name).format("rate-micro-batch").option("rowsPerBatch", rows)
        return reader.option("numPartitions", 1).option("startTimestamp", START_MS).load()

    return named("orders", ROWS).unionByName(named("refunds", ROWS * 2)).select("value")


def file_source(spark: SparkSession, inputs: Path) -> DataFrame:
    files = spark.readStream.schema("id BIGINT, name STRING").option("maxFilesPerTrigger", times(spark))
    return files.json(str(inputs))


def named_file_sources(spark: SparkSession, inputs: Path) -> DataFrame:
    def named(name: str, files: int) -> DataFrame:
        reader = spark.readStream.name(name).schema("id BIGINT, name STRING").option("maxFilesPerTrigger", files)
        return reader.json(str(inputs))

    return named("alpha", 3).unionByName(named("beta", 4))


def aggregation(spark: SparkSession, _: Path) -> DataFrame:
    return keyed(spark).groupBy("key").agg({"*": "count", "value": "sum"})


def windowed_aggregation(spark: SparkSession, _: Path) -> DataFrame:
    from pyspark.sql.functions import window

    late = keyed(spark).withWatermark("timestamp", "2 seconds")
    return late.groupBy(window("timestamp", "2 seconds"), "key").agg({"*": "count", "value": "sum"})


def dedup(spark: SparkSession, _: Path) -> DataFrame:
    return keyed(spark, 25).dropDuplicates(["key"])


def dedup_within_watermark(spark: SparkSession, _: Path) -> DataFrame:
    return keyed(spark, 25).withWatermark("timestamp", "3 seconds").dropDuplicatesWithinWatermark(["key"])


def join(spark: SparkSession, _: Path) -> DataFrame:
    from pyspark.sql.functions import expr

    left = rate(spark).selectExpr("timestamp AS left_time", "value AS left_value")
    right = rate(spark, ROWS // 2).selectExpr("timestamp AS right_time", "value * 2 AS right_value")
    within = expr(
        "left_value = right_value AND "
        "right_time BETWEEN left_time - INTERVAL 1 SECOND AND left_time + INTERVAL 1 SECOND"
    )
    left, right = left.withWatermark("left_time", "2 seconds"), right.withWatermark("right_time", "2 seconds")
    return left.join(right, within, "leftOuter")


def session_window(spark: SparkSession, _: Path) -> DataFrame:
    from pyspark.sql.functions import session_window

    # Each key is seen every few batches, so that some sessions close while others stay open.
    rows = rate(spark).selectExpr("timestamp", "value", "value DIV 4 % 10 AS key")
    rows = rows.withWatermark("timestamp", "1 seconds")
    return rows.groupBy(session_window("timestamp", "2 seconds"), "key").count()


def pandas_with_state(spark: SparkSession, _: Path) -> DataFrame:
    late = keyed(spark, 50).withWatermark("timestamp", "1 seconds")
    return late.groupBy("key").applyInPandasWithState(
        pandas_state.counting_function(),
        "key BIGINT, rows BIGINT, expired BOOLEAN",
        "rows BIGINT, last STRING",
        "append",
        "EventTimeTimeout",
    )


def transform_with_state(spark: SparkSession, _: Path) -> DataFrame:
    return (
        keyed(spark, 5)
        .groupBy("key")
        .transformWithStateInPandas(
            pandas_state.processing_time_processor(), "key BIGINT, rows BIGINT", "Append", "ProcessingTime"
        )
    )


def transform_with_state_event_time(spark: SparkSession, _: Path) -> DataFrame:
    late = keyed(spark, 5).withWatermark("timestamp", "1 seconds")
    return late.groupBy("key").transformWithStateInPandas(
        pandas_state.event_time_processor(), "key BIGINT, rows BIGINT", "Append", "EventTime"
    )


def collecting(spark: SparkSession, _: Path) -> DataFrame:
    """Everything seen of each key in a value and in a list; 50 keys, so that a key comes in each fifth batch."""
    processor = pandas_state.collecting_processor(int(spark.conf.get(GENERATION, "1") or 1))
    rows = keyed(spark, 50).selectExpr("CAST(key AS INT) AS k", "CAST(value AS INT) AS v")
    return rows.groupBy("k").transformWithStateInPandas(processor, "k INT, all STRING", "Append", "None")


def dedup_aggregation(spark: SparkSession, _: Path) -> DataFrame:
    return keyed(spark, 25).dropDuplicates(["key"]).selectExpr("key % 4 AS part").groupBy("part").count()


def limit(spark: SparkSession, _: Path) -> DataFrame:
    return rate(spark).limit(25)


def continuous_rate(spark: SparkSession, _: Path) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", 4).option("numPartitions", 2).load()


def delta(spark: SparkSession, inputs: Path) -> DataFrame:
    return spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(inputs))


def _subscribe(spark: SparkSession, topic: str = "orders", **options: str) -> DataFrame:
    """The records of a topic of the broker at the session setting `KAFKA`."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", spark.conf.get(KAFKA))
    return reader.option("subscribe", topic).option("startingOffsets", "earliest").options(**options).load()


def kafka(topic: str = "orders", **options: str) -> Callable[[SparkSession, Path], DataFrame]:
    """The records of a topic, 20 in each batch."""
    return lambda spark, _: _subscribe(spark, topic, **options, maxOffsetsPerTrigger="20").select("key", "value")


def kafka_orders(spark: SparkSession, _: Path) -> DataFrame:
    """All records of the topic `orders`, without the options that real-time mode refuses."""
    return _subscribe(spark).select("key", "value")


def kafka_counts(spark: SparkSession, inputs: Path) -> DataFrame:
    """How many records of `orders` have a key that ends in each digit."""
    return kafka_orders(spark, inputs).selectExpr("right(CAST(key AS STRING), 1) AS digit").groupBy("digit").count()


def kafka_aggregation(spark: SparkSession, inputs: Path) -> DataFrame:
    """`aggregation` over the numbers of `orders`: state of the samples of `aggregation` fits it."""
    numbers = kafka_orders(spark, inputs).selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS value")
    return numbers.selectExpr("value", "value % 7 AS key").groupBy("key").agg({"*": "count", "value": "sum"})


def kafka_join(spark: SparkSession, inputs: Path) -> DataFrame:
    """`orders` joined with itself."""
    orders = kafka_orders(spark, inputs)
    return orders.join(kafka_orders(spark, inputs).selectExpr("key", "value AS other"), "key")


def kafka_dedup(spark: SparkSession, inputs: Path) -> DataFrame:
    return kafka_orders(spark, inputs).dropDuplicates(["key"])


def kafka_sessions(spark: SparkSession, _: Path) -> DataFrame:
    """Sessions of the records of `orders`."""
    from pyspark.sql.functions import session_window

    return (
        _subscribe(spark)
        .withWatermark("timestamp", "1 minute")
        .groupBy(session_window("timestamp", "5 seconds"))
        .count()
    )


def joined_by_spark_2(how: str) -> Callable[[SparkSession, Path], DataFrame]:
    """The join of Spark's own checkpoint `version-2.4.0-streaming-join`, of any type."""

    def build(spark: SparkSession, _: Path) -> DataFrame:
        from pyspark.sql.functions import expr

        left = rate(spark).selectExpr("CAST(value % 5 AS INT) AS leftId", "timestamp AS leftTime")
        right = rate(spark).selectExpr("CAST(value % 5 AS INT) AS rightId", "timestamp AS rightTime")
        left, right = left.withWatermark("leftTime", "5 seconds"), right.where("rightId % 2 = 0")
        within = expr("rightId = leftId AND rightTime BETWEEN leftTime AND leftTime + INTERVAL 5 SECONDS")
        return left.join(right.withWatermark("rightTime", "5 seconds"), within, how)

    return build


def decimals_of_spark_2(spark: SparkSession, _: Path) -> DataFrame:
    """The aggregation of `version-2.4.5-for-compatibility-test-sum-decimal`."""
    from pyspark.sql.functions import expr

    rows = rate(spark).selectExpr("CAST(value AS INT) AS value").selectExpr("value", "value % 2 AS id")
    return rows.groupBy("id").agg(expr("sum(CAST(value AS DECIMAL))"), expr("collect_list(value)"))


def dedup_of_spark_2(spark: SparkSession, _: Path) -> DataFrame:
    """The query of `version-2.4.5-for-compatibility-test-deduplicate`."""
    key = "value + 10 AS key", "CAST(value AS STRING) AS topic", "value + 100 AS partition", "value + 5 AS offset"
    return rate(spark).selectExpr("value", *key).dropDuplicates()


def counts_of_spark_2(spark: SparkSession, _: Path) -> DataFrame:
    """The query of `version-2.3.1-streaming-aggregate-state-format-1`."""
    return rate(spark).selectExpr("CAST(value % 4 AS INT) AS value").groupBy("value").count()
