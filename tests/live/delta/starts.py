"""Makes Delta tables, lets something happen to them and starts queries on them: a role."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.live.delta.cases import HISTORIES, INCIDENTS, Table, remove
from tests.live.running import finish, newest_offsets


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    place = Path(job["place"])
    do: dict[str, Callable[..., dict[str, Any]]] = {"make": make, "happen": happen, "start": start}
    return do[job["do"]](spark, place, job)


def make(spark: Any, place: Path, job: dict[str, Any]) -> dict[str, Any]:
    """A table and the checkpoint of a query that has read some of it."""
    history, table = HISTORIES[job["history"]], Table(spark, place)
    for version, (rows, files) in enumerate(history.versions):
        table.append(version, rows, files)
        if version in history.starts:
            start(spark, place, {"options": {"maxFilesPerTrigger": "1"}, "most": history.batches})
    for number in range(history.batches, 50):
        for folder in ("offsets", "commits"):
            remove(place / "checkpoint" / folder / str(number))
    return {}


def happen(spark: Any, place: Path, job: dict[str, Any]) -> dict[str, Any]:
    """A copy of what was made, to which something happens."""
    shutil.copytree(job["of"], place)
    history = HISTORIES[job["history"]]
    if not job["committed"]:
        remove(place / "checkpoint" / "commits" / str(history.batches - 1))
    INCIDENTS[job["incident"]](Table(spark, place))
    return {}


def start(spark: Any, place: Path, job: dict[str, Any]) -> dict[str, Any]:
    """The batches that ran with their rows, Spark's error, and the newest offsets file that is there afterwards."""
    checkpoint, own = place / job.get("checkpoint", "checkpoint"), spark.newSession()
    for key, value in job.get("conf", {}).items():
        own.conf.set(key, value)
    Table(spark, place).forget()
    rows = own.readStream.format("delta").options(**job.get("options", {})).load(str(place / "table"))
    handle = (
        rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    )
    error, reports = finish(handle, lambda: handle.awaitTermination(60))
    ran: list[list[int]] = []
    for report in reports:
        if report["numInputRows"] or report["batchId"] not in [batch for batch, _ in ran]:
            ran.append([report["batchId"], report["numInputRows"]])
    return {"error": error and _short(error), "batches": ran, "newest": newest_offsets(checkpoint)}


def _short(text: str) -> str:
    """Without the query, ids and places."""
    text = re.sub(
        r"\s+", " ", re.sub(r".*terminated with exception: ", "", text.partition("\n=== Streaming")[0], flags=re.S)
    )
    return re.sub(r"(file:)?/[^ ,]*/", "", re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text))[:400]
