"""Exports by both engines: the same columns, types, NULLs, rows and manifest in the same kind of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ckpt as ckpt_library
from ckpt.state.export.request import Engine
from ckpt.state.reading.units import state_units
from ckpt.versions import Spark
from tests.conftest import Ckpt
from tests.state.export import rows
from tests.state.export.test_samples import _of_other_columns
from tests.state.native.test_live import run
from tests.support.places import SAMPLES

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("sample", _of_other_columns())
def test_samples(sample: str, spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    for unit in state_units(ckpt_library.open_checkpoint(str(SAMPLES / sample))):
        if unit.oldest_spark is not None and not Spark(spark.version[:3]).at_least(unit.oldest_spark):
            pytest.skip(f"Spark {spark.version} cannot read it")
    words = ["export-state", SAMPLES / sample, "--all-units"]
    compare(words, spark, ckpt, tmp_path)


COLUMNS = {
    "b": "value % 2 = 0",
    "ti": "CAST(value - 3 AS TINYINT)",
    "si": "CAST(-value AS SMALLINT)",
    "d5": "CAST(value / 7 AS DECIMAL(5, 2))",
    "d9": "CAST(-value AS DECIMAL(9, 0))",
    "d18": "CAST(value * 100000 AS DECIMAL(18, 4))",
    "d20": "CAST(value * 100000 AS DECIMAL(20, 4))",
    "ntz": "CAST(timestamp AS TIMESTAMP_NTZ)",
    "nested": "array(named_struct('s', CAST(value AS SMALLINT), 'd', CAST(value AS DECIMAL(7, 1))))",
    "old": "DATE'1500-01-01'",
    "m": "map(CAST(value AS TINYINT), TIMESTAMP_NTZ'1500-01-01 00:00:00')",
}


def test_types(spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    """Keys and values of types that no sample has, and NULL of each."""
    from pyspark.sql import functions as F

    def query(source: Any) -> Any:
        keys = [
            F.expr(f"IF(value = 4, NULL, {sql})").alias(f"k_{name}") for name, sql in COLUMNS.items() if name != "m"
        ]
        values = {name: F.expr(f"IF(value % 5 = 0, NULL, {sql})") for name, sql in COLUMNS.items()}
        columns = source.select(*keys, *(column.alias(name) for name, column in values.items()))
        grouped = columns.groupBy(*(f"k_{name}" for name in COLUMNS if name != "m"))
        return grouped.agg(*(F.first(name).alias(f"first_{name}") for name in COLUMNS))

    compare(["export-state", run(spark, tmp_path / "ck", query, {}), "--all-units"], spark, ckpt, tmp_path)


def compare(words: list[Any], spark: Any, ckpt: Ckpt, tmp_path: Path) -> None:
    """Export with each engine, and compare all that a reader can see."""
    for engine in (Engine.SPARK, Engine.NATIVE):
        done = ckpt(*words, "--to", tmp_path / engine, "--engine", engine)
        assert done.exit_code == 0, done.stderr
    one, other = tmp_path / Engine.SPARK, tmp_path / Engine.NATIVE
    assert _manifest(one) == _manifest(other)
    assert _manifest(one)["folders"]
    for folder in (path for path in one.iterdir() if path.is_dir()):
        mine = other / folder.name
        assert _manifest(folder) == _manifest(mine)
        assert _names(folder) == _names(mine)
        (told,), (said,) = _footers(folder), _footers(mine)
        assert told == said
        frames = [spark.read.parquet(str(place)) for place in (folder, mine)]
        assert frames[0].schema == frames[1].schema
        assert rows.content(frames[0]) == rows.content(frames[1])


def _manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "_ckpt_export.json").read_text())
    assert (found.pop("engine"), found.pop("spark") is None) in (("native", True), ("spark", False))
    return found


def _names(folder: Path) -> set[str]:
    """The files, but for the name of a run, and for what Hadoop keeps beside them."""
    names = {path.name for path in folder.iterdir() if not path.name.endswith(".crc")}
    return {"part" if name.startswith("part-") and name.endswith("-c000.snappy.parquet") else name for name in names}


def _footers(folder: Path) -> set[tuple[str, str]]:
    """The Parquet schema of the files, and Spark's own in them."""
    from pyarrow import parquet

    found = set()
    for path in folder.glob("*.parquet"):
        file = parquet.ParquetFile(path)
        kept = file.metadata.metadata or {}
        assert kept[b"org.apache.spark.version"] >= b"4"
        columns = str(file.schema).partition("{")[2]
        found.add((columns, json.dumps(json.loads(kept[b"org.apache.spark.sql.parquet.row.metadata"]))))
    return found
