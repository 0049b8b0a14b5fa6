"""A query continues on a pruned checkpoint: rows and state follow from the batch, at once and after a rewind.

The query runs with snapshots every three versions and keeps everything; then its logs are purged, as with a short
``minBatchesToRetain`` and runs that end before the maintenance thread deletes old state. Started again it reads 20 rows
a batch instead of ten, so that a version of state that is not the right one would show in the counts.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.changes.prune.plan import PruneReason
from ckpt.changes.rewind.plan import Replayed
from tests.changes.prune.aged import purge, state_files
from tests.new.copy.test_live import BUSY, continues, newest, running, wait_for
from tests.support.spark.live import EVERY_CASE

pytestmark = pytest.mark.spark

NOW: dict[str, Any] = {"apply": True, "grace": 0}
STORES = ["hdfs", "rocksdb", "changelog", "format2"] if EVERY_CASE else ["hdfs", "format2"]
LEFT = 4


@pytest.mark.parametrize("store", STORES)
def test_a_pruned_checkpoint_continues_exactly(store: str, spark: Any, tmp_path: Path) -> None:
    original, checkpoint, rewound = tmp_path / "original", tmp_path / "checkpoint", tmp_path / "rewound"
    with running(spark, original, store, BUSY | {"spark.sql.streaming.minBatchesToRetain": "100"}):
        wait_for(original, 15)
        wait_for_snapshots(original)
        wait_for(original, newest(original) + LEFT + 2)
    time.sleep(2)  # maintenance runs for a while after the query, and prune refuses then
    shutil.copytree(original, checkpoint)
    purge(checkpoint, LEFT)
    before = state_files(checkpoint)

    plan, receipt = ckpt.prune(str(checkpoint), **NOW)

    assert receipt.problem is None
    assert plan.refused is None, plan.why
    assert PruneReason.OLD_VERSION in {one.kind for one in plan.pruned}
    assert len(before - state_files(checkpoint)) >= 10
    shutil.copytree(checkpoint, rewound)
    continues(spark, checkpoint, store, starts=2)
    oldest = [min(int(file.name) for file in (rewound / log).glob("[0-9]*")) for log in ("offsets", "commits")]
    back_to = max(oldest) + 1  # a batch that is planned and not committed makes the two logs end apart
    accepted = NOW | {"accept_skip": True, "accept_replay": True}
    plan_back, done = ckpt.rewind(str(rewound), to_batch=back_to, replay=Replayed.NEW, **accepted)
    assert done.applied, (plan_back.refused, done.problem)
    assert newest(rewound) == back_to
    continues(spark, rewound, store, starts=2)


def wait_for_snapshots(checkpoint: Path) -> None:
    """Until maintenance has written one in each partition, which a JVM does as often as its first query asked for."""
    until = time.monotonic() + 90
    partitions = [folder for folder in (checkpoint / "state" / "0").iterdir() if folder.name.isdigit()]
    while not all([*folder.glob("*.snapshot"), *folder.glob("*.zip")] for folder in partitions):
        assert time.monotonic() < until, "no snapshot"
        time.sleep(0.3)
