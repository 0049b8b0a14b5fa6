"""The versions that ckpt names are started as a run of a pipeline starts them: as an ordinary query into the table.

Whole runs of pipelines need packages that the test run does not have; they are recorded (`record.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ckpt
from tests.restart.pipelines.lab import TABLES, read_table

pytestmark = pytest.mark.spark


def put(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    rows = ({"k": f"k{n}", "n": n} for n in range(number * 4, number * 4 + 4))
    (folder / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(spark: Any, source: Path, table: Path, checkpoint: Path) -> None:
    rows = spark.readStream.schema("k STRING, n INT").option("maxFilesPerTrigger", 1).json(str(source))
    writer = rows.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.format("parquet").start(str(table)).awaitTermination()


def test_a_flow_continues_from_an_ordinary_query_and_not_from_a_version_without_a_batch(
    spark: Any, tmp_path: Path
) -> None:
    source, table, flow = tmp_path / "in", tmp_path / "table", tmp_path / "storage" / TABLES.partition("/")[2] / "t/t"
    (tmp_path / "storage").mkdir()
    for number in range(2):
        put(source, number)
    run(spark, source, table, tmp_path / "ordinary")
    ckpt.copy(str(tmp_path / "ordinary"), str(flow))
    put(source, 2)

    run(spark, source, table, Path(ckpt.inspect(str(flow)).checkpoint.uri))

    assert read_table(table) == [12, 12]
    for file in source.iterdir():
        file.unlink()
    put(source, 3)
    (flow / "7").mkdir()
    found = ckpt.inspect(str(flow), sink=str(table))
    assert {"CKPT256"} <= {rated.finding.diagnosis.code for rated in found.findings}
    run(spark, source, table, Path(found.checkpoint.uri))
    assert read_table(table) == [12, 12]
    (flow / "7").rename(flow / "7.unused")
    run(spark, source, table, Path(ckpt.inspect(str(flow)).checkpoint.uri))
    assert read_table(table) == [16, 16]
