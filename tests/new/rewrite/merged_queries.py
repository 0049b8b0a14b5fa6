"""Runs real queries for the suite `rewrite-merge`: old ones, those that go on, and one that never changed.

Each reads folders of JSON files, one for each source, and does the same with the rows of all. Nothing here imports ckpt
but to describe a query.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.spark.queries import drain, own_session

_STREAMING = "spark.sql.streaming."
SETTINGS = {
    f"{_STREAMING}stateStore.minDeltasForSnapshot": "2",
    f"{_STREAMING}stateStore.maintenanceInterval": "1000ms",
}


@dataclass(frozen=True)
class Shape:
    """A query: what it does with the rows of its sources."""

    build: Callable[[Any], Any]
    mode: str = "update"
    delay: str | None = None  # of the watermark of each source
    keys: int | None = None  # the columns that a later row replaces; None: each row counts


def _aggregate(rows: Any) -> Any:
    from pyspark.sql import functions as F

    return rows.groupBy("key").agg(
        *(F.count("*"), F.sum("value"), F.min("value"), F.max("value"), F.avg("value")),
        *(F.round(F.stddev("value"), 6), F.sort_array(F.collect_set("value")), F.approx_count_distinct("value")),
        F.sum(F.col("value").cast("decimal(20,2)")),
    )


def _window(rows: Any) -> Any:
    from pyspark.sql import functions as F

    return rows.groupBy(F.window("timestamp", "10 seconds"), "key").agg(F.count("*"), F.sum("value"))


def _session(rows: Any) -> Any:
    from pyspark.sql import functions as F

    return rows.groupBy(F.session_window("timestamp", "3 seconds"), "key").agg(F.count("*"), F.sum("value"))


def _count_in_pandas(rows: Any) -> Any:
    import pandas as pd

    def count(key: tuple[int], frames: Iterator[Any], state: Any) -> Iterator[Any]:
        total = (state.get[0] if state.exists else 0) + sum(map(len, frames))
        state.update((total,))
        yield pd.DataFrame({"key": [key[0]], "rows": [total]})

    grouped = rows.groupBy("key")
    return grouped.applyInPandasWithState(count, "key BIGINT, rows BIGINT", "rows BIGINT", "update", "NoTimeout")


def _transform(rows: Any) -> Any:
    """Keep a number, a list and a map for each key, and emit the number."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Counting(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.rows = handle.getValueState("rows", "rows BIGINT")
            self.values = handle.getListState("values", "value BIGINT")
            self.parity = handle.getMapState("parity", "odd BOOLEAN", "rows BIGINT")

        def handleInputRows(self, key: tuple[int], rows: Any, timerValues: Any) -> Iterator[Any]:
            values = [int(value) for frame in rows for value in frame["value"]]
            count = (self.rows.get()[0] if self.rows.exists() else 0) + len(values)
            self.rows.update((count,))
            for value in values:
                self.values.appendValue((value,))
                odd = (value % 2 == 1,)
                before = self.parity.getValue(odd)[0] if self.parity.containsKey(odd) else 0
                self.parity.updateValue(odd, (before + 1,))
            kept = sum(value for (value,) in self.values.get())
            odds = self.parity.getValue((True,))[0] if self.parity.containsKey((True,)) else 0
            yield pd.DataFrame({"key": [key[0]], "rows": [count], "kept": [kept], "odds": [odds]})

        def close(self) -> None:
            pass

    columns = "key BIGINT, rows BIGINT, kept BIGINT, odds BIGINT"
    return rows.groupBy("key").transformWithStateInPandas(Counting(), columns, "Update", "None")


SHAPES = {
    "aggregation": Shape(_aggregate, keys=1),
    "aggregation complete": Shape(_aggregate, "complete", keys=1),
    "global": Shape(lambda rows: rows.selectExpr("0 AS it", "value").groupBy().sum("value"), keys=0),
    "first": Shape(lambda rows: rows.groupBy("key").agg({"value": "first"}), keys=1),
    "windows": Shape(_window, "append", "5 seconds"),
    "windows update": Shape(_window, keys=2),
    "windows complete": Shape(_window, "complete", keys=2),
    "windows late": Shape(_window, "update", "5 seconds", keys=2),
    "sessions": Shape(_session, "append", "5 seconds"),
    "sessions complete": Shape(_session, "complete", keys=2),
    "dedup": Shape(lambda rows: rows.select("key", "value").dropDuplicates(["key", "value"]), "append"),
    "dedup aggregation": Shape(lambda rows: rows.dropDuplicates(["key", "value"]).groupBy("key").count(), keys=1),
    "dedup within": Shape(
        lambda rows: rows.dropDuplicatesWithinWatermark(["key", "value"]).select("key", "value"), "append", "5 seconds"
    ),
    "pandas": Shape(_count_in_pandas, keys=1),
    "transform": Shape(_transform, keys=1),
    "limit": Shape(lambda rows: rows.select("key").limit(1000), "append"),
}


def build(spark: Any, job: dict[str, Any]) -> Any:
    shape = SHAPES[job["shape"]]
    rows: Any = None
    for tag in job["tags"]:
        folder = Path(job["inputs"]) / tag
        folder.mkdir(parents=True, exist_ok=True)
        reader = spark.readStream.name(f"of_{tag}") if job.get("named") else spark.readStream
        own = reader.schema("key BIGINT, value BIGINT, timestamp TIMESTAMP").json(str(folder))
        own = own.withWatermark("timestamp", shape.delay) if shape.delay else own
        rows = own if rows is None else rows.union(own)
    return shape.build(rows.where(job["filter"]) if job.get("filter") else rows)


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """Start the query of a job once, and return the rows of its batches; or describe it."""
    session, shape = own_session(spark, {**SETTINGS, **job["conf"]}), SHAPES[job["shape"]]
    frame = build(session, job)
    if job["do"] == "describe":
        import ckpt

        with tempfile.TemporaryDirectory(prefix="ckpt-described-") as folder:
            described = ckpt.describe_query(frame, output_mode=shape.mode, checkpoint=folder)
        return dict(json.loads(described.to_json()))
    try:
        batches = drain(frame, job["checkpoint"], shape.mode).values()
    except Exception as error:
        return {"rows": [], "error": str(error)[:500]}
    return {"rows": [[*map(str, row)] for batch in batches for row in batch], "error": None}
