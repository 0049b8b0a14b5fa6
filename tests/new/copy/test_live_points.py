"""Points of a running query: it goes back to two of them, beyond what Spark keeps, and each row stays there once.

The second way back starts from what the first one left; `record.py` has longer runs of more queries.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import ckpt
from tests.new.copy.points_expected import must_be_exact
from tests.new.copy.points_run import QUERIES, Runs
from tests.new.copy.record import CONF, MORE, Case, ask
from tests.new.copy.test_copy import files
from tests.new.copy.test_live import wait_for
from tests.support.spark import queries
from tests.support.spark.live import Here

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("store", ["hdfs", "changelog", "format2"])
def test_back_to_points_of_a_running_query(store: str, spark: Any, tmp_path: Path) -> None:
    told = ask(Here(spark, Runs().answer), Case("once", store), tmp_path, batches=32, every=5, back=2, fresh=False)
    assert len(told["points"]) == 2
    must_be_exact("once", told["points"], MORE + 1)


def run_to(spark: Any, checkpoint: Path, store: str, batch: int) -> None:
    trigger = {"processingTime": "100 milliseconds"}
    handle = queries.start(spark, QUERIES["once"], checkpoint, store=store, trigger=trigger, conf=CONF)
    try:
        wait_for(checkpoint, batch)
        assert handle.isActive, handle.exception()
    finally:
        handle.stop()


def test_a_query_on_a_point_leaves_the_files_that_it_shares(spark: Any, tmp_path: Path) -> None:
    """Spark changes no file in place: a query runs on a copy, whose files are those of an earlier one."""
    for store in ("rocksdb", "format2"):
        original, old, new = (tmp_path / store / name for name in ("original", "old", "new"))
        run_to(spark, original, store, 8)
        ckpt.copy(str(original), str(old))
        made = ckpt.copy(str(original), str(new), since=str(old))
        assert made.linked > made.bytes // 2
        before = files(old)
        run_to(spark, new, store, made.batch + 12)
        time.sleep(1.5)  # maintenance
        assert files(old) == before
