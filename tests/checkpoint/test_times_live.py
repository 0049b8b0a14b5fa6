"""A time names the batch whose commit was the newest file at that moment, as somebody saw who looked at a query."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.times import find_batch
from ckpt.storage import open_storage
from tests.new.copy.test_live import running

pytestmark = pytest.mark.spark


def test_a_query_that_was_watched(spark: Any, tmp_path: Path) -> None:
    commits, seen = tmp_path / "cp" / "commits", list[tuple[float, int]]()
    with running(spark, tmp_path / "cp", "hdfs"):
        while not seen or seen[-1][1] < 8:
            began = time.time()
            newest = max((int(file.name) for file in commits.glob("[0-9]*") if file.name.isdecimal()), default=-1)
            if time.time() - began < 0.02:  # a file that comes meanwhile may be seen, or not
                seen.append((began, newest))
            time.sleep(0.02)
    checkpoint = read_checkpoint(open_storage(str(tmp_path / "cp"), {}), batches=0)
    near = 0.05  # between the time of a file and its name, by which Spark's commits are renamed into place
    calm = [
        (at, newest)
        for (before, first), (at, newest), (after, last) in zip(seen, seen[1:], seen[2:], strict=False)
        if first == newest == last and newest >= 0 and at - before < near and after - at < near
    ]
    assert {newest for _, newest in calm} >= {*range(1, 8)}
    for at, newest in calm:
        assert find_batch(checkpoint, datetime.fromtimestamp(at, UTC)) == newest
