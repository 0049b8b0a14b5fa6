"""Queries and changes of them that no state schema shows: some are silently wrong, the others mean the same.

Startable under every pyspark from 3.5 to 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "k INT, id INT, g STRING, v INT, v2 INT, d DECIMAL(10,2), t TIMESTAMP, t2 TIMESTAMP"
Rows: TypeAlias = "Callable[[], DataFrame]"
"""Opens the source; each call is a source of its own."""
Build: TypeAlias = "Callable[[Rows], DataFrame]"

Read: TypeAlias = "Callable[[SparkSession, str], DataFrame]"


@dataclass(frozen=True)
class Query:
    """A query over files."""

    build: Build
    mode: str = "update"


@dataclass(frozen=True)
class Changed:
    """A changed query: of what a base, how the source is opened, and whether a start is silently wrong."""

    base: str
    name: str
    query: Query
    read: Read | None = None
    codes: tuple[str, ...] = ()  # of the findings that show it; none: the query means the same
    starts: bool = False  # Spark is asked to start it
    since: str = "3.5"
    until: str = "9"

    @property
    def id(self) -> str:
        """Such as ``sums: swapped``."""
        return f"{self.base}: {self.name}"


def read(spark: SparkSession, folder: str, columns: str = COLUMNS, **options: Any) -> DataFrame:
    return spark.readStream.schema(columns).options(maxFilesPerTrigger=1, **options).json(folder)


def grouped(keys: str, *aggregates: str, below: str = "*", where: str = "true") -> Query:
    def build(rows: Rows) -> DataFrame:
        from pyspark.sql.functions import expr

        selected = rows().selectExpr(*below.split("; ")).where(where)
        return selected.groupBy(*map(expr, keys.split(", "))).agg(*map(expr, aggregates))

    return Query(build)


def totals(first: str = "sum(v) AS s", second: str = "sum(id) AS i", third: str = "max(v) AS m", **more: str) -> Query:
    return grouped("k", first, second, third, **more)


def parts(key: str = "k % 3 AS part", where: str = "v > 3 AND g <> 'hush'") -> Query:
    return grouped(key, "sum(v) AS s", "count(*) AS n", where=where)


def windowed(
    size: str, slide: str | None = None, offset: str | None = None, *, column: str = "t", delay: str = "5 seconds"
) -> Query:
    def build(rows: Rows) -> DataFrame:
        from pyspark.sql.functions import window

        return rows().withWatermark(column, delay).groupBy(window(column, size, slide, offset), "k").count()

    return Query(build)


def sessions(gap: str) -> Query:
    def build(rows: Rows) -> DataFrame:
        from pyspark.sql.functions import session_window

        return rows().withWatermark("t", "5 seconds").groupBy(session_window("t", gap), "k").count()

    return Query(build, "append")


def deduplicated(*columns: str) -> Query:
    return Query(lambda rows: rows().dropDuplicates([*columns]), "append")


def joined(left: str, right: str, on: str, *, swapped: bool = False) -> Query:
    def build(rows: Rows) -> DataFrame:
        from pyspark.sql.functions import expr

        sides = [rows(), rows()]
        first = sides[swapped].withWatermark("t", "5 seconds").selectExpr(*left.split(", ")).alias("a")
        second = sides[not swapped].withWatermark("t", "5 seconds").selectExpr(*right.split(", ")).alias("b")
        return first.join(second, expr(on))

    return Query(build, "append")


def united(first: str, second: str) -> Query:
    def build(rows: Rows) -> DataFrame:
        from pyspark.sql.functions import sum as total

        both = rows().selectExpr("k", f"{first} AS x").unionByName(rows().selectExpr(f"{second} AS x", "k"))
        return both.groupBy("k").agg(total("x").alias("s"))

    return Query(build)


def chained(minutes: int) -> Query:
    def build(rows: Rows) -> DataFrame:
        from pyspark.sql.functions import sum as total, window, window_time

        counts = rows().withWatermark("t", "5 seconds").groupBy(window("t", "10 seconds"), "k").count()
        return counts.groupBy(window(window_time("window"), f"{minutes} minutes")).agg(total("count").alias("s"))

    return Query(build, "append")


BASES = {
    "sums": totals(),
    "counts": grouped("k", "count(*) AS n", "sum(v) AS s"),
    "key": parts(),
    "keys": grouped("k, id", "sum(v) AS s"),
    "window": windowed("10 seconds"),
    "sliding": windowed("10 seconds", "5 seconds"),
    "session": sessions("4 seconds"),
    "dedup": deduplicated("k", "id"),
    "join": joined("v2, v, k, t", "id, k, t", "a.k = b.k AND a.t > b.t - INTERVAL 5 SECONDS"),
    "union": united("v", "v2"),
    "chain": chained(1),
    "limit": Query(lambda rows: rows().limit(12), "append"),
}
KEY, VALUE, WINDOW, ROWS = ("CKPT447",), ("CKPT448",), ("CKPT449",), ("CKPT481",)
_ON = "a.k = b.k AND a.t > b.t - INTERVAL 5 SECONDS"


def _wrong(base: str, name: str, query: Query, codes: tuple[str, ...], **more: Any) -> Changed:
    return Changed(base, name, query, codes=codes, starts=True, **more)


WRONG = (
    _wrong("sums", "swapped", totals("sum(id) AS i", "sum(v) AS s", "max(v) AS m"), VALUE),
    _wrong("sums", "another column", totals("sum(v2) AS s"), VALUE),
    _wrong("sums", "min for max", totals("sum(v) AS s", "sum(id) AS i", "min(v) AS m"), VALUE),
    _wrong("sums", "column of the same name", totals(below="k; id; v2 AS v"), VALUE),
    _wrong("sums", "an expression", totals("sum(v * 2) AS s"), VALUE),
    _wrong("sums", "filter of an aggregate", totals("sum(v) FILTER (WHERE v > 5) AS s"), VALUE),
    _wrong("counts", "swapped", grouped("k", "sum(v) AS s", "count(*) AS n"), VALUE, since="4.3"),
    _wrong("counts", "of a column", grouped("k", "count(v2) AS n", "sum(v) AS s"), VALUE),
    _wrong("key", "another expression", parts("k % 2 AS part"), KEY),
    _wrong("key", "another column", parts("id % 3 AS part"), KEY),
    _wrong("keys", "swapped", grouped("id, k", "sum(v) AS s"), KEY),
    _wrong("window", "longer", windowed("20 seconds"), WINDOW),
    _wrong("window", "shorter", windowed("5 seconds"), WINDOW),
    _wrong("window", "offset", windowed("10 seconds", None, "2 seconds"), WINDOW),
    _wrong("window", "another time", windowed("10 seconds", column="t2"), (*KEY, *ROWS)),
    _wrong("sliding", "slide", windowed("10 seconds", "2 seconds"), WINDOW),
    _wrong("session", "gap", sessions("8 seconds"), WINDOW),
    _wrong("dedup", "swapped", deduplicated("id", "k"), KEY, until="4.2"),
    _wrong("dedup", "another column", deduplicated("k", "v"), KEY),
    _wrong("join", "columns swapped", joined("v, v2, k, t", "id, k, t", _ON), VALUE),
    _wrong("join", "another key", joined("v2, v, k, t", "id, k, t", _ON.replace("b.k", "b.id")), KEY),
    _wrong("join", "another column", joined("v2, id AS v, k, t", "id, k, t", _ON), VALUE),
    _wrong("union", "a column of one branch", united("v", "id"), VALUE),
    _wrong("chain", "outer window", chained(2), WINDOW),
    # From now on: warnings, which hold nothing
    Changed("limit", "more", Query(lambda rows: rows().limit(30), "append"), codes=ROWS),
    Changed("window", "delay", windowed("10 seconds", delay="60 seconds"), codes=ROWS),
    Changed("key", "filter", parts(where="v > 4 AND g <> 'hush'"), codes=ROWS),
    Changed("key", "text of a filter", parts(where="v > 3 AND g <> 'hash'"), codes=ROWS),
    Changed("join", "condition", joined("v2, v, k, t", "id, k, t", _ON.replace("5 S", "6 S")), codes=ROWS),
)


def _through_sql(rows: DataFrame) -> DataFrame:
    rows.createOrReplaceTempView("incoming")
    return rows.sparkSession.sql("SELECT /* a comment */ * FROM incoming")


BELOW: dict[str, Callable[[DataFrame], DataFrame]] = {
    "columns reordered": lambda rows: rows.select(*reversed(rows.columns)),
    "an unused column": lambda rows: rows.withColumn("unused", rows["v"] * 7),
    "renamed and back": lambda rows: rows.withColumnRenamed("v", "w").withColumnRenamed("w", "v"),
    "a table's alias": lambda rows: rows.alias("x"),
    "through SQL": _through_sql,
    "a filter that always holds": lambda rows: rows.where("1 = 1"),
}
ABOVE: dict[str, Callable[[DataFrame], DataFrame]] = {
    "result renamed": lambda rows: rows.toDF(*(f"{name}_{place}" for place, name in enumerate(rows.columns))),
    "a column of the result": lambda rows: rows.selectExpr("*", "1 AS one"),
}
READ: dict[str, Read] = {
    "option": lambda spark, folder: read(spark, folder, maxFileAge="8d"),
    "a column more in the schema": lambda spark, folder: read(spark, folder, f"{COLUMNS}, more STRING").drop("more"),
}


def _below(query: Query, change: Callable[[DataFrame], DataFrame]) -> Query:
    return Query(lambda rows: query.build(lambda: change(rows())), query.mode)


def _above(query: Query, change: Callable[[DataFrame], DataFrame]) -> Query:
    return Query(lambda rows: change(query.build(rows)), query.mode)


def _same() -> Iterator[Changed]:
    for base in ("sums", "key", "window", "session", "dedup", "join", "union"):
        query, starts = BASES[base], base in ("key", "join")
        for name, change in BELOW.items():
            yield Changed(base, name, _below(query, change), starts=starts)
        for name, change in ABOVE.items():
            yield Changed(base, name, _above(query, change), starts=starts)
        for name, opened in READ.items():
            yield Changed(base, name, query, opened)


_OTHER_WAY = "b.k = a.k AND b.t - INTERVAL '5' SECOND < a.t"
WRITTEN_OTHERWISE = (
    Changed("sums", "aliases", grouped("k AS user", "sum(v) AS a", "sum(id) AS b", "max(v) AS c"), starts=True),
    Changed("counts", "count of 1", grouped("k", "count(1) AS n", "SUM(V) AS s")),
    Changed("key", "another spelling", parts("MOD(k,3) AS part", "g != 'hush' AND 3 < v")),
    Changed("key", "a literal", parts("k % (1 + 2) AS part")),
    Changed("window", "milliseconds", windowed("10000 milliseconds", delay="5000 milliseconds")),
    Changed("window", "slide as long as the window", windowed("10 seconds", "10 seconds")),
    Changed("session", "milliseconds", sessions("4000 milliseconds")),
    Changed(
        "join",
        "equality the other way",
        joined("v2, v, k, t", "id, k, t", "b.k = a.k AND b.t - INTERVAL '5' SECOND < a.t"),
    ),
    Changed("limit", "result renamed", Query(lambda rows: rows().limit(12).withColumnRenamed("v", "w"), "append")),
)
SAME = (*_same(), *WRITTEN_OTHERWISE)


ALL = "4.2"
"""The version that is asked everything; the others are asked a part."""


def changes(minor: str) -> list[Changed]:
    """Those that a version is asked."""
    same = SAME if minor == ALL else SAME[::4]
    return [change for change in (*WRONG, *same) if change.since <= minor <= change.until]


def is_started(change: Changed, minor: str) -> bool:
    """Tell whether a version is asked to start a changed query."""
    return change.starts and (minor == ALL or change.since == minor)


def build(
    spark: SparkSession, folder: Path, query: Query, opened: Callable[[SparkSession, str], DataFrame] | None
) -> DataFrame:
    """The unstarted query; each of its sources has a folder of its own."""
    places = iter(range(9))
    return query.build(lambda: (opened or read)(spark, str(folder / f"in{next(places)}")))
