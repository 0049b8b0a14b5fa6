"""``ckpt import-state`` into a query that has changed: more columns, wider types; what cannot be told is refused."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import ckpt as library
from ckpt.formats.types import struct_of
from ckpt.model import Json
from ckpt.new.fill.frames import read_columns
from ckpt.new.fitting import Misfit, fit_array
from tests.conftest import Ckpt
from tests.new.fill.test_import_state import AGGREGATION, exported
from tests.support.places import SAMPLES

LISTS: Json = {"type": "array", "elementType": "long", "containsNull": True}


@pytest.mark.parametrize(
    ("kind", "given", "found"),
    [
        ("long", pa.array([1, None, -(2**31)], pa.int32()), [1, None, -(2**31)]),
        ("double", pa.array([1.5, None, 0.1], pa.float32()), [1.5, None, float(np.float32(0.1))]),
        ("decimal(14,2)", pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)), [Decimal("1.25"), None]),
        ("decimal(14,4)", pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)), [Decimal("1.2500"), None]),
        (LISTS, pa.array([[1, None], None], pa.list_(pa.int32())), [[1, None], None]),
        (struct_of([("a", "long")]), pa.array([{"a": 1}], pa.struct({"a": pa.int16()})), [{"a": 1}]),
    ],
)
def test_a_wider_type_has_the_same_values(kind: Json, given: Any, found: list[Any]) -> None:
    assert fit_array(kind, given, np.arange(len(given)), "value").to_pylist() == found


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        ("integer", pa.array([1, 2**31]), "value has a value that integer does not have: 2147483648"),
        ("float", pa.array([0.1]), "value is of the Arrow type double, and Spark's type is float"),
        ("double", pa.array([2**53 + 1]), "value is of the Arrow type int64, and Spark's type is double"),
        ("decimal(4,2)", pa.array([Decimal("123.25")]), "value has a value that"),
        ("decimal(14,1)", pa.array([Decimal("1.25")]), "value has a value that"),
    ],
)
def test_one_that_would_lose_something_is_refused(kind: str, given: Any, told: str) -> None:
    with pytest.raises(Misfit, match=told):
        fit_array(kind, given, np.arange(len(given)), "value")


def without(export: Path, column: str, *, said: bool = True) -> Path:
    """An export of a query that had not this column yet; or, of which it was taken, though its manifest has it."""
    folder = export / "operator-0"
    for file in folder.glob("*.parquet"):
        parquet.write_table(parquet.read_table(file).drop_columns([column]), file)
    manifest = folder / "_ckpt_export.json"
    found = json.loads(manifest.read_text())
    if said:
        found["schema"]["fields"] = [one for one in found["schema"]["fields"] if one["name"] != column]
    manifest.write_text(json.dumps(found))
    return export


def test_a_column_that_is_new_is_null(tmp_path: Path) -> None:
    sample = SAMPLES / "pandas-with-state-changelog-4.2"
    given = without(exported(sample, tmp_path / "export"), "value_groupState_last")
    library.import_state(str(given), str(tmp_path / "new"), like=str(sample))
    found = library.read_state_arrow(str(tmp_path / "new"))
    assert found["value_groupState_last"].null_count == len(found) > 0
    assert found["value_groupState_rows"].null_count == 0


@pytest.mark.parametrize(
    ("column", "said", "told"),
    [
        ("value_sum", False, "the column value_sum is missing"),
        ("value_count", True, "value_count is new, and must not be NULL: add the column"),
        ("value_sum", True, "value_sum is new, and its value for a group without rows is unknown: add the column"),
        ("key_key", True, "the column key_key is missing"),
    ],
)
def test_a_column_that_was_lost_or_has_no_null_is_refused(
    column: str, said: bool, told: str, ckpt: Ckpt, tmp_path: Path
) -> None:
    given = without(exported(AGGREGATION, tmp_path / "export"), column, said=said)
    run = ckpt("import-state", given, tmp_path / "new", "--like", AGGREGATION)
    assert (run.exit_code, told in run.refusal()) == (3, True), run
    assert not any(path.is_file() for path in (tmp_path / "new").rglob("*"))


def test_which_of_two_of_a_name_is_new_is_not_guessed() -> None:
    """Of ``sum(a)`` and ``sum(b)`` one is ``value_sum``, and the other one ``value_sum_2``."""
    (unit,) = library.state_units(library.open_checkpoint(str(AGGREGATION)))
    value = struct_of([("count", "long"), ("sum", "long"), ("sum", "long")])
    grown = replace(unit, schema=struct_of([("key", struct_of([("key", "long")])), ("value", value)]))
    table = pa.table({"key_key": [1], "value_count": [1], "value_sum": [1]})
    with pytest.raises(Misfit, match="value_sum_2 is new, and several columns are called sum"):
        read_columns(grown, table, ["key_key", "value_count", "value_sum"])
    assert read_columns(grown, table.append_column("value_sum_2", [[5]]), table.column_names)


@pytest.mark.spark
def test_a_query_with_wider_types_and_one_more_aggregate_begins_with_the_old_state(spark: Any, tmp_path: Path) -> None:
    """The totals are those of all rows; the new aggregate is of the rows that it has seen."""
    own = spark.newSession()
    seen: list[list[Any]] = []
    own.conf.set("spark.sql.shuffle.partitions", "3")

    def arrive(name: str, *rows: tuple[int, int, float, float]) -> None:
        lines = [json.dumps(dict(zip(("k", "v", "f", "d"), row, strict=True))) for row in rows]
        (tmp_path / "in" / f"{name}.json").write_text("\n".join(lines))

    def start(checkpoint: str, schema: str, *more: str, condition: str = "true") -> None:
        rows = own.readStream.schema(schema).json(str(tmp_path / "in")).where(condition)
        found = rows.groupBy("k").agg(*map(functions.expr, ("max(v) AS v", "min(f) AS f", "sum(d) AS d", *more)))
        query = found.writeStream.outputMode("update").option("checkpointLocation", str(tmp_path / checkpoint))
        query = query.foreachBatch(lambda out, _: seen.append(sorted(map(tuple, out.collect()))))
        query.trigger(availableNow=True).start().awaitTermination(180)

    functions = pytest.importorskip("pyspark.sql.functions")
    (tmp_path / "in").mkdir()
    arrive("old", (1, 5, 1.5, 2.25), (2, 7, 0.5, 1.5), (1, 3, 2.5, 4))
    start("old", "k INT, v INT, f FLOAT, d DECIMAL(10,2)")
    wider = "k BIGINT, v BIGINT, f DOUBLE, d DECIMAL(14,2)"
    start("first", wider, "bit_or(v) AS bits", condition="rand() < 0")
    request = library.types.ExportRequest(str(tmp_path / "old"), to=str(tmp_path / "export"), all_units=True)
    library.export_state(replace(request, engine=library.types.Engine.NATIVE))
    library.import_state(str(tmp_path / "export"), str(tmp_path / "new"), like=str(tmp_path / "first"))

    arrive("new", (1, 2**40, 3.5, 1), (3, 4, 0.25, 0.75))
    start("new", wider, "bit_or(v) AS bits")
    assert seen[2:] == [[(1, 2**40, 1.5, Decimal("7.25"), 2**40), (3, 4, 0.25, Decimal("0.75"), 4)]]
    (kept,) = (row for row in library.read_state_arrow(str(tmp_path / "new")).to_pylist() if row["key_k"] == 2)
    assert [*kept.values()] == [2, 7, 0.5, Decimal("1.50"), False, None]


@pytest.mark.spark
def test_an_average_without_rows_is_zero_and_zero(spark: Any, tmp_path: Path) -> None:
    """Where it is NULL it stays so, whatever comes: that is why ckpt makes no NULL of it."""
    own, place = spark.newSession(), str(tmp_path / "in")
    seen: list[dict[int, float | None]] = []

    def start(checkpoint: str, condition: str = "true") -> None:
        rows = own.readStream.schema("k INT, v INT").json(place).where(condition).groupBy("k").agg({"v": "avg"})
        query = rows.writeStream.outputMode("update").option("checkpointLocation", str(tmp_path / checkpoint))
        query = query.foreachBatch(lambda out, _: seen.append(dict(map(tuple, out.collect()))))
        query.trigger(availableNow=True).start().awaitTermination(180)

    own.conf.set("spark.sql.shuffle.partitions", "1")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/old.json").write_text('{"k": 1, "v": 1}')
    start("first", "rand() < 0")
    rows = pa.table({"key_k": [1, 2], "value_sum": [None, 0.0], "value_count": [None, 0]})
    library.write_state({"operator 0": rows}, str(tmp_path / "new"), like=str(tmp_path / "first"))
    (tmp_path / "in/new.json").write_text('{"k": 1, "v": 5}\n{"k": 2, "v": 5}\n{"k": 3, "v": 5}')
    start("new")
    assert seen[1:] == [{1: None, 2: 5.0, 3: 5.0}]
