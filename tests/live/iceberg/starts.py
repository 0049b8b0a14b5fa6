"""Makes Iceberg tables, lets something happen to them and starts queries on them: a role.

An Iceberg table names its files by absolute paths, so every table is made, and put back, at one place: `now` beside
the copies of what was made.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.live.iceberg.cases import HISTORIES, INCIDENTS, TABLE, Table, active_session
from tests.live.running import finish, newest_offsets
from tests.support.remedies import remove


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """What came of a job, in a session of its own whose catalog is in the folder `root`."""
    root = Path(job["place"])
    do: dict[str, Callable[..., dict[str, Any]]] = {"make": make, "happen": happen, "start": start, "append": append}
    with active_session(spark, root) as own:
        return do[job["do"]](own, root, job)


def make(spark: Any, root: Path, job: dict[str, Any]) -> dict[str, Any]:
    """A table and the checkpoint of a query that has read some of it, copied to the folder `copy`."""
    shutil.rmtree(root, ignore_errors=True)
    history, table = HISTORIES[job["history"]], Table(spark)
    table.create()
    for number, (rows, files) in enumerate(history.snapshots):
        table.append(number if number < 2 else 100 + number, rows, files)  # whose ids nothing deletes
        if number in history.starts:
            start(spark, root, {"options": {"streaming-max-files-per-micro-batch": "1"}})
    for batch in range(history.batches, 50):
        for folder in ("offsets", "commits"):
            remove(root / "checkpoint" / folder / str(batch))
    shutil.copytree(root, job["copy"])
    return {}


def happen(spark: Any, root: Path, job: dict[str, Any]) -> dict[str, Any]:
    """What was made is put back, and something happens to it."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(job["of"], root)
    if not job["committed"]:
        remove(root / "checkpoint" / "commits" / str(HISTORIES[job["history"]].batches - 1))
    INCIDENTS[job["incident"]](Table(spark))
    return {}


def append(spark: Any, root: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Rows that come later."""
    Table(spark).append(job["number"])
    return {}


def start(spark: Any, root: Path, job: dict[str, Any]) -> dict[str, Any]:
    """The batches that ran with their rows, Spark's error, and the newest offsets file that is there afterwards."""
    checkpoint, now = root / job.get("checkpoint", "checkpoint"), job.get("available_now", False)
    rows = spark.readStream.format("iceberg").options(**job.get("options", {})).load(TABLE)
    out = root / f"out of {checkpoint.name}"
    writer = rows.writeStream.format("json" if "out" in job else "noop").option("path", str(out))
    writer = writer.option("checkpointLocation", str(checkpoint))
    handle = writer.trigger(**({"availableNow": True} if now else {"processingTime": "0 seconds"})).start()
    error, reports = finish(handle, (lambda: handle.awaitTermination(60)) if now else handle.processAllAvailable)
    ran = [[report["batchId"], report["numInputRows"]] for report in reports if report["numInputRows"]]
    ids = sorted(json.loads(line)["id"] for file in out.glob("*.json") for line in file.read_text().splitlines())
    said = {"error": error and _short(error), "batches": ran, "newest": newest_offsets(checkpoint)}
    return said | ({"ids": ids} if "out" in job else {})


def _short(text: str) -> str:
    """Without the query and ids."""
    text = re.sub(r".*terminated with exception: ", "", text.partition("\n=== Streaming")[0], flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text))[:300]
