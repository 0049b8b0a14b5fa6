"""Queries that hit a known bug of Spark, each with what it writes or fails with; run by the Python of a release.

A case is a function of a session and an empty folder; it returns what a person would see: rows, or the error. Nothing
here imports ckpt.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Case = Callable[[Any, Path], dict[str, Any]]
CASES: dict[str, Case] = {}
CONTINUED: dict[str, Case] = {}
"""How the query of a case goes on with a later release, as its finding advises: on its checkpoint, with new rows."""
_ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
MESSAGE = 300


def case(bug: str) -> Callable[[Case], Case]:
    """Declare the case of a bug."""

    def declare(function: Case) -> Case:
        CASES[bug] = function
        return function

    return declare


def put(folder: Path, number: int, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a file of rows that is newer than those before it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number}.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (1_700_000_000 + number,) * 2)


def read(spark: Any, folder: Path, columns: str) -> Any:
    """Read a folder, one file in each batch."""
    folder.mkdir(parents=True, exist_ok=True)
    return spark.readStream.schema(columns).option("maxFilesPerTrigger", "1").json(str(folder))


def run(
    frame: Any, folder: Path, mode: str = "append", sink: Callable[[Any, int], None] | None = None, **conf: str
) -> dict[str, Any]:
    """Run a query until it has read all there is: the rows of each batch, or the error that ended it."""
    rows: list[list[Any]] = []

    def collect(batch: Any, number: int) -> None:
        rows.extend([number, *map(str, row)] for row in sorted(batch.collect(), key=str))

    spark = frame.sparkSession
    for name, value in conf.items():
        spark.conf.set(name, value)
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.foreachBatch(sink or collect).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except Exception as error:
        return {"rows": rows, "error": _words(error), "frames": _frames(error)}
    return {"rows": rows, "error": None}


def _words(error: Exception) -> str:
    """The innermost cause, on one line."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if "Exception" in line or "Error" in line]
    named = next((line for line in reversed(lines) if not line.startswith("at ")), text.strip().split("\n")[0])
    return re.sub(r"^\[STREAM_FAILED\] Query \[id.*?\] terminated with exception: ", "", named)[:MESSAGE]


def _frames(error: Exception) -> list[str]:
    """The first frames of streaming in the stacks, without line numbers."""
    lines = (line.strip() for line in str(error).splitlines())
    named = (line[3:].partition("(")[0] for line in lines if line.startswith("at org.apache.spark.sql."))
    streaming = dict.fromkeys(re.sub(r"\d+", "N", name) for name in named if ".streaming." in name)
    return [*streaming][:3]


def count_by_constant(spark: Any, folder: Path) -> dict[str, Any]:
    from pyspark.sql.functions import lit

    left, right = (read(spark, folder / name, "n long").withColumn("name", lit(name)) for name in "ab")
    return run(left.union(right).groupBy("name").count(), folder, "complete")


def constant_key_continued(spark: Any, folder: Path) -> dict[str, Any]:
    put(folder / "b", 2, [{"n": 4}])
    return count_by_constant(spark, folder)


@case("SPARK-47840")
def constant_key(spark: Any, folder: Path) -> dict[str, Any]:
    """Two sources with a constant each, counted by it: a batch that only one of them has rows for."""
    for name in "ab":
        put(folder / name, 0, [{"n": 1}, {"n": 2}])
    first = count_by_constant(spark, folder)
    put(folder / "b", 1, [{"n": 3}])
    return {"first": first, "then": count_by_constant(spark, folder)}


@case("SPARK-49829")
def unmatched_row(spark: Any, folder: Path) -> dict[str, Any]:
    """A left outer join: a row without a match, later than the watermark of its batch and older than the next."""
    put_sides(folder, 0, {"l": (100, 50, 300, 400), "r": (100, 100, 300, 400)})
    return join_sides(spark, folder)


def unmatched_row_continued(spark: Any, folder: Path) -> dict[str, Any]:
    put_sides(folder, 4, {"l": (500, 450, 600, 700), "r": (500, 500, 600, 700)})
    return join_sides(spark, folder)


def put_sides(folder: Path, first: int, times_by_side: Mapping[str, tuple[int, ...]]) -> None:
    """Write a file for each time, in seconds, of either side of the join; only the first rows match."""
    for name, times in times_by_side.items():
        for number, at in enumerate(times, first):
            put(folder / name, number, [{f"{name}id": number if name == "l" else 10 * number, f"{name}s": at}])


def join_sides(spark: Any, folder: Path) -> dict[str, Any]:
    from pyspark.sql.functions import expr

    sides = []
    for name in "lr":
        frame = read(spark, folder / name, f"{name}id long, {name}s long")
        sides.append(frame.selectExpr(f"{name}id", f"timestamp_seconds({name}s) AS {name}t"))
    left, right = (side.withWatermark(f"{name}t", "10 seconds") for side, name in zip(sides, "lr", strict=True))
    on = expr("lid = rid AND rt BETWEEN lt - INTERVAL 5 SECONDS AND lt + INTERVAL 5 SECONDS")
    return run(left.join(right, on, "leftOuter").select("lid", "rid"), folder)


@case("SPARK-49699")
def pruned_filter(spark: Any, folder: Path) -> dict[str, Any]:
    """A count behind a filter that is false for one start: its state is not written in that start's batches."""
    from pyspark.sql.functions import lit

    answers = {}
    for number, passes in enumerate((True, False, True)):
        put(folder / "in", number, [{"n": number}])
        counted = read(spark, folder / "in", "n long").groupBy((lit(1) * 1).alias("one"), "n").count()
        answers[f"{number} {passes}"] = run(counted.where(lit(passes)), folder, "complete")
    return answers


@case("SPARK-50492")
def dropped_time(spark: Any, folder: Path) -> dict[str, Any]:
    """dropDuplicatesWithinWatermark, and then no column with the event time."""
    put(folder / "in", 0, [{"n": 1, "s": 100}, {"n": 1, "s": 101}])
    frame = read(spark, folder / "in", "n long, s long").selectExpr("n", "timestamp_seconds(s) AS t")
    return run(frame.withWatermark("t", "10 seconds").dropDuplicatesWithinWatermark(["n"]).select("n"), folder)


@case("SPARK-46676")
def canonical_plan(spark: Any, folder: Path) -> dict[str, Any]:
    """dropDuplicatesWithinWatermark, and then an aggregation."""
    put(folder / "in", 0, [{"n": 1, "s": 100}, {"n": 1, "s": 101}, {"n": 2, "s": 102}])
    put(folder / "in", 1, [{"n": 3, "s": 300}])
    frame = read(spark, folder / "in", "n long, s long").selectExpr("n", "timestamp_seconds(s) AS t")
    once = frame.withWatermark("t", "10 seconds").dropDuplicatesWithinWatermark(["n"])
    return run(once.groupBy("t").count().select("count"), folder)


@case("SPARK-45582")
def complete_mode(spark: Any, folder: Path) -> dict[str, Any]:
    """Complete mode with RocksDB."""
    for number in range(3):
        put(folder / "in", number, [{"n": number % 2}])
    return run(read(spark, folder / "in", "n long").groupBy("n").count(), folder, "complete", None, **_ROCKSDB)


@case("SPARK-45655")
def observed_time(spark: Any, folder: Path) -> dict[str, Any]:
    """An observed metric with the time of the batch."""
    from pyspark.sql.functions import count, current_timestamp, lit, max as largest

    put(folder / "in", 0, [{"n": 1}])
    frame = read(spark, folder / "in", "n long").withColumn("at", current_timestamp())
    observed = frame.observe("observed", count(lit(1)).alias("rows"), largest(current_timestamp()).alias("latest"))
    return run(observed.select("n"), folder)


CONTINUED |= {
    "SPARK-46676": canonical_plan,  # the planned batch is run
    "SPARK-47840": constant_key_continued,
    "SPARK-49829": unmatched_row_continued,
    "SPARK-50492": dropped_time,  # the planned batch is run
}
NOT_IN_TABLE = frozenset({"SPARK-45582", "SPARK-45655", "SPARK-49699"})
"""The bugs that no release showed here, and SPARK-49699, whose condition no file of a checkpoint shows."""
RIGHT: dict[str, dict[str, Any]] = {
    "SPARK-46676": {"rows": [[2, "1"], [2, "1"]], "error": None},
    "SPARK-47840": {
        "first": {"rows": [[0, "a", "2"], [0, "b", "2"]], "error": None},
        "then": {"rows": [[1, "a", "2"], [1, "b", "3"]], "error": None},
    },
    "SPARK-49829": {"rows": [[0, "0", "0"], [1, "1", "None"], [4, "2", "None"]], "error": None},
    "SPARK-50492": {"rows": [[0, "1"]], "error": None},
}
"""The rows that each case writes on a release without its bug."""
CONTINUED_RIGHT: dict[str, dict[str, Any]] = {
    "SPARK-46676": RIGHT["SPARK-46676"],
    "SPARK-47840": {"rows": [[2, "a", "2"], [2, "b", "4"]], "error": None},
    "SPARK-49829": {
        "rows": [[6, "3", "None"], [6, "5", "None"], [8, "4", "None"], [9, "6", "None"]],  # 1 stays lost
        "error": None,
    },
    "SPARK-50492": RIGHT["SPARK-50492"],
}
"""The rows that a release without the bug writes when it goes on."""


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """Run a case in a session of its own: a role of `tests/record/process.py`."""
    folder, cases = Path(job["folder"]), CONTINUED if job.get("continued") else CASES
    folder.mkdir(parents=True, exist_ok=True)
    return cases[job["bug"]](spark.newSession(), folder)
