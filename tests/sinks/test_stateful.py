"""A stateful query into the file sink goes back by a batch: the sink passes over it, and Spark does not compute it."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ckpt.ways.rewind import rewind
from tests.remedies import NOW

pytestmark = pytest.mark.spark

BATCHES, ROWS = 4, 10
NEWEST = BATCHES - 1


class Numbers:
    """Numbers without duplicates, a file of them in each batch, as Parquet files."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark, self._folder = spark.newSession(), folder
        self._spark.conf.set("spark.sql.shuffle.partitions", "1")

    def add(self, batch: int) -> None:
        rows = self._spark.range(batch * ROWS, (batch + 1) * ROWS).coalesce(1)
        rows.write.mode("append").json(str(self._folder / "in"))

    def start(self, place: Path, *, noop: bool = False) -> str:
        """Run it to the end, or one batch into nothing; what it failed with."""
        rows = self._spark.readStream.option("maxFilesPerTrigger", "1").json(str(self._folder / "in"), "id LONG")
        writer = rows.dropDuplicates(["id"]).writeStream.option("checkpointLocation", str(place / "checkpoint"))
        to = writer.format("noop") if noop else writer.format("parquet").option("path", str(place / "out"))
        try:
            (to.trigger(once=True) if noop else to.trigger(availableNow=True)).start().awaitTermination(300)
        except Exception as error:
            return str(error)
        return ""

    def copy(self, place: Path, name: str) -> Path:
        """Checkpoint and output at another place; the log of the sink names its files by absolute path."""
        to = place.with_name(name)
        shutil.copytree(place, to)
        for file in (to / "out" / "_spark_metadata").glob("[0-9]*"):
            file.write_text(file.read_text().replace(f"{place}/", f"{to}/"))
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        return to

    def times(self, place: Path) -> dict[int, int]:
        """How often each number is in the output."""
        rows = self._spark.read.parquet(str(place / "out")).collect()
        return dict(sorted(Counter(row.id for row in rows).items()))


def test_one_start_into_noop_brings_the_state_back(spark: Any, tmp_path: Path) -> None:
    query, old = Numbers(spark, tmp_path), tmp_path / "old"
    for batch in range(BATCHES):
        query.add(batch)
    assert query.start(old) == ""
    plan, receipt = rewind(str(old / "checkpoint"), to_batch=NEWEST - 1, backup=str(tmp_path / "backup"), **NOW)
    assert receipt.applied
    assert any('.writeStream.format("noop").trigger(once=True)' in text for text in plan.warnings)
    query.add(BATCHES)
    at_once, through_noop = query.copy(old, "at-once"), query.copy(old, "through-noop")

    assert f"/state/0/0/{BATCHES}.delta" in query.start(at_once)
    assert query.start(through_noop, noop=True) == ""
    assert query.start(through_noop) == ""
    assert query.times(through_noop) == dict.fromkeys(range((BATCHES + 1) * ROWS), 1)
