"""A batch whose logs are gone but for their checksums, really run again after ``ckpt repair``: rows are counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ckpt.changes.fixes.repair import repair
from tests.support.spark.queries import drain

pytestmark = pytest.mark.spark


def test_rows_come_again_as_the_plan_says(spark: Any, tmp_path: Path) -> None:
    """An append sink gets the rows of the lost batch twice; the plan names the range, and asks to accept it."""
    files, checkpoint, written = tmp_path / "in", tmp_path / "checkpoint", Counter[str]()
    files.mkdir()

    def start() -> None:
        lines = spark.readStream.format("text").load(str(files))
        written.update(row.value for batch in drain(lines, checkpoint).values() for row in batch)

    for batch in range(3):
        (files / f"{batch}.txt").write_text(f"{batch}a\n{batch}b\n")
        start()
    assert set(written.values()) == {1}
    for log in ("offsets", "commits", "sources/0"):
        (checkpoint / log / "2").unlink()
        if log == "sources/0":
            (checkpoint / log / ".2.crc").unlink()

    plan, receipt = repair(str(checkpoint), apply=True, grace=0)
    assert not receipt.applied
    assert [(replay.batch, replay.finished) for replay in plan.replay or ()] == [(2, True)]
    _, receipt = repair(str(checkpoint), apply=True, grace=0, accept_replay=True, accept_skip=True)
    assert receipt.applied, receipt.problem
    start()
    assert written == {"0a": 1, "0b": 1, "1a": 1, "1b": 1, "2a": 2, "2b": 2}
