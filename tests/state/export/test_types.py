"""State with types that not every format holds: what survives is equal, and the rest is refused by name."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ckpt
from tests.support.spark.queries import drain

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def checkpoint(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Left by a query whose state holds an array, a map, a struct and an interval for each of three keys."""
    from pyspark.sql import functions as F

    own = spark.newSession()
    source = own.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 1).load()
    number = F.col("value")
    grouped = source.withColumn("key", number % 3).groupBy("key")
    parts = grouped.agg(
        F.max(F.array(number, number + 1)).alias("a"),
        F.first(F.create_map(F.lit("key"), number % 3)).alias("m"),
        F.max(F.struct(number.alias("number"), F.lit("text").alias("text"))).alias("s"),
        F.max(F.make_dt_interval(F.lit(0), number)).alias("i"),
    )
    path = str(tmp_path_factory.mktemp("types") / "checkpoint")
    drain(parts, path, "update", "noop")
    return path


def test_they_survive(checkpoint: str, spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    for kind in ("parquet", "json"):
        target = tmp_path / kind
        result = ckpt("export-state", "--engine", "spark", checkpoint, "--to", target, "--format", kind)
        assert result.exit_code == 0, result.stderr
        schema = json.loads((target / "_ckpt_export.json").read_text())["schema"]
        back = spark.read.format(kind).schema(_struct(schema)).load(str(target))
        assert sorted(map(tuple, back.collect())) == [(key, *_values(key, back.columns)) for key in range(3)], (
            back.columns
        )


def _struct(schema: Any) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromJson(schema)


def _values(key: int, columns: list[str]) -> list[Any]:
    """What a key has seen last is 9, 7 or 8; the aggregates keep that, or what they saw first."""
    last = {0: 9, 1: 7, 2: 8}[key]
    known = {
        "value_max": [last, last + 1],
        "value_first": {"key": key},
        "value_valueSet": True,
        "value_max_number": last,
        "value_max_text": "text",
        "value_max_2": timedelta(hours=last),
    }
    return [known[column] for column in columns[1:]]


def test_delta_and_csv_refuse_by_name_what_they_do_not_hold(checkpoint: str, ckpt: Ckpt, tmp_path: Path) -> None:
    for kind, says in (
        ("delta", "value_max_2 (interval day to second): use --format parquet"),
        ("csv", "value_max (array): use --format parquet or --format delta or --format json"),
    ):
        for more in ([], ["--plan"]):
            result = ckpt(
                "export-state", "--engine", "spark", checkpoint, "--to", tmp_path / "out", "--format", kind, *more
            )
            assert result.exit_code == 2
            assert says in result.refusal()
    assert list(tmp_path.iterdir()) == []
