"""Points of a running query: it goes back to two of them, beyond what Spark keeps, and each row stays there once.

Rows go through a deduplication, whose state would drop rows of batches that were abandoned, to a file sink. After each
way back the query reads 20 rows a batch and not ten, so that a file of another batch would show.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.checkpoint.points import parse_point
from tests.changes.offsets.running import rate
from tests.new.copy.test_copy import files
from tests.new.copy.test_live import BUSY, newest, wait_for
from tests.support.spark import queries

pytestmark = pytest.mark.spark

CONF = {**BUSY, "spark.sql.streaming.minBatchesToRetain": "4", "spark.sql.shuffle.partitions": "2"}


def start(spark: Any, checkpoint: Path, out: Path | None, store: str, rows: int) -> Any:
    query = queries.Query("once", lambda session, _: rate(session, rows).select("value").dropDuplicates(["value"]))
    to: dict[str, Any] = {"sink": "parquet", "options": {"path": str(out)}} if out else {"sink": "noop"}
    trigger = {"processingTime": "100 milliseconds"}
    return queries.start(spark, query, checkpoint, store=store, trigger=trigger, conf=CONF, **to)


def run_to(handle: Any, checkpoint: Path, batch: int) -> None:
    try:
        wait_for(checkpoint, batch)
        assert handle.isActive, handle.exception()
    finally:
        handle.stop()


def forget(out: Path, batch: int) -> None:
    """Do what the page says of a file sink: remove the entries of its log after a batch."""
    for file in (out / "_spark_metadata").iterdir():
        if int(file.name.strip(".").partition(".")[0]) > batch:
            file.unlink()


@pytest.mark.parametrize("store", ["hdfs", "changelog", "format2"])
def test_back_to_points_of_a_running_query(store: str, spark: Any, tmp_path: Path) -> None:
    original, out, folder = tmp_path / "original", tmp_path / "out", tmp_path / "points"
    handle = start(spark, original, out, store, 10)
    sizes: list[tuple[int, int]] = []
    for batch in range(5, 31, 5):
        wait_for(original, batch)
        made = ckpt.copy(str(original), str(folder), keep="last=100")
        sizes.append((made.bytes, made.linked))
    run_to(handle, original, 32)
    assert sum(linked for _, linked in sizes) > 0
    points, before = [point for name in made.points if (point := parse_point(name))], files(folder)
    assert len(points) == 6
    checkpoint = original
    for number, point in enumerate((points[3], points[1])):
        assert point.batch < min(int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*"))
        again = tmp_path / f"again {number}"
        shutil.copytree(checkpoint, again)  # so that this application has no state of it in memory
        how: Any = {
            "to_batch": point.time,
            "from_": str(folder),
            "accept_skip": True,
            "accept_replay": True,
            "grace": 0,
        }
        plan, receipt = ckpt.rewind(
            str(again), apply=True, sink=str(out), backup=str(tmp_path / f"backup {number}"), **how
        )
        assert receipt.applied, (receipt.problem, plan.refused)
        assert (plan.to_batch, plan.point) == (point.batch, point.name)
        assert newest(again) == point.batch
        forget(out, point.batch)
        run_to(start(spark, again, out, store, 20), again, point.batch + 6)
        values = sorted(row.value for row in spark.read.parquet(str(out)).collect())
        assert values == list(range(len(values)))
        assert len(values) >= 10 * point.batch + 20 * 5
        checkpoint = again
    assert files(folder) == before, "points stay as they are"


def test_a_query_on_a_point_leaves_the_files_that_it_shares(spark: Any, tmp_path: Path) -> None:
    """Spark changes no file in place: a query runs on a copy, whose files are those of an earlier one."""
    for store in ("rocksdb", "format2"):
        original, old, new = (tmp_path / store / name for name in ("original", "old", "new"))
        run_to(start(spark, original, None, store, 10), original, 8)
        ckpt.copy(str(original), str(old))
        made = ckpt.copy(str(original), str(new), since=str(old))
        assert made.linked > made.bytes // 2
        before = files(old)
        run_to(start(spark, new, None, store, 10), new, made.batch + 12)
        time.sleep(1.5)  # maintenance
        assert files(old) == before
