"""A real query continues on a rewritten or imported checkpoint as on the old one: the same rows, and equal state."""

from pathlib import Path
from typing import Any

import pytest

import ckpt
from tests.rewrite.continuing import Case, found
from tests.sinks.stateful import BATCHES, NUMBERS, Numbers
from tests.spark.live import EVERY_CASE

pytestmark = pytest.mark.spark

LIVE = (
    Case("session-window-changelog-4.2", "hdfs", 3),
    Case("join-v3-changelog-4.2", None, 1, 2),
    Case("aggregation-hdfs-4.2", "rocksdb", 3, shape=ckpt.Shape.RAW),
    Case("tws-event-time-changelog-4.2", shape=ckpt.Shape.FLAT),
)
"""Both directions, both formats and both shapes, each once; with `CKPT_TEST_ALL=1` all."""
SAMPLES = (
    "aggregation-hdfs-4.2",
    "aggregation-format2-4.2",
    "aggregation-rocksdb-4.2",
    "dedup-aggregation-hdfs-4.2",
    "dedup-hdfs-4.0",
    "join-changelog-4.2",
    "join-v3-changelog-4.2",
    "limit-hdfs-4.2",
    "pandas-with-state-changelog-4.2",
    "session-window-changelog-4.2",
    "tws-event-time-changelog-4.2",
    "windowed-aggregation-hdfs-4.2",
)
EVERY = [
    Case(sample, *form)
    for sample in SAMPLES
    for form in (
        ("rocksdb", None),
        ("hdfs", None),
        (None, 3),
        ("rocksdb", 5, 1),
        ("rocksdb", 1, 2),
        (None, None, None, ckpt.Shape.FLAT),
        (None, 3, None, ckpt.Shape.RAW),
    )
    if form[-1] is not ckpt.Shape.RAW or not sample.startswith(("dedup", "limit"))  # has void, which no file holds
]


@pytest.mark.parametrize("case", EVERY if EVERY_CASE else LIVE, ids=lambda case: case.name)
def test_it_continues_as_on_the_old_one(case: Case, spark: Any, tmp_path: Path) -> None:
    told = found(spark, case, tmp_path)
    if "refused" in told:
        pytest.skip(told["refused"])
    assert any(told["old"]["state"].values())
    assert told["new"] == told["old"]


@pytest.mark.parametrize("sink", ["parquet", "delta"])
def test_a_sink_has_every_row_once(sink: str, spark: Any, tmp_path: Path) -> None:
    """The query is started on the new checkpoint as the page says: no row twice, and none dropped by the sink.

    A key that was left out is one that the query has never seen.
    """
    query, place = Numbers(spark, tmp_path, sink), tmp_path / "query"
    for batch in range(BATCHES):
        query.add(batch)
    assert query.start(place) == ""
    (place / "checkpoint").rename(tmp_path / "old")

    forgotten = {"id": "3"} if sink == "delta" else {"id": "77"}
    made = ckpt.rewrite_checkpoint(
        str(tmp_path / "old"), str(place / "checkpoint"), provider="rocksdb", partitions=3, drop_keys=[forgotten]
    )
    assert made.written
    query.add(0)
    query.add(BATCHES)

    assert query.start(place) == ""
    again = {3: 2} if sink == "delta" else {}
    assert query.times(place) == dict.fromkeys(range(NUMBERS), 1) | again
