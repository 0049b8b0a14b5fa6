"""``ckpt import-state`` into a query that has changed: more columns, wider types; what cannot be told is refused."""

import json
import shutil
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
from tests.new.fill.test_import_state import AGGREGATION, exported, refuse
from tests.support.places import SAMPLES
from tests.support.spark.queries import drain, own_session

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
        ("integer", pa.array([1, 2**31]), "value has a value that does not fit integer: 2147483648"),
        ("float", pa.array([0.1]), "value has the Arrow type double, but Spark's type is float"),
        ("double", pa.array([2**53 + 1]), "value has the Arrow type int64, but Spark's type is double"),
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
    assert told in refuse(ckpt, given, tmp_path / "new")


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
    own = own_session(spark, partitions=3)

    def arrive(name: str, *rows: tuple[int, int, float, float]) -> None:
        lines = [json.dumps(dict(zip(("k", "v", "f", "d"), row, strict=True))) for row in rows]
        (tmp_path / "in" / f"{name}.json").write_text("\n".join(lines))

    def start(checkpoint: str, schema: str, *more: str, condition: str = "true") -> list[list[Any]]:
        rows = own.readStream.schema(schema).json(str(tmp_path / "in")).where(condition)
        found = rows.groupBy("k").agg(*map(functions.expr, ("max(v) AS v", "min(f) AS f", "sum(d) AS d", *more)))
        return [sorted(map(tuple, out)) for out in drain(found, tmp_path / checkpoint, "update").values()]

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
    assert start("new", wider, "bit_or(v) AS bits") == [
        [(1, 2**40, 1.5, Decimal("7.25"), 2**40), (3, 4, 0.25, Decimal("0.75"), 4)]
    ]
    (kept,) = (row for row in library.read_state_arrow(str(tmp_path / "new")).to_pylist() if row["key_k"] == 2)
    assert [*kept.values()] == [2, 7, 0.5, Decimal("1.50"), False, None]


@pytest.mark.spark
def test_an_average_without_rows_is_zero_and_zero(spark: Any, tmp_path: Path) -> None:
    """Where it is NULL it stays so, whatever comes: that is why ckpt makes no NULL of it."""
    own, place = own_session(spark, partitions=1), str(tmp_path / "in")

    def start(checkpoint: str, condition: str = "true") -> list[dict[int, float | None]]:
        rows = own.readStream.schema("k INT, v INT").json(place).where(condition).groupBy("k").agg({"v": "avg"})
        return [dict(map(tuple, out)) for out in drain(rows, tmp_path / checkpoint, "update").values()]

    (tmp_path / "in").mkdir()
    (tmp_path / "in/old.json").write_text('{"k": 1, "v": 1}')
    start("first", "rand() < 0")
    rows = pa.table({"key_k": [1, 2], "value_sum": [None, 0.0], "value_count": [None, 0]})
    library.write_state({"operator 0": rows}, str(tmp_path / "new"), like=str(tmp_path / "first"))
    (tmp_path / "in/new.json").write_text('{"k": 1, "v": 5}\n{"k": 2, "v": 5}\n{"k": 3, "v": 5}')
    assert start("new") == [{1: None, 2: 5.0, 3: 5.0}]


class Rows:
    """Rows without duplicates, a file of ten in each batch."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark, self._folder = own_session(spark, partitions=2), folder
        (folder / "in").mkdir()

    def add(self, batch: int) -> None:
        lines = (json.dumps({"id": number}) for number in range(batch * 10, batch * 10 + 10))
        (self._folder / f"in/{batch}.json").write_text("\n".join(lines))

    def start(self, checkpoint: str, out: str, *, first: bool = False) -> None:
        """Run it to its end. The first start of a new query is one batch, and lets no row through."""
        source = self._spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 100 if first else 1)
        rows = source.json(str(self._folder / "in")).where("rand() < 0" if first else "true").dropDuplicates(["id"])
        drain(rows, self._folder / checkpoint, sink="parquet", path=out)

    def read(self, out: str) -> list[int]:
        return sorted(row.id for row in self._spark.read.parquet(out).collect())


@pytest.mark.spark
def test_the_old_output_of_a_file_sink(spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    query, out = Rows(spark, tmp_path), str(tmp_path / "out")
    for batch in range(3):
        query.add(batch)
    query.start("old", out)
    assert query.read(out) == list(range(30))
    assert ckpt("export-state", tmp_path / "old", "--all-units", "--to", tmp_path / "state").exit_code == 0

    query.start("skipped", out, first=True)  # its sink has batches 0 to 2 of the old query
    for words in (
        ("export-state", tmp_path / "skipped", "--all-units", "--to", tmp_path / "none"),
        ("import-state", tmp_path / "state", tmp_path / "new", "--like", tmp_path / "skipped"),
    ):
        refused = ckpt(*words)
        assert refused.exit_code == 3
        assert "CKPT428" in refused.stderr
        assert "start it once into noop, with a new checkpoint" in refused.stderr

    query.start("first", str(tmp_path / "own-out"), first=True)
    new, first = tmp_path / "new", tmp_path / "first"
    run = ckpt("import-state", tmp_path / "state", new, "--like", first)
    ids = [library.open_checkpoint(str(path)).query_id for path in (tmp_path / "old", first)]
    page = " ".join(run.stdout.split())
    assert f"It has the query id of {first}, not that of EXPORT ({ids[0]})" in page
    assert "sinks treat it as the same query" not in page
    assert run.stdout.rstrip().endswith(f"ckpt inspect {new} --sink URI")
    planned = ckpt(
        "import-state", tmp_path / "state", tmp_path / "plan", "--like", first, "--plan", "-o", "json"
    ).json()
    assert (planned["query_id"], planned["export_query_id"]) == (ids[1], ids[0])

    def ask(sink: Path | str) -> set[str]:
        asked = ckpt("inspect", new, "--spark", "4.2", "--sink", sink, "-o", "json").json()
        return {finding["code"] for finding in asked["findings"]}

    for batch in (3, 4):
        query.add(batch)
    assert "CKPT411" in ask(out)
    (tmp_path / "empty/_spark_metadata").mkdir(parents=True)
    assert "CKPT413" in ask(tmp_path / "empty"), "as after a first start into noop"
    assert not {"CKPT411", "CKPT413"} & ask(tmp_path / "own-out")
    shutil.copytree(new, tmp_path / "other")
    query.start("new", out)
    assert query.read(out) == list(range(30)), "lost, as ckpt inspect --sink had said"
    query.start("other", str(tmp_path / "own-out"))
    assert query.read(str(tmp_path / "own-out")) == list(range(30, 50))
