"""Runs histories and what follows them: a role of `tests/record/process.py`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.changes.oracle.cases import LAST
from tests.restart.oracle import observe
from tests.restart.oracle.starts import forget_state
from tests.support.spark import plans, queries

MAINTENANCE = "spark.sql.streaming.stateStore.maintenanceInterval"
SCHEMA_CHECK = "spark.sql.streaming.stateStore.stateSchemaCheck"
PAUSE_S = 0.3  # for maintenance, which runs every 200 ms
FILES = 60
VARIABLES = {"transform-with-state-event-time": ("rows",)}
JOINED = ("left", "right")
Rows = list[str]


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """Do what a job asks for: `history`, `poison` or `follow`."""
    query = queries.QUERIES[job["query"]]
    inputs = Path(job["inputs"])
    if query.inputs and not (inputs / query.name).is_dir():
        queries.write_input_files(inputs / query.name, FILES)
    conf = {MAINTENANCE: "200ms", **job["conf"]}

    def start(checkpoint: Path, sink: Callable[[Any, int], None], times: int = 1, without: int | None = None) -> Any:
        # A filter changes what Spark derives of nulls, and with that the schema, but no byte of the state.
        more = {} if without is None else {plans.WITHOUT: str(without), SCHEMA_CHECK: "false"}
        return queries.start(
            spark,
            query,
            checkpoint,
            store=job["store"],
            sink=sink,
            trigger=observe.ONE_BATCH,
            conf={**conf, plans.TIMES: str(times), **more},
            inputs=inputs,
        )

    try:
        return {"history": _history, "poison": _poison, "follow": _follow}[job["do"]](spark, job, start)
    except Exception as error:
        return {"error": str(error)}
    finally:
        forget_state(spark)


def _history(spark: Any, job: Mapping[str, Any], start: Callable[..., Any]) -> dict[str, Any]:
    """Run batch after batch, and keep a copy of the checkpoint after each, below `folder`."""
    folder = Path(job["folder"])
    for batch in range(LAST + 1):
        _one_batch(start(folder / "running", lambda rows, _: rows.collect()))
        if batch % 3 == 2:
            time.sleep(PAUSE_S)
        copy(folder / "running", folder / str(batch))
    return {}


def copy(checkpoint: Path, to: Path) -> None:
    """Copy a checkpoint whose query has stopped; maintenance may still rename a file of its own."""
    for _ in range(5):
        try:
            shutil.copytree(checkpoint, to)
        except shutil.Error:
            shutil.rmtree(to)
            time.sleep(1)
        else:
            return
    raise AssertionError(f"{checkpoint} does not come to rest")


def _one_batch(handle: Any) -> list[dict[str, Any]]:
    """Let the batch that begins at once run to its commit; what Spark reports of it."""
    try:
        limit = time.monotonic() + observe.PATIENCE_S
        while handle.isActive and not observe.progress(handle) and time.monotonic() < limit:
            time.sleep(0.05)
        if handle.exception() is not None:
            raise handle.exception()
        return observe.progress(handle)
    finally:
        handle.stop()


def _poison(spark: Any, job: Mapping[str, Any], start: Callable[..., Any]) -> dict[str, Any]:
    """Let the next batch fail, before or after its rows were computed and state was written."""

    def fail(rows: Any, _: int) -> None:
        if job["after"]:
            rows.collect()
        raise ValueError("poison")

    with contextlib.suppress(Exception):
        _one_batch(start(Path(job["checkpoint"]), fail))
        raise AssertionError("the batch did not fail")
    return {}


def _follow(spark: Any, job: Mapping[str, Any], start: Callable[..., Any]) -> dict[str, Any]:
    """Start again and again; the rows of every batch, what Spark says that it read, and the state at the end."""
    checkpoint, rows, read = Path(job["checkpoint"]), {}, {}
    for times in job["times"]:

        def keep(found: Any, batch: int) -> None:
            rows[batch] = sorted(str(row) for row in found.collect())

        handle = start(checkpoint, keep, times, job.get("without"))
        for report in _one_batch(handle):
            ends = [[one["startOffset"], one["endOffset"]] for one in report["sources"]]
            read[str(report["batchId"])] = [report["numInputRows"], ends]
        time.sleep(PAUSE_S)
    state = _state(spark, job["query"], checkpoint, job["store"])
    return {"rows": {str(i): found for i, found in rows.items()}, "read": read, "state": state}


def _state(spark: Any, query: str, checkpoint: Path, store: str | None) -> dict[str, str] | None:
    """What Spark's reader (4.0 and later) finds at the end, as digests."""
    if store is None or spark.version.startswith("3."):
        return None
    own = queries.own_session(spark, queries.STATE_STORES[store])
    own.streams.active  # noqa: B018 (4.2.0 makes the coordinator of state stores at the first look at streams)
    ways: dict[str, dict[str, str]] = {"0": {}}
    if query == "join":
        ways = {side: {"joinSide": side} for side in JOINED}
    elif query in VARIABLES:
        ways = {name: {"stateVarName": name} for name in VARIABLES[query]}
    elif query == "dedup-aggregation":
        ways = {"0": {"operatorId": "0"}, "1": {"operatorId": "1"}}
    return {
        name: digest(str(row) for row in own.read.format("statestore").options(**one).load(str(checkpoint)).collect())
        for name, one in ways.items()
    }


def digest(rows: Any) -> str:
    """How many rows, and which."""
    found = sorted(rows)
    return f"{len(found)} {hashlib.sha256(json.dumps(found).encode()).hexdigest()[:12]}"
