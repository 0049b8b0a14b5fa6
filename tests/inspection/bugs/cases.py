"""Queries that hit a known bug of Spark, each with what it writes or fails with; run by the Python of a release.

A case is a function of a session and an empty folder; it returns what a person would see: rows, or the error. Nothing
here imports ckpt.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

Case = Callable[[Any, Path], dict[str, Any]]
CASES: dict[str, Case] = {}
CONTINUED: dict[str, Case] = {}
"""How the query of a case goes on with a later release, as its finding advises: on its checkpoint, with new rows."""
AVOIDED: dict[str, Case] = {}
"""How it continues on the same release once its user has followed the finding's advice for avoiding the bug."""
_ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
NOW, ALWAYS = "availableNow", "processingTime"
_TRIGGERS = {NOW: True, ALWAYS: "0 seconds"}
MESSAGE = 300
SECONDS = 100


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
    frame: Any,
    folder: Path,
    mode: str = "append",
    sink: Callable[[Any, int], None] | None = None,
    trigger: str = NOW,
    **conf: str,
) -> dict[str, Any]:
    """Run a query until it has read all there is: the rows of each batch, or the error that ended it."""
    rows: list[list[Any]] = []

    def collect(batch: Any, number: int) -> None:
        rows.extend([number, *map(str, row)] for row in sorted(batch.collect(), key=str))

    spark = frame.sparkSession
    for name, value in conf.items():
        spark.conf.set(name, value)
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.foreachBatch(sink or collect).trigger(**{trigger: _TRIGGERS[trigger]}).start()
    try:
        ended = query.awaitTermination(SECONDS) if trigger == NOW else query.processAllAvailable() is None
    except Exception as error:
        words = _words(error).replace(str(folder.parent), "/place")
        return {"rows": rows, "error": words, "frames": _frames(error)}
    query.stop()
    return {"rows": rows, "error": None if ended else f"no end after {SECONDS} seconds"}


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
    return drop_repeats(spark, folder, "n")


def dropped_time_avoided(spark: Any, folder: Path) -> dict[str, Any]:
    return drop_repeats(spark, folder, "n", "t")


def drop_repeats(spark: Any, folder: Path, *columns: str) -> dict[str, Any]:
    frame = read(spark, folder / "in", "n long, s long").selectExpr("n", "timestamp_seconds(s) AS t")
    return run(frame.withWatermark("t", "10 seconds").dropDuplicatesWithinWatermark(["n"]).select(*columns), folder)


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


@case("SPARK-47305")
def null_code(spark: Any, folder: Path) -> dict[str, Any]:
    """Two sources, one with null in the column that a table is joined by: a batch that only this one has rows for."""
    put(folder / "a", 0, [{"n": 1}])
    first = join_by_code(spark, folder)
    put(folder / "b", 1, [{"n": 2}])
    return {"first": first, "then": join_by_code(spark, folder)}


def null_code_continued(spark: Any, folder: Path) -> dict[str, Any]:
    put(folder / "a", 2, [{"n": 3}])
    return join_by_code(spark, folder)


def join_by_code(spark: Any, folder: Path) -> dict[str, Any]:
    from pyspark.sql.functions import expr, lit

    codes = {"a": lit(1), "b": lit(None).cast("int")}
    left, right = (read(spark, folder / name, "n long").withColumn("code", code) for name, code in codes.items())
    table = spark.range(1, 5).withColumnRenamed("id", "number")
    return run(left.union(right).join(table, expr("code = number")).select("n"), folder)


@case("SPARK-46339")
def numbered_folder(spark: Any, folder: Path) -> dict[str, Any]:
    """A folder whose name is a number, in the log of offsets, at a restart."""
    put(folder / "in", 0, [{"n": 1}])
    first = run(read(spark, folder / "in", "n long"), folder)
    (folder / "checkpoint" / "offsets" / "7").mkdir()
    put(folder / "in", 1, [{"n": 2}])
    return {"first": first, "then": run(read(spark, folder / "in", "n long"), folder)}


def numbered_folder_continued(spark: Any, folder: Path) -> dict[str, Any]:
    return run(read(spark, folder / "in", "n long"), folder)


def numbered_folder_avoided(spark: Any, folder: Path) -> dict[str, Any]:
    (folder / "checkpoint" / "offsets" / "7").rename(folder / "moved")
    return numbered_folder_continued(spark, folder)


@case("SPARK-48934")
def timeout_by_datetime(spark: Any, folder: Path) -> dict[str, Any]:
    """applyInPandasWithState whose timeout is a datetime: one row for each key and batch."""
    return time_out(spark, folder, datetime.fromtimestamp)


def timeout_by_datetime_avoided(spark: Any, folder: Path) -> dict[str, Any]:
    return time_out(spark, folder, lambda seconds: seconds * 1000)


def time_out(spark: Any, folder: Path, spell: Callable[[int], Any]) -> dict[str, Any]:
    start = 1_700_000_000

    def follow(_: Any, __: Any, state: Any) -> Iterable[Any]:
        import pandas

        if state.hasTimedOut:
            state.remove()
            yield pandas.DataFrame({"text": ["ended"]})
        else:
            state.update((1,))
            state.setTimeoutTimestamp(spell(start + 200))
            yield pandas.DataFrame({"text": ["seen"]})

    for number, at in enumerate((100, 500)):
        put(folder / "in", number, [{"n": 1, "s": start + at}])
    frame = read(spark, folder / "in", "n long, s long").selectExpr("n", "timestamp_seconds(s) AS t")
    groups = frame.withWatermark("t", "10 seconds").groupBy("n")
    return run(groups.applyInPandasWithState(follow, "text string", "seen long", "append", "EventTimeTimeout"), folder)


@case("SPARK-49836")
def window_of_window(spark: Any, folder: Path) -> dict[str, Any]:
    """A window of a window in a subquery, and a query around it that takes one column and some rows."""
    put(folder / "in", 0, [{"s": at} for at in (100, 110, 130)])
    put(folder / "in", 1, [{"s": 400}])
    return count_windows(spark, folder)


def window_of_window_continued(spark: Any, folder: Path) -> dict[str, Any]:
    put(folder / "in", 2, [{"s": 410}])
    put(folder / "in", 3, [{"s": 900}])
    return count_windows(spark, folder)


def count_windows(spark: Any, folder: Path) -> dict[str, Any]:
    rows = read(spark, folder / "in", "s long").selectExpr("timestamp_seconds(s) AS t").withWatermark("t", "10 seconds")
    rows.createOrReplaceTempView("rows")
    short = "SELECT window(t, '10 seconds') AS w FROM rows GROUP BY window(t, '10 seconds')"
    minutes = f"SELECT window(w, '1 minute') AS m, count(*) AS c FROM ({short}) GROUP BY window(w, '1 minute')"
    return run(spark.sql(f"SELECT c FROM ({minutes}) WHERE c > 1"), folder)


@case("SPARK-45637")
def joined_windows(spark: Any, folder: Path) -> dict[str, Any]:
    """An inner join of two counts of the same windows."""
    for name in "lr":
        put(folder / name, 0, [{"s": 1}, {"s": 2}])
        put(folder / name, 1, [{"s": 40}])
    return join_windows(spark, folder)


def joined_windows_continued(spark: Any, folder: Path) -> dict[str, Any]:
    for name in "lr":
        put(folder / name, 2, [{"s": 41}])
        put(folder / name, 3, [{"s": 80}])
    return join_windows(spark, folder)


def join_windows(spark: Any, folder: Path) -> dict[str, Any]:
    from pyspark.sql.functions import window

    sides = []
    for name in "lr":
        rows = read(spark, folder / name, "s long").selectExpr("timestamp_seconds(s) AS t")
        counts = rows.withWatermark("t", "0 seconds").groupBy(window("t", "5 seconds")).count()
        sides.append(counts.withColumnRenamed("count", name))
    return run(sides[0].join(sides[1], "window").selectExpr("CAST(window.start AS long)", "l", "r"), folder)


@case("SPARK-48481")
def distinct_rows(spark: Any, folder: Path) -> dict[str, Any]:
    """SELECT DISTINCT of one source, united with another: a batch that only the other has rows for."""
    put(folder / "a", 0, [{"n": 1}])
    put(folder / "b", 0, [{"n": 1}])
    put(folder / "b", 1, [{"n": 2}])
    first = unite_distinct(spark, folder)
    put(folder / "a", 1, [{"n": 3}])
    return {"first": first, "then": unite_distinct(spark, folder)}


def distinct_rows_continued(spark: Any, folder: Path) -> dict[str, Any]:
    """As `ckpt repair` leaves it: batch 1, which wrote no state, is not committed, and batch 2 is not planned."""
    for log, batch in (("commits", 1), ("offsets", 2), ("sources/0", 1)):
        for name in (f"{batch}", f".{batch}.crc"):
            (folder / "checkpoint" / log / name).unlink(missing_ok=True)
    return unite_distinct(spark, folder)


def unite_distinct(spark: Any, folder: Path) -> dict[str, Any]:
    read(spark, folder / "a", "n long").createOrReplaceTempView("a")
    return run(spark.sql("SELECT DISTINCT n FROM a").union(read(spark, folder / "b", "n long")), folder, "update")


@case("SPARK-56280")
def negative_zero(spark: Any, folder: Path) -> dict[str, Any]:
    """Both deduplications of 0.0 and -0.0."""
    return once(spark, folder, 0, [0.0, -0.0])


def negative_zero_continued(spark: Any, folder: Path) -> dict[str, Any]:
    return once(spark, folder, 1, [0.0, -0.0, 1.0])


def negative_zero_avoided(spark: Any, folder: Path) -> dict[str, Any]:
    return once(spark, folder, 1, [0.0, -0.0, 1.0, -1.0], "v + 0.0D AS v")


def once(spark: Any, folder: Path, file: int, numbers: Iterable[float], key: str = "v") -> dict[str, Any]:
    put(folder / "in", file, [{"v": number} for number in numbers])
    rows = read(spark, folder / "in", "v double").selectExpr(key, "timestamp_seconds(100) AS t")
    within = rows.withWatermark("t", "10 seconds").dropDuplicatesWithinWatermark(["v"])
    frames = {"all": rows.dropDuplicates(["v"]), "within": within}
    return {name: run(frame, folder / name) for name, frame in frames.items()}  # SPARK-50492: with the event time


def transform(
    spark: Any,
    folder: Path,
    schema: str,
    make_values: Callable[[], Iterable[Any]],
    *,
    kind: str = "Value",
    file: int = 0,
    iterates: bool = False,
) -> dict[str, Any]:
    """transformWithStateInPandas that puts each value into its state and reads it, where the release has it.

    A list is read, written back, and read again; of a map the values are read, or its entries if it ``iterates``.
    """
    put(folder / "in", file, [{"n": 1}])
    groups = read(spark, folder / "in", "n long").groupBy("n")
    if not hasattr(groups, "transformWithStateInPandas"):
        return {"rows": [], "error": "no transformWithStateInPandas"}
    import pandas
    from pyspark.sql.streaming import StatefulProcessor

    class Keep(StatefulProcessor):
        def init(self, handle: Any) -> None:
            schemas = ("name string", schema) if kind == "Map" else (schema,)
            self.state = getattr(handle, f"get{kind}State")("kept", *schemas)

        def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Any:
            for number, value in enumerate(make_values()):
                if kind == "Map":
                    self.state.updateValue((str(number),), value)
                else:
                    (self.state.appendValue if kind == "List" else self.state.update)(value)
            if kind == "List":
                self.state.put([*self.state.get()])
            if kind == "Map":
                kept = (value for _, value in self.state.iterator()) if iterates else self.state.values()
            else:
                kept = self.state.get()
            text = str(kept if kind == "Value" else [*kept])
            yield pandas.DataFrame({"text": [text if len(text) < MESSAGE else str(len(text))]})

        def close(self) -> None:
            """Nothing is open."""

    frame = groups.transformWithStateInPandas(Keep(), "text string", "append", "none")
    return run(frame, folder, "append", None, **_ROCKSDB)


class Pair(NamedTuple):
    a: int
    b: int


@case("SPARK-51920")
def nested_value(spark: Any, folder: Path) -> dict[str, Any]:
    """A struct in a value of state: of a numpy number, and a NamedTuple."""

    def make_numbers() -> Iterable[Any]:
        import numpy

        return [((numpy.int64(1), 2),)]

    makers = {"numpy": make_numbers, "NamedTuple": lambda: [(Pair(1, 2),)]}
    return {name: transform(spark, folder / name, "pair struct<a:long,b:long>", make) for name, make in makers.items()}


def nested_value_avoided(spark: Any, folder: Path) -> dict[str, Any]:
    schema, names = "pair struct<a:long,b:long>", ("numpy", "NamedTuple")
    return {name: transform(spark, folder / name, schema, lambda: [((1, 2),)], file=1) for name in names}


_LARGE = 9_007_199_254_740_993  # the first whole number that no double is


@case("SPARK-51690")
def listed_number(spark: Any, folder: Path) -> dict[str, Any]:
    """A list in state whose elements have a large whole number and a fraction."""
    return list_number(spark, folder, 0)


def listed_number_continued(spark: Any, folder: Path) -> dict[str, Any]:
    return list_number(spark, folder, 1)


def list_number(spark: Any, folder: Path, file: int) -> dict[str, Any]:
    return transform(spark, folder, "a long, b double", lambda: [(_LARGE, 0.5)], kind="List", file=file)


@case("SPARK-52127")
def mapped_number(spark: Any, folder: Path) -> dict[str, Any]:
    """A map in state with a large whole number and a null."""
    return map_number(spark, folder, 0)


def mapped_number_continued(spark: Any, folder: Path) -> dict[str, Any]:
    return map_number(spark, folder, 1)


def mapped_number_avoided(spark: Any, folder: Path) -> dict[str, Any]:
    return map_number(spark, folder, 1, iterates=True)


def map_number(spark: Any, folder: Path, file: int, *, iterates: bool = False) -> dict[str, Any]:
    return transform(spark, folder, "a long", lambda: [(_LARGE,), (None,)], kind="Map", file=file, iterates=iterates)


@case("SPARK-53625")
def padded_column(spark: Any, folder: Path) -> dict[str, Any]:
    """A table with a column of type CHAR, and the name of the file of each row."""
    put(folder / "in", 0, [{"c": "aa"}])
    return read_padded(spark, folder)


def padded_column_avoided(spark: Any, folder: Path) -> dict[str, Any]:
    return read_padded(spark, folder, **{"spark.sql.readSideCharPadding": "false"})


def read_padded(spark: Any, folder: Path, **conf: str) -> dict[str, Any]:
    spark.sql(f"CREATE TABLE IF NOT EXISTS padded (c CHAR(2)) USING json LOCATION '{folder / 'in'}'")
    rows = spark.readStream.table("padded").select("c", "_metadata.file_name")
    return run(rows, folder, "append", None, NOW, **conf)


@case("SPARK-53870")  # the last: where a query does not end, its session is of no more use
def large_value(spark: Any, folder: Path) -> dict[str, Any]:
    """Values of state of 1 to 30 MB."""
    return transform(spark, folder, "text string", lambda: (("x" * number * 1_000_000,) for number in range(1, 31)))


CONTINUED |= {
    "SPARK-45637": joined_windows_continued,
    "SPARK-46339": numbered_folder_continued,
    "SPARK-46676": canonical_plan,  # the planned batch is run
    "SPARK-47305": null_code_continued,
    "SPARK-47840": constant_key_continued,
    "SPARK-48481": distinct_rows_continued,
    "SPARK-48934": timeout_by_datetime,  # the planned batch is run
    "SPARK-49829": unmatched_row_continued,
    "SPARK-49836": window_of_window_continued,
    "SPARK-50492": dropped_time,  # the planned batch is run
    "SPARK-51690": listed_number_continued,
    "SPARK-51920": nested_value,  # likewise
    "SPARK-52127": mapped_number_continued,
    "SPARK-53625": padded_column,  # likewise
    "SPARK-53870": large_value,  # likewise
    "SPARK-56280": negative_zero_continued,
}
AVOIDED |= {
    "SPARK-46339": numbered_folder_avoided,
    "SPARK-48934": timeout_by_datetime_avoided,
    "SPARK-50492": dropped_time_avoided,
    "SPARK-51920": nested_value_avoided,
    "SPARK-52127": mapped_number_avoided,
    "SPARK-53625": padded_column_avoided,
    "SPARK-56280": negative_zero_avoided,
}
NOT_IN_TABLE = frozenset({"SPARK-45582", "SPARK-45655", "SPARK-49699"})
"""SPARK-45582, which no release showed here, and the others, whose condition no file of a checkpoint shows."""


def wrote(*rows: list[Any]) -> dict[str, Any]:
    """The answer of a query that wrote these rows, and ended without an error."""
    return {"rows": [*rows], "error": None}


_KEPT = wrote([0, "(Row(a=1, b=2),)"])
_AT = "1970-01-01 00:01:40"
RIGHT: dict[str, dict[str, Any]] = {
    "SPARK-45637": wrote([2, "0", "2", "2"]),
    "SPARK-46339": {"first": wrote([0, "1"]), "then": wrote([1, "2"])},
    "SPARK-46676": wrote([2, "1"], [2, "1"]),
    "SPARK-47305": {"first": wrote([0, "1"]), "then": wrote()},
    "SPARK-47840": {"first": wrote([0, "a", "2"], [0, "b", "2"]), "then": wrote([1, "a", "2"], [1, "b", "3"])},
    "SPARK-48481": {"first": wrote([0, "1"], [0, "1"], [1, "2"]), "then": wrote([2, "3"])},
    "SPARK-48934": wrote([0, "seen"], [1, "seen"], [2, "ended"]),
    "SPARK-49829": wrote([0, "0", "0"], [1, "1", "None"], [4, "2", "None"]),
    "SPARK-49836": wrote([1, "2"]),
    "SPARK-50492": wrote([0, "1"]),
    "SPARK-51690": wrote([0, "[(9007199254740993, 0.5)]"]),
    "SPARK-51920": {"numpy": _KEPT, "NamedTuple": _KEPT},
    "SPARK-52127": wrote([0, "[(9007199254740993,), (None,)]"]),
    "SPARK-53625": wrote([0, "aa", "0.json"]),
    "SPARK-53870": wrote([0, "30000005"]),
    "SPARK-56280": {name: wrote([0, "0.0", _AT]) for name in ("all", "within")},
}
"""The rows that each case writes on a release without its bug."""
CONTINUED_RIGHT: dict[str, dict[str, Any]] = {
    "SPARK-45637": wrote([5, "40", "2", "2"]),  # window 0 stays lost
    "SPARK-46339": RIGHT["SPARK-46339"]["then"],
    "SPARK-47305": wrote([2, "3"]),
    "SPARK-46676": RIGHT["SPARK-46676"],
    "SPARK-47840": wrote([2, "a", "2"], [2, "b", "4"]),
    "SPARK-48481": wrote([1, "2"], [2, "3"]),
    "SPARK-48934": wrote([1, "seen"], [2, "ended"]),
    "SPARK-49829": wrote([6, "3", "None"], [6, "5", "None"], [8, "4", "None"], [9, "6", "None"]),  # 1 stays lost
    "SPARK-49836": wrote([5, "2"]),
    "SPARK-50492": RIGHT["SPARK-50492"],
    "SPARK-51690": wrote([1, "[(9007199254740992, 0.5), (9007199254740993, 0.5)]"]),  # stays changed
    "SPARK-51920": {"numpy": wrote(), "NamedTuple": _KEPT},  # numpy stopped 4.0.0 alone
    "SPARK-52127": wrote([1, "[(9007199254740993,), (None,)]"]),
    "SPARK-53625": RIGHT["SPARK-53625"],
    "SPARK-53870": RIGHT["SPARK-53870"],
    "SPARK-56280": {"all": wrote([1, "1.0", _AT]), "within": wrote([2, "1.0", _AT])},
}
"""The rows that a release without the bug writes when it goes on."""

_APART = [["-1.0", _AT], ["1.0", _AT]]
AVOIDED_RIGHT: dict[str, dict[str, Any]] = {
    "SPARK-46339": wrote([1, "2"]),
    "SPARK-48934": wrote([1, "seen"], [2, "ended"]),
    "SPARK-50492": wrote([0, "1", _AT]),
    "SPARK-51920": {
        "numpy": wrote([1, "(Row(a=1, b=2),)"]),
        "NamedTuple": wrote(*([batch, "(Row(a=1, b=2),)"] for batch in (0, 1))),
    },
    "SPARK-52127": wrote([1, f"[({_LARGE},), (None,)]"]),
    "SPARK-53625": RIGHT["SPARK-53625"],
    "SPARK-56280": {"all": wrote(*([1, *row] for row in _APART)), "within": wrote(*([2, *row] for row in _APART))},
}
"""The rows of each batch that runs on the checkpoint of a query that hit the bug, if its finding is obeyed."""


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """Run a case in a session of its own: a role of `tests/record/process.py`."""
    folder, cases = Path(job["folder"]), {"continued": CONTINUED, "avoided": AVOIDED}.get(job.get("how", ""), CASES)
    folder.mkdir(parents=True, exist_ok=True)
    return cases[job["bug"]](spark.newSession(), folder)
