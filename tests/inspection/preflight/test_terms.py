"""Pairs of queries whose state has the same columns, described by the Spark of the test run and compared."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ckpt as library
from ckpt.inspection.evolution import Knowledge, OperatorComparison, compare_signatures, pair_sources

pytestmark = pytest.mark.spark
SCHEMA = "k INT, v INT, c STRING, t TIMESTAMP, a ARRAY<INT>"
WITHIN = "l = r AND lt > rt - INTERVAL 1 HOUR AND lt < rt + INTERVAL 1 HOUR"
Build = Callable[[Any, Any], Any]


def counted(rows: Any) -> Any:
    return rows.groupBy().count()


def total(rows: Any, sql: str) -> Any:
    return rows.selectExpr("k", f"{sql} AS x").groupBy("k").sum("x")


def folded(function: Callable[[Any, Any], Any]) -> Build:
    def build(rows: Any, _: Any) -> Any:
        from pyspark.sql import functions

        return rows.groupBy("k").agg(functions.sum(functions.aggregate("a", functions.lit(0), function)))

    return build


def joined(on: str, how: str) -> Build:
    return lambda rows, table: counted(rows.join(table, rows[on] == table["name"], how))


def mapped(function: Callable[[Any], Any]) -> Build:
    return lambda rows, _: counted(rows.select("k").mapInPandas(function, "k INT"))


def every(frames: Any) -> Any:
    yield from frames


def some(frames: Any) -> Any:
    yield from (frame[frame.k > 3] for frame in frames)


def listed(last: int) -> Build:
    return lambda rows, _: counted(rows.where(rows["k"].isin([*range(20), last])))


def filtered(condition: str) -> Build:
    return lambda rows, _: counted(rows.where(condition))


def parsed(schema: str, name: str) -> Build:
    return lambda rows, _: total(rows, f"from_json(c, '{schema}').{name}")


def streams(how: str) -> Build:
    def build(rows: Any, _: Any) -> Any:
        from pyspark.sql.functions import expr

        left = rows.selectExpr("k AS l", "v AS lv", "t AS lt").withWatermark("lt", "10 seconds")
        right = rows.selectExpr("k AS r", "t AS rt").withWatermark("rt", "10 seconds")
        return left.join(right, expr(WITHIN), how).select("l", "lv", "lt")

    return build


WRONG: dict[str, tuple[Build, Build]] = {
    "another field of JSON": (parsed("a INT, b INT", "a"), parsed("a INT, b INT", "b")),
    "a field of JSON that is wider": (parsed("a INT", "a"), parsed("a BIGINT", "a")),
    "variables of a lambda swapped": (folded(lambda x, y: x - y), folded(lambda x, y: y - x)),
    "a table joined by another column": (joined("k", "inner"), joined("v", "inner")),
    "a table joined otherwise": (joined("k", "inner"), joined("k", "left")),
    "a table joined": (lambda rows, _: counted(rows), joined("k", "inner")),
    "another function of whole batches": (mapped(every), mapped(some)),
    "a value of a long list": (listed(30), listed(31)),
    "a semi join that becomes an inner one": (streams("left_semi"), streams("inner")),
}
SAME: dict[str, tuple[Build, Build, Knowledge]] = {
    "a field more in the schema of JSON": (parsed("a INT", "a"), parsed("z INT, a INT", "a"), Knowledge.FULL),
    "a lambda": (folded(lambda x, y: x + y), folded(lambda x, y: y + x), Knowledge.FULL),
    "a table joined, with a hint": (
        joined("k", "inner"),
        lambda rows, table: joined("k", "inner")(rows, table.hint("merge")),
        Knowledge.FULL,
    ),
    "a seed": (filtered("rand() < 0.5"), filtered("rand() < 0.5"), Knowledge.FULL),
    "the time": (filtered("t > current_timestamp()"), filtered("t > current_timestamp()"), Knowledge.UNKNOWN),
    "a function of whole batches": (mapped(every), mapped(every), Knowledge.UNKNOWN),
}


def compare(spark: Any, folder: Path, builds: tuple[Build, Build]) -> OperatorComparison:
    described = []
    for build in builds:
        rows = spark.readStream.schema(SCHEMA).json(str(folder))
        frame = build(rows, spark.read.schema("name INT").json(str(folder)))
        mode = "append" if "lt" in frame.columns else "update"
        described.append(library.describe_query(frame, output_mode=mode))
    old, new = described
    (pair,) = compare_signatures(old, new, pair_sources(old.sources, new.sources), {0: 0})
    return pair


@pytest.mark.parametrize("name", WRONG)
def test_a_change_that_spark_passes_over_is_none_of_full(name: str, spark: Any, tmp_path: Path) -> None:
    pair = compare(spark, tmp_path, WRONG[name])
    assert any(part.silent and part.verdict is not Knowledge.FULL for part in pair.parts), pair


@pytest.mark.parametrize("name", SAME)
def test_what_means_the_same_is_not_held(name: str, spark: Any, tmp_path: Path) -> None:
    *builds, verdict = SAME[name]
    pair = compare(spark, tmp_path, (builds[0], builds[1]))
    assert not any(part.silent for part in pair.parts), pair
    assert pair.verdict is verdict
