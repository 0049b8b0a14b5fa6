"""``ckpt copy`` of a checkpoint whose query runs, restarted over other ranges: rows and state follow from the batch.

The query reads ten rows a batch and keeps running while files are copied, with snapshots and clean-up every second;
started on the copy it reads 20 rows a batch, so that a state file of a later batch would show in the counts; a batch
that was planned when it was copied has its ten.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ckpt.new.copy.copy import copy
from tests.changes.offsets.running import rate, run
from tests.changes.offsets.test_live import counted
from tests.support.places import SAMPLES
from tests.support.spark import queries
from tests.support.spark.live import EVERY_CASE

pytestmark = pytest.mark.spark

KEYS = 7
BUSY = {
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "3",
    "spark.sql.streaming.stateStore.maintenanceInterval": "1s",
    "spark.sql.streaming.minBatchesToRetain": "12",
}


def counts(session: Any, rows: int) -> Any:
    keyed = rate(session, rows).selectExpr("timestamp", "value", f"value % {KEYS} AS key")
    return keyed.groupBy("key").agg({"*": "count", "value": "sum"})


@contextmanager
def running(spark: Any, checkpoint: Path, store: str, conf: dict[str, str] = BUSY) -> Iterator[None]:
    query = queries.Query("ten rows", lambda session, _: counts(session, 10), "update")
    trigger = {"processingTime": "100 milliseconds"}
    handle = queries.start(spark, query, checkpoint, store=store, trigger=trigger, conf=conf)
    try:
        yield
        assert handle.isActive, handle.exception()
    finally:
        handle.stop()


def newest(checkpoint: Path) -> int:
    return max((int(file.name) for file in (checkpoint / "commits").glob("[0-9]*")), default=-1)


def wait_for(checkpoint: Path, batch: int) -> None:
    deadline = time.monotonic() + 120
    while newest(checkpoint) < batch:
        assert time.monotonic() < deadline, "the query does not get there"
        time.sleep(0.05)


STORES = ["hdfs", "rocksdb", "changelog", "format2"] if EVERY_CASE else ["hdfs", "format2"]


@pytest.mark.parametrize("store", STORES)
def test_a_copy_of_a_running_query_continues_exactly(store: str, spark: Any, tmp_path: Path) -> None:
    original, new = tmp_path / "original", tmp_path / "copy"
    with running(spark, original, store):
        wait_for(original, 15)
        done = copy(str(original), str(new), watcher=lambda *_: time.sleep(0.02))
        wait_for(original, done.batch + 3)
    assert newest(new) == done.batch < newest(original)

    continues(spark, new, store, starts=3)


def continues(spark: Any, checkpoint: Path, store: str, *, starts: int) -> None:
    """Batches of 20 rows on top of those that are committed; one that is planned already has its ten."""
    first = newest(checkpoint) + 1
    planned = (checkpoint / "offsets" / str(first)).exists()
    ran: dict[int, Any] = {}
    for _ in range(starts):
        ran |= run(spark, lambda session: counts(session, 20), checkpoint, store=store, mode="update", conf=BUSY)
    read, expected = [*range(first * 10)], {}
    for batch in range(first, first + len(ran)):
        last = range(len(read), len(read) + (10 if planned and batch == first else 20))
        read += last
        expected[batch] = counted(read, last)
    assert len(ran) >= starts
    assert ran == expected


def test_a_copy_through_another_storage_continues(spark: Any, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    copy(str(SAMPLES / "aggregation-changelog-4.2"), "memory://live/copy")
    copy("memory://live/copy", str(tmp_path / "copy"))
    ran = run(spark, lambda session: counts(session, 20), tmp_path / "copy", store="changelog", mode="update")
    assert ran == {10: counted(range(120), range(100, 120))}


def test_a_copy_finds_its_schemas_where_it_is(spark: Any, tmp_path: Path) -> None:
    """The sample records its schemas under a folder that is not there."""
    new, query = tmp_path / "a copy", queries.QUERIES["transform-with-state"]
    done = copy(str(SAMPLES / "tws-rocksdb-4.2"), str(new), new_id=True)
    handle = queries.start(spark, query, new, store="rocksdb")
    try:
        assert handle.awaitTermination(120)
    finally:
        handle.stop()
    assert newest(new) == done.batch + 1
    assert str(handle.id) == done.query_id
