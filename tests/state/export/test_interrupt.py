"""Ctrl-C while Spark writes: the job is cancelled and what was written is gone; until then its tasks are counted."""

from __future__ import annotations

import os
import signal
import sys
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from ckpt.state.export.request import ExportRequest, plan_export
from ckpt.state.export.targets import Format
from commands.watching import bar
from tests.support.places import SAMPLES


@pytest.mark.spark
def test_ctrl_c_cancels_the_job_and_cleans_up(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real signal, sent once Spark's own count says that tasks are running that would take minutes."""
    from pyspark.sql.functions import udf

    from ckpt.spark import export as exporting

    path, shape_reading = str(SAMPLES / "aggregation-hdfs-4.2"), exporting.shape_reading
    plan = plan_export(ExportRequest(path, to=str(tmp_path / "out"), format=Format.JSON))

    def shape_slowly(*what: Any, **how: Any) -> Any:
        frame, part = shape_reading(*what, **how)
        return frame.withColumn("slow", udf(lambda: time.sleep(100), "int")()), part

    monkeypatch.setattr(exporting, "shape_reading", shape_slowly)
    counted: list[tuple[int, int]] = []

    def watcher(done: int, total: int) -> None:
        counted.append((done, total))
        if len(counted) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        exporting.write_exports(spark, plan, watcher)

    assert time.monotonic() - began < 100
    assert counted[0][0] == 0
    assert counted[0][1] > 0
    assert list(tmp_path.iterdir()) == []
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + 30
    while tracker.getActiveJobsIds() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert tracker.getActiveJobsIds() == []


class Terminal(StringIO):
    """A standard error that somebody watches."""

    def isatty(self) -> bool:
        return True


def test_the_bar_is_for_people_who_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with bar(quiet=False) as show:
        assert show is not None
        show(3, 6)
        assert "\r  [###############...............] 3 of 6 tasks" in terminal.getvalue()
    assert terminal.getvalue().endswith(" \r")
    with bar(quiet=True) as show:
        assert show is None
    monkeypatch.setattr(sys, "stderr", StringIO())
    with bar(quiet=False) as show:
        assert show is None
