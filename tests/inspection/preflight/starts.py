"""Makes the checkpoints of `changes.py`, and starts changed queries on copies: a role of `tests/record/process.py`."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import ckpt
import ckpt.inspection.preflight as readiness
from tests.inspection.preflight import changes
from tests.support.spark import queries

STARTS = 2


def frame(spark: Any, base: changes.Base, folder: Path, **more: str) -> Any:
    """The unstarted query, in a session of its own with the settings of its base."""
    own = spark.newSession()
    for name, value in {**base.settings, **more}.items():
        own.conf.set(name, value)
    return base.build(own, folder / "inputs")


def start(frame: Any, output_mode: str, checkpoint: Path) -> dict[str, Any]:
    """Start a query for what is there: the error condition, or the class of the innermost cause."""
    query = None
    try:
        writer = frame.writeStream.outputMode(output_mode).format("noop").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(120)
        return {"error": "still running" if query.isActive else None, "text": None}
    except Exception as error:
        text = str(error)
        named = re.findall(r"\[([A-Z][A-Z0-9_]{4,}(?:\.[A-Z0-9_]+)*)\]", text)
        named = [one for one in named if one != "STREAM_FAILED"]
        first = next((line for line in text.splitlines() if line.strip()), "")
        return {"error": named[-1] if named else type(error).__name__, "text": first[:300]}
    finally:
        if query is not None and query.isActive:
            query.stop()


def trace(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder: the time of its last change, and its bytes."""
    return {str(one): (one.stat().st_mtime_ns, one.read_bytes()) for one in sorted(root.rglob("*")) if one.is_file()}


def offsets(checkpoint: Path) -> list[int]:
    return sorted(int(one.name) for one in (checkpoint / "offsets").iterdir() if one.name.isdigit())


def forget(spark: Any) -> None:
    """Let go of loaded state stores."""
    with suppress(Exception):
        spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.unloadAll()


def try_change(spark: Any, change: changes.Change, checkpoint: Path, folder: Path) -> dict[str, Any]:
    """What ckpt says of a change, and then what Spark does; the checkpoint is put back afterwards."""
    base = changes.BY_NAME[change.base]
    base = replace(base, build=change.build or base.build, output_mode=change.output_mode or base.output_mode)
    shutil.copytree(checkpoint, folder / "as it was")
    try:
        built = frame(spark, base, folder, **change.conf)
        before = trace(checkpoint)
        found = ckpt.preflight(str(checkpoint), query=built, output_mode=base.output_mode)
        described = ckpt.describe_query(built, output_mode=base.output_mode, checkpoint=str(checkpoint))
        touched = trace(checkpoint) != before
        before_start = offsets(checkpoint)
        ran = start(built, base.output_mode, checkpoint)
        return {
            "python": {
                "go": found.go,
                "codes": [one.finding.diagnosis.code for one in (*found.holds, *found.warnings)],
                "details": [one.finding.detail for one in found.holds],
                "unknown": [*map(str, found.unknown)],
                "touched": touched,
            },
            "query": json.loads(described.to_json()),
            "spark": {**ran, "left": [one for one in offsets(checkpoint) if one not in before_start]},
        }
    finally:
        forget(spark)
        shutil.rmtree(checkpoint)
        shutil.move(folder / "as it was", checkpoint)


def make(spark: Any, base: changes.Base, folder: Path) -> Path:
    checkpoint = folder / "bases" / base.name
    for _ in range(STARTS):
        ran = start(frame(spark, base, folder), base.output_mode, checkpoint)
        assert ran["error"] is None, (base.name, ran)
    forget(spark)
    return checkpoint


class Making:
    """Checkpoints of bases, each made for its first change."""

    def __init__(self) -> None:
        self._made: dict[str, Path] = {}

    def answer(self, spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
        """Try a change on the checkpoint of its base, or nothing on one that another version made."""
        readiness._RECENT_S = 0.0  # nobody else writes here
        folder, base = Path(job["folder"]), changes.BY_NAME[job["base"]]
        for name in ("inputs", "moved"):
            if not (folder / name).exists():
                queries.write_input_files(folder / name, 12)
        if "made" in job:
            return try_change(spark, changes.Change("nothing", base.name), Path(job["made"]), folder)
        if base.name not in self._made:
            self._made[base.name] = make(spark, base, folder)
        minor = ".".join(spark.version.split(".")[:2])
        change = next(change for change in changes.changes(minor) if change.id == job["change"])
        return try_change(spark, change, self._made[base.name], folder)


answer = Making().answer
