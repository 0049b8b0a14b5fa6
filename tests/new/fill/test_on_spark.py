"""``ckpt import-state --engine spark``: executors write what one process does, or nothing."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ckpt
from ckpt.errors import CkptError
from tests.new.fill.test_import_state import exported
from tests.new.rewrite.continuing import frames, state
from tests.new.rewrite.test_dropping import rows
from tests.support.places import SAMPLES

pytestmark = pytest.mark.spark
CASES: list[tuple[str, dict[str, Any]]] = [
    ("aggregation-hdfs-4.2", {"provider": "rocksdb", "partitions": 5}),
    ("session-window-changelog-4.2", {"partitions": 2}),
    ("join-changelog-4.2", {"provider": "hdfs"}),
    ("join-v3-changelog-4.2", {"partitions": 3}),
    ("limit-hdfs-4.2", {"provider": "rocksdb", "partitions": 3}),
    ("tws-format2-4.3", {"partitions": 7}),
]


@pytest.mark.parametrize(("sample", "form"), CASES, ids=[sample for sample, _ in CASES])
def test_an_export_becomes_what_one_machine_makes_of_it(
    sample: str, form: dict[str, Any], by: Any, tmp_path: Path
) -> None:
    old, export = SAMPLES / sample, exported(SAMPLES / sample, tmp_path / "export")
    here = ckpt.import_state(str(export), str(tmp_path / "here"), like=str(old), **form)
    there = ckpt.import_state(str(export), str(tmp_path / "there"), like=str(old), engine=by, **form)
    assert there.written
    assert rows(tmp_path / "there") == rows(tmp_path / "here")
    assert state(tmp_path / "there") == state(old)
    assert [unit.rows for unit in there.units] == [unit.rows for unit in here.units]
    assert ckpt.state_verify(str(tmp_path / "there")).damages == ()


def test_dataframes_stay_where_they_are(by: Any, spark: Any, tmp_path: Path) -> None:
    """One unit's rows are in a DataFrame, the others' in memory of the driver."""
    old = SAMPLES / "tws-rocksdb-4.2"
    given = frames(old, "flat")
    label = max(given, key=lambda one: given[one].num_rows)
    spread = spark.createDataFrame(given[label].to_pandas(), _schema(given[label])).repartition(3)
    made = ckpt.write_state({**given, label: spread}, str(tmp_path / "new"), like=str(old), partitions=3, engine=by)
    assert made.written
    assert state(tmp_path / "new") == state(old)
    planned = ckpt.write_state({**given, label: spread}, str(tmp_path / "x"), like=str(old), engine=by, partitions=3)
    assert [unit.rows for unit in planned.units] == [unit.rows for unit in made.units]


def _schema(table: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(table.schema)


@pytest.mark.parametrize("twice", [True, False])
def test_a_row_that_is_refused_is_named_and_nothing_is_left(twice: bool, by: Any, tmp_path: Path) -> None:
    old = SAMPLES / "aggregation-hdfs-4.2"
    export = exported(old, tmp_path / "export")
    file = max(export.rglob("*.parquet"), key=lambda one: parquet.read_metadata(one).num_rows)
    table = parquet.read_table(file)
    again, without = pa.concat_tables([table, table.slice(0, 1)]), table.drop_columns([table.column_names[-1]])
    parquet.write_table(again if twice else without, file)
    said = set()
    for engine in (None, by):
        with pytest.raises(CkptError) as refusal:
            ckpt.import_state(str(export), str(tmp_path / "new"), like=str(old), partitions=4, engine=engine)
        said.add(str(refusal.value))
        assert not (tmp_path / "new").exists()
    (text,) = said
    assert file.name in text
    if twice:
        assert f"row {len(again)}, " in text
        assert text.endswith("its key is that of row 1")


def test_a_plan_checks_every_row_and_writes_nothing(by: Any, tmp_path: Path) -> None:
    old = SAMPLES / "aggregation-hdfs-4.2"
    export = exported(old, tmp_path / "export")
    made = ckpt.import_state(str(export), str(tmp_path / "new"), like=str(old), plan=True, engine=by)
    assert not made.written
    assert [unit.rows for unit in made.units] == [len(frames(old, "flat")["operator 0"])]
    assert not (tmp_path / "new").exists()
