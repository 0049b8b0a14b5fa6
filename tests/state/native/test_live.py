"""Checkpoints that this Spark writes and reads: without Spark the same columns and rows come out of them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.state.reading.units import state_units
from ckpt.versions import Spark
from tests.formats.rows.test_rows import same
from tests.new.fill.test_import_state import written
from tests.new.rewrite.continuing import frames
from tests.state.export import difficult, rows
from tests.support.spark.live import EVERY_CASE
from tests.support.spark.queries import STATE_STORES, drain, own_session

pytestmark = pytest.mark.spark


def compare(spark: Any, path: Path, *, initial: bool = True) -> int:
    """Every unit, flat, and all state of each key, and no damage; how many rows there were."""
    count = 0
    for unit in state_units(ckpt.open_checkpoint(str(path))):
        frame = ckpt.read_state(str(path), session=spark, **rows.choice(unit))
        table = ckpt.read_state_arrow(str(path), **rows.choice(unit))
        assert table.column_names == frame.columns
        assert in_no_order(table) == in_no_order(frame.toArrow()), unit.label
        count += table.num_rows
    if initial:
        frame = ckpt.read_initial_state(str(path), session=spark)
        table = ckpt.read_state_arrow(str(path), shape="initial-state")
        assert table.column_names == frame.columns
        assert in_no_order(table) == in_no_order(frame.toArrow())
    verified = ckpt.state_verify(str(path), jobs=1)
    assert (verified.damages, verified.unknown) == ((), ())
    return count


def in_no_order(table: Any) -> list[str]:
    """The rows of a table; arrays in them keep their order."""
    return sorted(repr(same(row)) for row in table.to_pylist())


@pytest.fixture(scope="module")
def made(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> difficult.Made:
    return difficult.Made(spark, tmp_path_factory.mktemp("difficult"))


@pytest.mark.parametrize("query", ["transform_with_state", "sessions", "aggregation", "total"])
def test_queries_made_to_be_difficult(query: str, made: difficult.Made, spark: Any) -> None:
    assert compare(spark, getattr(made, query)()) > 0


@pytest.mark.parametrize("state_format", [2, 3, 4])
def test_joins(state_format: int, made: difficult.Made, spark: Any) -> None:
    if state_format > 2 and Spark(spark.version[:3]).rules.runs_join_format < state_format:
        pytest.skip(f"Spark {spark.version} has no such join")
    assert compare(spark, made.join(state_format)) > 0


def run(spark: Any, path: Path, query: Any, conf: dict[str, str], starts: int = 2) -> Path:
    """Some starts of a query, each with a batch of 20 rows."""
    own = own_session(spark, conf)
    source = own.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).option("numPartitions", 1)
    for _ in range(starts):
        drain(query(source.option("startTimestamp", 1_700_000_000_000).load()), path, "update", "noop")
    return path


def counts(source: Any) -> Any:
    from pyspark.sql import functions as F

    return source.groupBy((F.col("value") % 7).alias("k")).agg(F.count("*").alias("n"), F.max("timestamp").alias("t"))


def fives(source: Any) -> Any:
    return source.groupBy((source.value / 5).cast("int").alias("k")).count()


CODEC = "spark.sql.streaming.stateStore.compression.codec"


CODECS = [(codec, store) for store in ("hdfs", "changelog", "format2") for codec in ("zstd", "snappy", "lzf")]


@pytest.mark.parametrize(("codec", "store"), CODECS if EVERY_CASE else [("zstd", "hdfs"), ("lzf", "format2")])
def test_codecs(codec: str, store: str, spark: Any, tmp_path: Path) -> None:
    """Each batch has keys of its own: none of the files can be left out."""
    if store == "format2" and not Spark(spark.version[:3]).rules.reads_format_2:
        pytest.skip(f"Spark {spark.version} does not read it")
    path = run(spark, tmp_path / "ck", fives, {**STATE_STORES[store], CODEC: codec}, starts=3)
    assert compare(spark, path, initial=False) == 12


CHECKSUMS = "spark.sql.streaming.stateStore.rowChecksum.enabled"


def seconds(source: Any) -> Any:
    """Windows, of which those before the watermark are removed again."""
    from pyspark.sql import functions as F

    windows = source.withWatermark("timestamp", "0 seconds").groupBy(F.window("timestamp", "200 milliseconds"), "value")
    return windows.agg(F.max("value").alias("m"))


@pytest.mark.parametrize("store", ["hdfs", "rocksdb", "changelog"] if EVERY_CASE else ["hdfs", "changelog"])
def test_rows_with_checksums(store: str, spark: Any, tmp_path: Path) -> None:
    if not Spark(spark.version[:3]).records(CHECKSUMS):
        pytest.skip(f"Spark {spark.version} has no such rows")
    conf = {**STATE_STORES[store], CHECKSUMS: "true", "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2"}
    path = run(spark, tmp_path / "ck", seconds, conf, starts=4)
    for batch in (0, 2, 3):
        frame = ckpt.read_state(str(path), session=spark, batch=batch)
        table = ckpt.read_state_arrow(str(path), batch=batch)
        assert in_no_order(table) == in_no_order(frame.toArrow())
        assert table.num_rows > 0
    for key in table.column("key_value").to_pylist():
        (row,) = ckpt.state_show(str(path), batch=3, key={"value": str(key)}).rows
        assert row["value_max"] == key


FIELDS = {
    "b": ("BOOLEAN", True),
    "i": ("INT", 70_000),
    "l": ("BIGINT", -(2**40)),
    "f": ("FLOAT", 1.5),
    "d": ("DOUBLE", -0.1),
    "t": ("STRING", "x" * 34 + "äß,"),
    "x": ("BINARY", b"\x00\xff"),
    "dt": ("DATE", datetime.date(1969, 7, 20)),
    "ts": ("TIMESTAMP", datetime.datetime(2026, 11, 22, 9, 20)),
    "a": ("ARRAY<INT>", [1, -2]),
    "m": ("MAP<STRING, INT>", {"k": -2}),
    "st": ("STRUCT<n: INT, t: STRING>", (1, None)),
}


def avro_processor() -> Any:
    """A value and a list of every type, with NULLs, and a map."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    kinds = {name: kind for name, (kind, _) in FIELDS.items()}
    whole = tuple(value for _, value in FIELDS.values())
    schema = ", ".join(f"{name} {kind}" for name, kind in kinds.items())

    class Avro(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.value = handle.getValueState("value", schema)
            self.list = handle.getListState("list", "t STRING, n INT")
            self.map = handle.getMapState("map", "name STRING", "n INT, d DOUBLE")

        def handleInputRows(self, key: tuple[Any], rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            for _ in rows:
                pass
            (number,) = key
            self.value.update(whole if number % 2 else (None,) * len(whole))
            for length in range(30, 30 + number):  # among them elements of 44 bytes
                self.list.appendValue(("y" * length, length if length % 2 else None))
            self.map.updateValue(("k",), (number, 0.5))
            yield pd.DataFrame({"k": [number]})

        def close(self) -> None:
            pass

    return Avro()


def test_avro(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are read, and made again of what was read: the bytes of Spark, in the same partitions."""
    from pyspark.sql import functions as F

    def query(source: Any) -> Any:
        grouped = source.withColumn("k", (F.col("value") % 12).cast("int")).groupBy("k")
        return grouped.transformWithStateInPandas(avro_processor(), "k INT", "Update", "None")

    conf = {"spark.sql.streaming.stateStore.encodingFormat": "avro"}
    path = run(spark, tmp_path / "ck", query, {**STATE_STORES["changelog"], **conf})
    assert compare(spark, path) > 40
    stores = written(monkeypatch)
    assert ckpt.rewrite(str(path), str(tmp_path / "moved")).written
    moved = dict(stores)
    assert ckpt.write_state(frames(path, "raw"), str(tmp_path / "made"), like=str(path)).written
    assert stores == moved


KEYS = [
    "value % 3 = 1",
    "CAST(value - 3 AS TINYINT)",
    "CAST(value - 3 AS SMALLINT)",
    "CAST(value - 3 AS INT)",
    "IF(value % 4 = 0, NULL, value - 3)",
    "CAST(value / 4 AS FLOAT)",
    "IF(value % 5 = 0, CAST('NaN' AS DOUBLE), -value / 4D)",
    "repeat('ä', CAST(value AS INT))",
    "CAST(repeat('b', CAST(value AS INT)) AS BINARY)",
    "date_add(DATE'2026-11-22', CAST(value AS INT))",
    "timestamp",
    "CAST(timestamp AS TIMESTAMP_NTZ)",
    "CAST(value - 3 AS DECIMAL(9, 2))",
    "CAST(value - 3 AS DECIMAL(38, 4))",
    "named_struct('a', value, 'b', CAST(value AS STRING))",
    "array(value, value + 1)",
    "make_dt_interval(0, CAST(value AS INT))",
]


@pytest.mark.parametrize("store", ["hdfs", "rocksdb", "changelog", "format2"] if EVERY_CASE else ["hdfs", "format2"])
def test_keys_of_every_type(store: str, spark: Any, tmp_path: Path) -> None:
    """Read; and each found by its columns, in the partition that their hash names where ckpt computes it."""

    def query(source: Any) -> Any:
        return source.selectExpr(*(f"{sql} AS k{place}" for place, sql in enumerate(KEYS))).dropDuplicates()

    path = run(spark, tmp_path / "ck", query, {**STATE_STORES[store], "spark.sql.shuffle.partitions": "5"})
    assert compare(spark, path) > 20


@pytest.mark.parametrize("place", range(14))
def test_a_key_of_each_type_is_found(place: int, spark: Any, tmp_path: Path) -> None:
    path = str(
        run(
            spark,
            tmp_path / "ck",
            lambda source: source.selectExpr(f"{KEYS[place]} AS k").dropDuplicates(),
            {**STATE_STORES["hdfs"], "spark.sql.shuffle.partitions": "7"},
            starts=1,
        )
    )
    table = ckpt.read_state_arrow(path, partition_id=True)
    shown = ckpt.state_show(path, limit=1000).rows
    found = 0
    for row, partition in zip(shown, table.column("partition_id").to_pylist(), strict=True):
        value = row["key_k"]
        if value is None or value == "NaN":
            continue
        typed = str(value).lower() if isinstance(value, bool) else str(value)
        one = ckpt.state_show(path, key={"k": typed})
        assert (one.rows, one.partition) == ((row,), partition)
        found += 1
    assert found
