"""Kinds of joins and old state formats that no sample has: held against bare Spark, and against the known answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ckpt
from tests.state.export import rows
from tests.support.spark.queries import drain, own_session

pytestmark = pytest.mark.spark

BATCHES = 2


def run(spark: Any, frame: Any, path: Path, output_mode: str = "append") -> str:
    """Two batches of a query; the path of its checkpoint."""
    for _ in range(BATCHES):
        drain(frame, path, output_mode, "noop")
    return str(path)


def source(spark: Any, name: str, rows: int = 10, value: str = "value") -> Any:
    """Some rows a batch, numbered, with a time."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", 1)
    found = reader.option("startTimestamp", 1_700_000_000_000).load()
    return found.selectExpr(f"timestamp AS {name}_time", f"{value} AS {name}_value").withWatermark(
        f"{name}_time", "1 hour"
    )


def near(condition: str) -> Any:
    """Rows of both sides that match within an hour."""
    from pyspark.sql.functions import expr

    hour = "INTERVAL 1 HOUR"
    return expr(f"{condition} AND left_time BETWEEN right_time - {hour} AND right_time + {hour}")


@pytest.mark.parametrize(
    ("kind", "left_rows"),
    [
        ("inner", range(20)),
        ("fullOuter", range(20)),
        ("leftSemi", range(0, 20, 2)),  # a row that found its match is let go
    ],
)
def test_joins(kind: str, left_rows: range, spark: Any, tmp_path: Path) -> None:
    """The odd rows of the left stream find a match, the even ones wait for one; the right stream has odd rows only.

    In join state format 2: Spark 4.2 starts none in format 1 ("Unsupported schema writer version: 1").
    """
    own = own_session(spark, {"spark.sql.streaming.join.stateFormatVersion": "2"}, partitions=2)
    left, right = source(own, "left"), source(own, "right", 5, "value * 2 + 1")
    path = run(own, left.join(right, near("left_value = right_value"), kind), tmp_path / "checkpoint")

    units = {unit.side: unit for unit in ckpt.state_units(ckpt.open_checkpoint(path)) if unit.side}
    for side, expected in (("left", left_rows), ("right", range(1, 20, 2))):
        frame = ckpt.read_state(path, session=spark, side=side)
        assert sorted(row[0] for row in frame.select(f"value_{side}_value").collect()) == list(expected)
        raw = ckpt.read_state(path, session=spark, side=side, shape="raw")
        bare = own.read.format("statestore").option("joinSide", side).load(path)
        assert units[side].schema is not None
        names = ", ".join(f"'{field.name}', value.{field.name}" for field in raw.schema["value"].dataType)
        told = bare.selectExpr("key", f"named_struct({names}) AS value", "partition_id")
        assert rows.content(raw) == rows.content(told)


def test_an_aggregation_in_state_format_1(spark: Any, tmp_path: Path) -> None:
    """Its values repeat the key."""
    own = own_session(spark, {"spark.sql.streaming.aggregation.stateFormatVersion": "1"}, partitions=2)
    counts = source(own, "one").selectExpr("one_value % 3 AS key").groupBy("key").count()
    path = run(own, counts, tmp_path / "checkpoint", "update")

    frame = ckpt.read_state(path, session=spark)

    assert frame.columns == ["key_key", "value_key", "value_count"]
    assert sorted(map(tuple, frame.collect())) == [(0, 0, 7), (1, 1, 7), (2, 2, 6)]
    bare = own.read.format("statestore").load(path)
    assert rows.content(ckpt.read_state(path, session=spark, shape="raw")) == rows.content(bare)


def test_columns_that_differ_in_case(spark: Any, tmp_path: Path) -> None:
    """Only a session that tells them apart runs the query; its state can be read in any."""
    own = spark.newSession()
    own.conf.set("spark.sql.caseSensitive", "true")
    left = source(own, "left").selectExpr("*", "left_value + 100 AS LEFT_VALUE")
    path = run(own, left.join(source(own, "right"), near("left_value = right_value")), tmp_path / "checkpoint")

    for session in (spark, own):
        state = ckpt.read_state(path, session=session, side="left")
        assert sorted(row[3] - row[2] for row in state.collect()) == [100] * 20
