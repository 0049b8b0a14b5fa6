"""Starts cases with a continuous trigger, and writes to Kafka: a role of `tests/record/process.py`."""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path
from typing import Any

from tests.restart.continuous import cases
from tests.restart.oracle import observe
from tests.restart.oracle.cases import Case
from tests.support.spark import mutations, queries, topics

PATIENCE_S, EPOCHS = 25.0, 2
_UNCHANGED = 2  # times that the topic had the same rows, a second apart
PARTITIONS = ("0", "1")


def answer(spark: Any, job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run the case that a job names."""
    return run(spark, next(case for case in cases.CASES if case.name == job["case"]), folder, folder.name)


def run(spark: Any, case: Case, folder: Path, number: str) -> dict[str, Any]:
    """Start a case on a copy of its sample, wait for two epochs and all rows, and tell what was written where."""
    folder.mkdir(parents=True)
    checkpoint = mutations.copy_of(case.folder, folder / "ck", case.mutations)
    query, out = queries.QUERIES[case.query], f"out-{number}"
    kafka = query.needs == "kafka"
    options = {"kafka.bootstrap.servers": topics.options()["kafka.bootstrap.servers"], "topic": out} if kafka else {}
    sink = "kafka" if kafka and not query.stateful else "noop"
    try:
        trigger = {"continuous": "1 second"}
        handle = queries.start(spark, query, checkpoint, sink=sink, trigger=trigger, options=options)
        failure, new = _wait(handle, checkpoint)
        numbers = _wait_for_rows(spark, out) if kafka and new else []
        with contextlib.suppress(Exception):
            handle.stop()
        failure = failure or None
    except Exception as error:
        failure, new, numbers = [observe.neutral(str(error), checkpoint)[: observe.MESSAGE]], [], []
    answer: dict[str, Any] = {
        "outcome": "fails-at-start" if failure and not new else "resumes" if new else "timeout",
        "epoch": min(new, default=None),
        "error": failure,
        "rows": _describe_rows(numbers) if kafka and new else None,
    }
    if failure and not new:
        answer["offsets"] = sorted(_list_ids(checkpoint / "offsets"))
    shutil.rmtree(folder, ignore_errors=True)
    return answer


def _wait(handle: Any, checkpoint: Path) -> tuple[list[str] | None, list[int]]:
    """Wait until two epochs are committed again, or the query died: the epochs whose commit was written."""
    started, limit = time.time(), time.monotonic() + PATIENCE_S
    while time.monotonic() < limit and handle.isActive:
        written = _list_written(checkpoint, started)
        if len(written) > EPOCHS:
            return None, written
        time.sleep(0.2)
    if handle.isActive:
        return None, _list_written(checkpoint, started)
    problem = handle._jsq.streamingQuery().exception()
    lines = observe._chain(problem.get().getCause(), checkpoint) if problem.isDefined() else ["ended without an error"]
    return lines, _list_written(checkpoint, started)


def _wait_for_rows(spark: Any, topic: str) -> list[int]:
    """Read the topic until it has some rows and gets no more: the numbers that were written."""
    numbers: list[int] = []
    same = 0
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:
        rows = spark.read.format("kafka").options(**topics.options(), subscribe=topic).load()
        now = []
        with contextlib.suppress(Exception):  # the topic is made by the first row
            now = [int(row[0]) for row in rows.selectExpr("CAST(value AS STRING)").collect()]
        same = same + 1 if now and now == numbers else 0
        if same > _UNCHANGED:
            break
        numbers = now
        time.sleep(1)
    return numbers


def _list_written(checkpoint: Path, since: float) -> list[int]:
    folder = checkpoint / "commits"
    files = [folder / str(batch) for batch in _list_ids(folder)]
    return sorted(int(file.name) for file in files if file.exists() and file.stat().st_mtime >= since)


def _list_ids(folder: Path) -> set[int]:
    return {int(path.name) for path in folder.iterdir() if path.name.isdecimal()} if folder.is_dir() else set()


def _describe_rows(numbers: list[int]) -> dict[str, list[int]]:
    """For each partition of `orders`: the first offset that was written, how many rows, and how many different ones."""
    by_partition = {part: [n // 2 for n in numbers if n % 2 == int(part)] for part in PARTITIONS}
    return {part: [min(rows, default=-1), len(rows), len(set(rows))] for part, rows in by_partition.items()}
