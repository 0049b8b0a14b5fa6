"""A NULL struct and a struct of NULLs: apart in ``raw``; other shapes say that they mix them up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ckpt.model import Json
from ckpt.state.reading.columns import BLURRED, find_blurred, flat_columns
from tests.conftest import Ckpt
from tests.support.spark.queries import drain, own_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NULL, OF_NULLS, FULL = None, (None, None), (8, "x")


def _kept(key: Any, frames: Any, state: Any) -> Iterator[Any]:
    """The state: none but a timeout for key 0."""
    for _ in frames:
        pass
    if key[0] > 0:
        state.update(OF_NULLS if key[0] == 1 else FULL)
    state.setTimeoutDuration(3_600_000)
    yield from ()


def _queries(rows: DataFrame) -> dict[str, DataFrame]:
    from pyspark.sql import functions as F

    key, two = F.col("key"), F.col("key") == 2
    pair = F.when(key > 0, F.struct(F.when(two, F.lit(8)).alias("a"), F.when(two, F.lit("x")).alias("b")))
    pairs = rows.select((F.col("value") % 3).alias("key")).withColumn("pair", pair)
    by_key = pairs.groupBy("key")
    return {
        "value.max": by_key.agg(F.max("pair")),
        "key.pair": pairs.groupBy("pair").count(),
        "value.groupState": by_key.applyInPandasWithState(
            _kept, "key bigint", "a bigint, b string", "update", "ProcessingTimeTimeout"
        ),
    }


@pytest.fixture(scope="module")
def checkpoints(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By the struct that is NULL for one key and full of NULLs for another."""
    own = own_session(spark, {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}, partitions=1)
    rows = own.readStream.format("rate-micro-batch").option("rowsPerBatch", 9).option("numPartitions", 1).load()
    found = {
        name: str(tmp_path_factory.mktemp("nulls") / "checkpoint")
        for name in ("value.max", "key.pair", "value.groupState")
    }
    for name, query in _queries(rows).items():
        drain(query, found[name], "update", "noop")
    return found


@pytest.mark.spark
@pytest.mark.parametrize("name", ["value.max", "key.pair", "value.groupState"])
def test_they_are_apart_or_said_not_to_be(
    name: str, checkpoints: dict[str, str], spark: Any, ckpt: Ckpt, tmp_path: Path
) -> None:
    def back(shape: str, kind: str) -> tuple[Any, list[Any]]:
        target = tmp_path / f"{shape}-{kind}"
        words = (
            "export-state",
            "--engine",
            "spark",
            checkpoints[name],
            "--shape",
            shape,
            "--format",
            kind,
            "--to",
            target,
        )
        assert ckpt(*words).exit_code == 0
        told = json.loads((target / "_ckpt_export.json").read_text())
        from pyspark.sql.types import StructType

        reader = spark.read.schema(StructType.fromJson(told["schema"]))
        return told, reader.format(kind).load(str(target)).selectExpr(f"{name}" if shape == "raw" else "*").collect()

    for kind in ("parquet", "json"):
        told, rows = back("raw", kind)
        assert told["dropped"] == []
        assert sorted((row[0] and tuple(row[0]) for row in rows), key=repr) == [FULL, OF_NULLS, NULL]
        for shape in ("flat", "initial-state"):
            told, rows = back(shape, kind)
            assert told["dropped"] == [{"path": name, "why": BLURRED}]
            leaves = [one["name"] for one in told["columns"] if one["path"].startswith(f"{name}.")]
            assert sorted((tuple(row[leaf] for leaf in leaves) for row in rows), key=repr) == [FULL, OF_NULLS, OF_NULLS]
    told = ckpt("export-state", "--engine", "spark", checkpoints[name], "--to", tmp_path / "new", "--plan").stdout
    assert f"{name}: {BLURRED.split(':')[0]}" in " ".join(told.split())


def _struct(*fields: tuple[str, Json], nullable: bool = True) -> Json:
    return {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": nullable} for name, kind in fields]}


def test_what_is_never_null_and_what_shows_that_it_is_not_is_not_spoken_of() -> None:
    window = _struct(("start", "timestamp"), ("end", "timestamp"))
    for value in (
        _struct(("window", window)),
        _struct(("value", window), ("ttlExpirationMs", "long")),
        _struct(("pair", window), nullable=False),
        _struct(("pair", _struct(("a", "long"), nullable=False))),
    ):
        assert list(find_blurred(_struct(("value", value)))) == []
    deep = _struct(("value", _struct(("outer", _struct(("inner", window), ("a", "long"))))))
    assert [path for path, _ in find_blurred(deep)] == [("value", "outer"), ("value", "outer", "inner")]
    assert flat_columns(deep, only_keys=True).kept == ()
