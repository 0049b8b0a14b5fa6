"""Runs a query whose changelog checkpointing is switched on and off.

After each switch it runs one batch, at least nine more, and is started twice again. `test_changelog.py` gets what `ckpt
migrate changelog` said at each point, which state files were there, and the state by Spark's own reader. A control is
never switched. No batch runs without rows, so that batch N is the same in both.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.cli import invoke
from tests.support.spark.answers import answer
from tests.support.spark.queries import QUERIES, start
from tests.support.spark.recording import digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT2 = {"spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}

RUNS: dict[str, tuple[str, dict[str, str]]] = {
    "aggregation": ("aggregation", {}),
    "join": ("join", {}),
    "transform-with-state": ("transform-with-state-event-time", {}),
    "format2": ("aggregation", FORMAT2),
}
"""Queries, and settings of theirs."""

_CONF = {
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stateStore.maintenanceInterval": "300ms",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "3",
}
_PATIENCE_S = 300


def told(checkpoint: Path, to: str, *words: str) -> dict[str, Any]:
    """What ckpt says of a switch, in this process, so that it compares state in the session that is there."""
    ran = invoke("migrate", "changelog", checkpoint, "--to", to, "-o", "json", *words)
    document: dict[str, Any] = json.loads(ran.stdout)
    return document | {"exit": ran.exit_code}


def run(spark: SparkSession, query: str, checkpoint: Path, store: str, conf: dict[str, str], batches: int = 0) -> None:
    """Start a query for one batch, or until it has committed so many more; a busy machine may be late with a worker."""
    wanted = committed(checkpoint) + batches
    trigger = {"processingTime": "500 milliseconds"} if batches else None
    for patience in (*[True] * 8, False):
        try:
            running = start(spark, QUERIES[query], checkpoint, store=store, conf=conf | _CONF, trigger=trigger)
            until = time.monotonic() + _PATIENCE_S
            while running.isActive and (not batches or committed(checkpoint) < wanted) and time.monotonic() < until:
                running.awaitTermination(0.2)
            running.stop()
            assert committed(checkpoint) >= wanted
            break
        except Exception as error:
            if "Python worker failed to connect back" not in str(error) or not patience:
                raise


def committed(checkpoint: Path) -> int:
    return len([*(checkpoint / "commits").glob("[0-9]*")])


def files(checkpoint: Path) -> list[str]:
    return sorted(str(path.relative_to(checkpoint)) for path in (checkpoint / "state").rglob("*") if path.is_file())


def tampered(checkpoint: Path, version: int) -> Path:
    """A copy in which a changelog holds once more what the one before it held."""
    copy = checkpoint.with_name("tampered")
    shutil.copytree(checkpoint, copy)
    folder = next(path.parent for path in sorted((copy / "state/0/0").rglob(f"{version}.changelog")) if _rows(path))
    for name in ("{}.changelog", ".{}.changelog.crc"):
        shutil.copyfile(folder / name.format(version - 1), folder / name.format(version))
    return copy


def _rows(path: Path) -> bool:
    """Whether a store of a join holds rows, not how many there are; other stores do."""
    return not path.parent.name.endswith("keyToNumValues")


def switched(spark: SparkSession, query: str, folder: Path, conf: dict[str, str]) -> dict[str, Any]:
    """Off, on, off; what was said and found before and after each switch."""
    checkpoint, format2 = folder / "switched", bool(conf)
    found: dict[str, Any] = {"switches": []}
    for _ in range(2):
        run(spark, query, checkpoint, "rocksdb", conf)
    for to, store in (("on", "changelog"), ("off", "rocksdb")):
        before, there = answer(spark, checkpoint, format2), committed(checkpoint)
        one: dict[str, Any] = {"to": to, "before": told(checkpoint, to), "too_early": told(checkpoint, to, "--verify")}
        run(spark, query, checkpoint, store, conf)
        one |= {"after": told(checkpoint, to, "--verify", "--files-only"), "files": files(checkpoint)}
        run(spark, query, checkpoint, store, conf, batches=9)
        for _ in range(2):
            run(spark, query, checkpoint, store, conf)
        one |= {"later": told(checkpoint, to, "--verify"), "again": told(checkpoint, to)}
        one |= {"batches": committed(checkpoint) - there}
        one |= {"state": before, "state_read_later": answer(spark, checkpoint, format2, before["batch"])}
        found["switches"].append(one)
        if to == "on" and not format2:
            two_ways = one["later"]["state_compared"]["two_ways"]  # each partition has its snapshots when it has
            version = min(entry["version"] for entry in two_ways if 0 in entry["partitions"])
            found["tampered"] = told(tampered(checkpoint, version), to, "--verify")
    run(spark, query, folder / "control", "rocksdb", conf, batches=committed(checkpoint))
    state = answer(spark, checkpoint, format2)
    return found | {"state": state, "control": answer(spark, folder / "control", format2, state["batch"])}


@contextmanager
def maintained_anew(spark: SparkSession) -> Iterator[None]:
    """Let the first query set how often state is maintained, and the first one afterwards."""
    stores: Any = getattr(spark.sparkContext._jvm.org.apache.spark.sql.execution.streaming.state, "StateStore$")
    getattr(stores, "MODULE$").stop()
    try:
        yield
    finally:
        getattr(stores, "MODULE$").stop()


def found(spark: SparkSession, folder: Path, name: str) -> dict[str, Any]:
    query, conf = RUNS[name]
    with maintained_anew(spark):
        told: dict[str, Any] = json.loads(json.dumps(switched(spark, query, folder, conf)))
    return told


def recorded(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """All of `RUNS`, with digests in place of rows of state."""
    return {name: short(found(spark, folder / name, name)) for name in RUNS}


def short(value: Any) -> Any:
    """The same with a digest of the rows of each view."""
    if isinstance(value, list):
        return [short(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() >= {"options", "rows"}:
        return {**value, "rows": digest(value["rows"])}
    return {key: short(one) for key, one in value.items()}
