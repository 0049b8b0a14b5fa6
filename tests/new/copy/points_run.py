"""Runs queries that go back to points: a role of `tests/record/process.py`. Nothing here imports ckpt.

Each query reads ten rows a batch, or 20 with the setting `TIMES`, and leaves nothing of them out: what its sink and its
state must contain follows from the number of rows of each batch (`points_expected.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.changes.oracle.histories import digest
from tests.support.spark import queries
from tests.support.spark.plans import rate

SECONDS = 120
BEHIND = 35  # rows by which the right side of the join is later: it meets rows of earlier batches


def once(session: Any, _: Path) -> Any:
    """Each row, through a deduplication whose state would drop rows of batches that were abandoned."""
    return rate(session).select("value").dropDuplicates(["value"])


def windows(session: Any, _: Path) -> Any:
    from pyspark.sql.functions import window

    rows = rate(session).withWatermark("timestamp", "2 seconds").groupBy(window("timestamp", "2 seconds"))
    return rows.agg({"*": "count", "value": "sum"}).selectExpr(
        "unix_seconds(window.start)", "`count(1)`", "`sum(value)`"
    )


def join(session: Any, _: Path) -> Any:
    from pyspark.sql.functions import expr

    later = rate(session).selectExpr(f"value - {BEHIND} AS later")
    return rate(session).select("value").join(later, expr("value = later"))


QUERIES = {
    "once": queries.Query("once", once),
    "windows": queries.Query("windows", windows, conf={"spark.sql.streaming.noDataMicroBatches.enabled": "false"}),
    "join": queries.Query("join", join),
    **{name: queries.QUERIES[name] for name in ("aggregation", "collecting")},
}
PARTS: dict[str, dict[str, dict[str, str]]] = {
    "join": {side: {"joinSide": side} for side in ("left", "right")},
    "collecting": {name: {"stateVarName": name} for name in ("last", "every")},
}
"""The parts of the state of a query, with the options of Spark's reader for each."""


class Runs:
    """The query that runs, and answers about it."""

    def __init__(self) -> None:
        self._handle: Any = None

    def answer(self, spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
        """Do what a job asks for: `start` a query, `stop` it, let it run a batch `more`, or `read` what is there."""
        try:
            return {"start": self._start, "stop": self._stop, "more": self._more, "read": self._read}[job["do"]](
                spark, job
            )
        except Exception as error:
            return {"error": str(error)[:2000]}

    def _start(self, spark: Any, job: dict[str, Any]) -> dict[str, Any]:
        query, out = QUERIES[job["query"]], Path(job["out"])
        sink: dict[str, Any] = {"sink": "parquet", "options": {"path": str(out)}}
        if query.output_mode == "update":
            sink = {"sink": lambda rows, _: _upsert(out, rows)}
        trigger = {"availableNow": True} if job["do"] == "more" else {"processingTime": "100 milliseconds"}
        where = {"store": job["store"], "conf": job["conf"], "trigger": trigger}
        self._handle = queries.start(spark, query, job["checkpoint"], **where, **sink)
        return {"error": None}

    def _stop(self, *_: Any) -> dict[str, Any]:
        ran, error = self._handle.isActive, self._handle.exception()
        self._handle.stop()
        return {"error": None if ran else str(error)}

    def _more(self, spark: Any, job: dict[str, Any]) -> dict[str, Any]:
        self._start(spark, job)
        assert self._handle.awaitTermination(SECONDS), "it does not end"
        return {"error": None}

    def _read(self, spark: Any, job: dict[str, Any]) -> dict[str, Any]:
        """Which rows the sink and each part of the state contain, as Spark reads them."""
        own = queries.own_session(spark, {**queries.STATE_STORES[job["store"]], **job["conf"]})
        out = Path(job["out"])
        own.streams.active  # noqa: B018 (4.2.0 makes the coordinator of state stores at the first look at streams)
        told: dict[str, Any] = {"error": None}
        if QUERIES[job["query"]].output_mode == "update":
            told["sink"] = digest(map(json.dumps, _table(out)))
        else:
            told["sink"] = digest(json.dumps([*row]) for row in own.read.parquet(str(out)).collect())
        for part, options in PARTS.get(job["query"], {"state": {}}).items():
            rows = own.read.format("statestore").options(**options).load(job["checkpoint"]).drop("partition_id")
            told[part] = digest(json.dumps([*_values(row)]) for row in rows.collect())
        return told


def _upsert(out: Path, rows: Any) -> None:
    """Write each row over the one with the same key, if there is one."""
    out.mkdir(exist_ok=True)
    found = {row[0]: row for row in _table(out)} | {row[0]: [*row] for row in rows.collect()}
    (out / "rows").write_text(json.dumps([*found.values()]))


def _table(out: Path) -> list[list[Any]]:
    file = out / "rows"
    return list(json.loads(file.read_text())) if file.exists() else []


def _values(row: Any) -> Iterator[Any]:
    """All values of a row, those of its structs one by one."""
    for value in row:
        if isinstance(value, tuple):
            yield from _values(value)
        else:
            yield value.timestamp() if isinstance(value, datetime) else value


def answer(spark: Any, job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Answer a job in the worker of a recording."""
    return _RUNS.answer(spark, job, folder)


_RUNS = Runs()
