"""One aggregation with every aggregate that a generated processor continues: stopped, migrated, and never stopped.

Its input has NULLs, groups of nothing else, NaN, and numbers that no float holds. The rows of a key in a file have one
name, so that the first and the last do not depend on the order of rows within a batch.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ckpt
from ckpt.formats.types import fields_of
from ckpt.migrate.transform import Api, TransformPlan, plan_transform
from ckpt.spark.export import write_transform
from ckpt.spark.installed import find_pyspark_version
from ckpt.versions import Spark
from tests.migrate.continuity_new import imported
from tests.migrate.transforming import run
from tests.support.places import SAMPLES
from tests.support.spark.queries import drain, own_session

STOP, FILES = 2, 4
SCHEMA = (
    "key BIGINT, v BIGINT, small INT, name STRING, price DECIMAL(30,2), cents DECIMAL(8,2), x DOUBLE, y DOUBLE, "
    "day DATE, at TIMESTAMP, flag BOOLEAN"
)
ALL = {  # the aggregate of the old query, by the name that its result has in the new one, and what it was of
    "count": ("count(*)", "1"),
    "count_2": ("count(v)", "v"),
    "max": ("max(v)", "v"),
    "min": ("min(name)", "name"),
    "sum": ("sum(price)", "price"),
    "stddev_samp": ("stddev(x)", "x"),
    "first": ("first(name)", "name"),
    "first_2": ("first(name, true)", "name"),
    "last": ("last(name)", "name"),
    "last_2": ("last(name, true)", "name"),
    "sum_2": ("sum(v)", "v"),
    "sum_3": ("sum(x)", "x"),
    "avg": ("avg(small)", "small"),
    "sum_4": ("sum(cents)", "CAST(cents * 100 AS BIGINT)"),
    "max_2": ("max(y)", "y"),
    "min_2": ("min(y)", "y"),
    "max_3": ("max(day)", "day"),
    "min_3": ("min(at)", "at"),
    "max_4": ("max(flag)", "flag"),
    "max_5": ("max(CAST(name AS BINARY))", "CAST(name AS BINARY)"),
}
if find_spec("pyspark") and find_pyspark_version().at_least(Spark.V4_3):  # records all buffers as ones that may be NULL
    del ALL["avg"]
BUFFERS = (  # of all of them once, in one query
    ("count", "long", False),
    ("sum", "double", True),
    ("count", "long", True),
    ("sum", "decimal(38,2)", True),
    ("isEmpty", "boolean", False),
    ("sum", "long", True),
    ("sum", "double", True),
    ("max", "timestamp", True),
    ("min", "float", True),
    ("n", "double", False),
    ("avg", "double", False),
    ("m2", "double", False),
    ("first", "string", True),
    ("valueSet", "boolean", True),
    ("last", "binary", True),
    ("valueSet", "boolean", True),
)


def _is_null(key: int, file: int, number: int) -> bool:
    """Keys by what their rows are: 2 and 7 NULLs only, 3 until the stop, 4 after it, 5 and 8 some."""
    old = file < STOP
    return key in (2, 7) or (key == 3 and old) or (key == 4 and not old) or (key in (5, 8) and (file + number) % 2 == 0)


def rows(file: int) -> Iterator[dict[str, Any]]:
    """The rows of a file: key 6 comes in the old ones only, 5 and 7 in the new ones only."""
    for key in (1, 2, 3, 4, 6, 8) if file < STOP else (1, 2, 3, 4, 5, 7, 8):
        for number in range(3):
            n = 100 * file + 10 * key + number
            at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=n)
            values = {
                "v": 2**53 + n,
                "small": n,
                "price": f"{9 * 10**26 + n}.{n % 100:02}",
                "cents": f"{n}.{n % 100:02}",
                "x": n / 8,
                "y": "NaN" if (key, file) in ((1, 1), (6, 0), (8, 3)) else -n / 4,
                "day": f"{at:%Y-%m-%d}",
                "at": f"{at:%Y-%m-%dT%H:%M:%SZ}",
                "flag": n % 7 == 0,
            }
            named = {"name": None if _is_null(key, file, 0) else f"{chr(0x1F600 + n % 3)}{key}-{file}"}
            yield {"key": key, **({} if _is_null(key, file, number) else values), **named}


def write(folder: Path, first: int, last: int) -> None:
    """Files ``first`` to ``last`` - 1, read one by one in this order."""
    folder.mkdir(exist_ok=True)
    for file in range(first, last):
        path = folder / f"{file}.json"
        path.write_text("\n".join(map(json.dumps, rows(file))))
        os.utime(path, (1_700_000_000 + file,) * 2)


def old(spark: Any, inputs: Path, checkpoint: Path) -> dict[tuple[int, int], list[Any]]:
    """Run the old query over what is there, and what it gave by key and number of rows."""
    from pyspark.sql import functions as F

    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(inputs))
    grouped = read.groupBy("key").agg(*(F.expr(of).alias(name) for name, (of, _) in ALL.items()))
    return answers([row for batch in drain(grouped, checkpoint, "update").values() for row in batch])


def answers(found: list[Any]) -> dict[tuple[int, int], list[Any]]:
    """Rows by key and count(*); each is there once."""
    by = {(row[0], row[1]): list(row[2:]) for row in found}
    assert len(by) == len(found)
    return by


def migrated(spark: Any, checkpoint: Path, inputs: Path, folder: Path, api: Api) -> Any:
    """The generated ``start``, with what a user fills in, but for what the aggregates were of."""
    plan = plan_transform(str(checkpoint), api=api, spark=find_pyspark_version())
    write_transform(spark, plan, f"file:{folder}")
    start: Any = imported(folder)
    start.CHECKPOINT = f"{folder}-checkpoint"
    start.SOURCE_0_SCHEMA, start.SOURCE_0_PATH = SCHEMA, str(inputs)
    start.SOURCE_0_OPTIONS = {"maxFilesPerTrigger": "1"}
    return start


def filled(start: Any) -> Any:
    assert list(start.INPUT) == list(ALL)
    start.INPUT.update({name: text for name, (_, text) in ALL.items()})
    start.IGNORE_NULLS.update({"first": False, "first_2": True, "last": False, "last_2": True})
    return start


def refusals(start: Any, spark: Any) -> list[str]:
    """What it says while something is not filled in, or of another type."""
    said = [run(start, spark)]
    start.INPUT.update({name: text for name, (_, text) in ALL.items()})
    said.append(run(start, spark))
    filled(start)
    start.INPUT["sum_4"] = "cents"
    said.append(run(start, spark))
    return said


def found(spark: Any, folder: Path) -> dict[str, Any]:
    """What the old query, each new one, and the one that never stopped gave and kept."""
    own = own_session(spark, partitions=1)
    (folder / "windows").mkdir()
    told: dict[str, Any] = {"windows": windows(own, folder / "windows")}
    inputs = folder / "in"
    write(inputs, 0, STOP)
    before = old(own, inputs, folder / "old")
    told["before"] = before
    apis = [Api.PANDAS] + [Api.ROW] * find_pyspark_version().at_least(Spark.V4_1)
    starts = {api: migrated(own, folder / "old", inputs, folder / f"new-{api}", api) for api in apis}
    write(inputs, STOP, FILES)
    control = old(own, inputs, folder / "control")
    told["control"] = {"answers": control, "state": kept(ckpt.read_initial_state(str(folder / "control"), session=own))}
    told["refusals"] = refusals(starts[Api.PANDAS], own)
    for api, start in starts.items():
        given: list[Any] = []
        start.sink = lambda writer, given=given: writer.foreachBatch(lambda batch, _: given.extend(batch.collect()))
        error = run(filled(start), own)
        state = ckpt.read_state(start.CHECKPOINT, session=own, variable="buffers") if not error else None
        after = {"error": error, "answers": before | answers(given), "new": len(given)}
        told[api.value] = after | {"state": kept(state) if state is not None else None}
    return told


def windows(spark: Any, folder: Path) -> dict[str, Any]:
    """What windows gave that are put out at each change: old and new query, and the one that never stopped."""
    from pyspark.sql import functions as F

    inputs = folder / "in"

    def run_old(name: str) -> list[tuple[Any, ...]]:
        read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(inputs))
        grouped = read.withWatermark("at", "1 hour").groupBy(F.window("at", "1 day"), "key")
        told = grouped.agg(F.count("v").alias("n"), F.max("name").alias("last"))
        told = told.selectExpr("window.start", "window.end", "key", "n", "last")
        return [tuple(row) for batch in drain(told, folder / name, "update").values() for row in batch]

    write(inputs, 0, STOP)
    before = run_old("old-windows")
    start = migrated(spark, folder / "old-windows", inputs, folder / "new-windows", Api.PANDAS)
    write(inputs, STOP, FILES)
    start.EVENT_TIME, start.DELAY, start.WINDOW, start.OUTPUT_MODE = "at", "1 hour", "1 day", "Update"
    start.INPUT.update({"count": "v", "max": "name"})
    given: list[Any] = []
    start.sink = lambda writer: writer.foreachBatch(lambda batch, _: given.extend(batch.collect()))
    error = run(start, spark)
    after = [tuple(row) for row in given]
    return {"error": error, "before": before, "after": after, "control": run_old("control-windows")}


def kept(frame: Any) -> list[list[Any]]:
    """Key and buffers, by key."""
    return sorted((list(row) for row in frame.collect()), key=lambda row: int(row[0]))


def same(one: Any, other: Any, nan_is_null: bool = False) -> bool:
    """Whether two results are the same; floats but for the last digits, which depend on the order of rows."""
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-12)
    if nan_is_null and isinstance(other, float) and math.isnan(other):
        return one is None
    return bool(one == other)


def plan_of(*buffers: tuple[str, str, bool], api: Api = Api.PANDAS) -> TransformPlan:
    """The plan of a sample whose buffers are these: name, type in JSON, whether it may be NULL."""
    found = plan_transform(str(SAMPLES / "aggregation-hdfs-4.2"), api=api)
    reading, column = found.initial.readings[0], found.shape.state[0]
    fields = [{"name": name, "type": kind, "nullable": null} for name, kind, null in buffers]
    value = {"name": "value", "type": {"type": "struct", "fields": fields}}
    schema: Any = {"type": "struct", "fields": [(fields_of(reading.unit.schema) or [])[0], value]}
    changed = replace(reading, unit=replace(reading.unit, schema=schema))
    names = [f"{name}_{place}" for place, (name, _, _) in enumerate(buffers)]
    state = tuple(
        replace(column, name=names[place], type=kind, path=("value", name), places=(1, place))
        for place, (name, kind, _) in enumerate(buffers)
    )
    initial = replace(found.initial, readings=(changed,), shape=replace(found.shape, state=state))
    return replace(found, initial=initial)
