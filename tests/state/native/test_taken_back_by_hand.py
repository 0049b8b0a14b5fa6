"""HDFS-backed state of a query that was taken back by hand: what the page says of a snapshot that stayed."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

import ckpt
from tests.conftest import CopyOf
from tests.support.spark import queries
from tests.support.spark.plans import WITHOUT

pytestmark = pytest.mark.spark
KEPT, LAST = 5, 9
"""Batches: the newest that is kept, and the last of the sample, whose `8.snapshot` stays: the state after batch 7."""


def test_a_snapshot_that_stayed_is_named(spark: Any, copy_of: CopyOf) -> None:
    """Where the page shows other rows than the query had, as Spark's reader does, it says so."""
    checkpoint = copy_of("aggregation-hdfs-4.2")
    for log in ("offsets", "commits"):
        for batch in range(KEPT + 1, LAST + 1):
            (checkpoint / log / str(batch)).unlink()
            (checkpoint / log / f".{batch}.crc").unlink(missing_ok=True)
    had: dict[int, dict[int, int]] = {}
    ended = Event()

    def keep(rows: Any, batch: int) -> None:
        had[batch] = {row["key"]: row["sum(value)"] for row in rows.collect()}
        if batch > LAST:
            ended.set()
            Event().wait(5)

    trigger = {"processingTime": "0 seconds"}
    query, conf = queries.QUERIES["aggregation"], {WITHOUT: str(KEPT + 1)}
    handle = queries.start(spark, query, checkpoint, store="hdfs", sink=keep, trigger=trigger, conf=conf)
    try:
        assert ended.wait(120)
    finally:
        handle.stop()
    spark.streams.active  # noqa: B018  (without it a reader finds no coordinator)
    differs, named = [], []
    for batch in range(KEPT + 1, LAST + 1):
        shown = ckpt.state_show(str(checkpoint), batch=batch)
        rows = {row["key_key"]: row["value_sum"] for row in shown.rows}
        read = spark.read.format("statestore").option("batchId", batch).load(str(checkpoint))
        assert rows == {row["k"]: row["s"] for row in read.selectExpr("key.key AS k", "value.sum AS s").collect()}
        differs.append(any(rows[key] != total for key, total in had[batch].items()))
        named.append(shown.foreign_snapshots)
    assert differs[:2] == [False, True]
    assert [bool(snapshots) for snapshots in named] == [False, True, True, True]
    assert {path.rpartition("/")[2] for snapshots in named for path in snapshots} == {"8.snapshot"}
