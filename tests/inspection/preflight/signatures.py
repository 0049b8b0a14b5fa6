"""Queries and changes of them that no state schema shows: some are silently wrong, the others mean the same.

Startable under every pyspark from 3.5 to 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    conf: tuple[tuple[str, str], ...] = ()  # of its session

    @property
    def id(self) -> str:
        """Such as ``sums: swapped``."""
        return f"{self.base}: {self.name}"


def read(spark: SparkSession, folder: str, columns: str = COLUMNS, **options: Any) -> DataFrame:
    return spark.readStream.schema(columns).options(**{"maxFilesPerTrigger": 1, **options}).json(folder)


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


def texts(*columns: str, keys: str = "k") -> Query:
    """Columns that are read from the text ``g``."""
    return grouped(keys, *columns)


def json_of(field: str, schema: str = "a INT, b INT, at TIMESTAMP", **options: str) -> str:
    pairs = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
    return f"from_json(g, '{schema}', map({pairs})).{field}" if pairs else f"from_json(g, '{schema}').{field}"


def csv_of(field: str, **options: str) -> str:
    pairs = ", ".join(f"'{name}', '{value}'" for name, value in {"mode": "PERMISSIVE", **options}.items())
    return f"from_csv(g, 'a INT, b STRING', map({pairs})).{field}"


def messages(total: str | None = None, last: str | None = None) -> Query:
    """Values of JSON and CSV in a text."""
    return texts(f"sum({total or json_of('a')}) AS s", f"max({last or json_of('at')}) AS m", f"sum({csv_of('a')}) AS c")


def times(day: str = "CAST(t AS DATE) AS day", text: str = "date_format(t, 'HH')") -> Query:
    return grouped(f"{day}, hour(t2) AS h", "count(*) AS n", f"max({text}) AS m")


TABLES = "/tmp/ckpt-preflight/tables"
"""Folders of tables that are not streamed: prices and discounts."""
Open: TypeAlias = "Callable[[DataFrame], DataFrame]"


def table(name: str = "prices", change: Open = lambda rows: rows, **options: Any) -> Open:
    """Open a table, beside the rows of a stream."""

    def open_table(rows: DataFrame) -> DataFrame:
        reader = rows.sparkSession.read.schema("item INT, price INT, at TIMESTAMP").options(**options)
        return change(reader.json(f"{TABLES}/{name}"))

    return open_table


def in_memory(rows: DataFrame) -> DataFrame:
    return rows.sparkSession.createDataFrame([(1, 2)], "item INT, price INT")


def priced(opened: Open, total: str = "sum(price) AS s", on: str = "k", how: str = "inner") -> Query:
    def build(rows: Rows) -> DataFrame:
        from pyspark.sql.functions import expr

        stream = rows()
        prices = opened(stream)
        return stream.join(prices, stream[on] == prices["item"], how).groupBy("k").agg(expr(total))

    return Query(build)


def folded(text: str) -> Query:
    return grouped("k", f"sum(aggregate(array(v, v2), 0, {text})) AS s")


def listed(last: int) -> Query:
    return grouped("k", "count(*) AS n", where=f"id IN ({', '.join(map(str, (*range(20), last)))})")


def mapped(function: Callable[[Any], Any]) -> Query:
    return Query(lambda rows: rows().select("k").mapInPandas(function, "k INT").groupBy("k").count())


def every(frames: Any) -> Any:
    yield from frames


def some(frames: Any) -> Any:
    yield from (frame[frame.k > 3] for frame in frames)


BASES = {
    "messages": messages(),
    "times": times(),
    "priced": priced(table()),
    "counted": priced(table(), "count(*) AS n"),
    "folded": folded("(x, y) -> x - y"),
    "listed": listed(30),
    "distinct": grouped("k", "approx_count_distinct(v, 0.05) AS n"),
    "mapped": mapped(every),
    "memory": priced(in_memory),
    "clock": grouped("k", "count(*) AS n", where="t2 < current_timestamp()"),
    "random": grouped("k", "count(*) AS n", where="rand() < 0.5"),
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


_TOKYO = (("spark.sql.session.timeZone", "Asia/Tokyo"),)
_LEGACY = (("spark.sql.legacy.timeParserPolicy", "LEGACY"),)
_COLUMNS_OF_MESSAGES = (f"sum({json_of('a')}) AS s", f"max({json_of('at')}) AS m")


def _read(**options: Any) -> Read:
    """Open the source with options more."""
    return lambda spark, folder: read(spark, folder, **options)


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
    _wrong("messages", "another field", messages(json_of("b")), VALUE),
    Changed("messages", "a wider field", messages(json_of("a", "a BIGINT, b INT, at TIMESTAMP")), codes=VALUE),
    Changed("messages", "mode", messages(json_of("a", mode="FAILFAST")), codes=VALUE),
    _wrong("messages", "format of times", messages(last=json_of("at", timestampFormat="dd/MM/yyyy")), VALUE),
    _wrong("messages", "zone of times", messages(last=json_of("at", timeZone="Asia/Tokyo")), VALUE),
    _wrong("messages", "a separator", texts(*_COLUMNS_OF_MESSAGES, f"sum({csv_of('a', sep=';')}) AS c"), VALUE),
    _wrong("messages", "zone of the session", messages(), VALUE, conf=_TOKYO),
    _wrong("times", "zone of the session", times(), (*KEY, *VALUE), conf=_TOKYO),
    _wrong("times", "parser of times", times(), (*KEY, *VALUE), conf=_LEGACY),
    _wrong("times", "another format", times(text="date_format(t, 'mm')"), VALUE),
    _wrong("sums", "lines", totals(), (*KEY, *VALUE, *ROWS), read=_read(multiLine="true")),
    _wrong("sums", "what is malformed", totals(), (*KEY, *VALUE, *ROWS), read=_read(mode="DROPMALFORMED")),
    _wrong("dedup", "lines", BASES["dedup"], (*KEY, *ROWS), read=_read(multiLine="true")),
    _wrong("window", "format of times", BASES["window"], KEY, read=_read(timestampFormat="yyyy-dd-MM'T'HH:mm:ss'Z'")),
    _wrong("window", "zone of the session", BASES["window"], KEY, conf=_TOKYO),
    _wrong("join", "zone of the reader", BASES["join"], (*VALUE, *ROWS), read=_read(timeZone="Asia/Tokyo")),
    _wrong("priced", "another table", priced(table("discounts")), (*VALUE, *ROWS)),
    _wrong("priced", "lines of the table", priced(table(multiLine="true")), (*VALUE, *ROWS)),
    _wrong("folded", "variables swapped", folded("(x, y) -> y - x"), VALUE),
    # From now on: warnings, which hold nothing
    Changed("limit", "more", Query(lambda rows: rows().limit(30), "append"), codes=ROWS),
    Changed("window", "delay", windowed("10 seconds", delay="60 seconds"), codes=ROWS),
    Changed("key", "filter", parts(where="v > 4 AND g <> 'hush'"), codes=ROWS),
    Changed("key", "text of a filter", parts(where="v > 3 AND g <> 'hash'"), codes=ROWS),
    Changed("sums", "which files", totals(), _read(pathGlobFilter="*.json"), ROWS),
    Changed("sums", "letters", totals(), codes=ROWS, conf=(("spark.sql.caseSensitive", "true"),)),
    Changed("counted", "another table", priced(table("discounts"), "count(*) AS n"), codes=ROWS),
    Changed("counted", "by another column", priced(table(), "count(*) AS n", "id"), codes=ROWS),
    Changed("counted", "otherwise", priced(table(), "count(*) AS n", "k", "left"), codes=ROWS),
    Changed("listed", "a value", listed(31), codes=ROWS),
    Changed("mapped", "another function", mapped(some), codes=ROWS),
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
_HARMLESS: Mapping[str, Mapping[str, str]] = {
    "a rate": {"maxFilesPerTrigger": "7"},
    "newest files first": {"latestFirst": "true"},
    "files are removed": {"cleanSource": "delete"},
    "credentials": {"fs.s3a.secret.key": "hush", "password": "hush"},
    "the default mode": {"mode": "permissive"},
    "defaults": {"multiLine": "false", "allowComments": "false", "encoding": "UTF-8", "locale": "en-US"},
    "the zone that it has": {"timeZone": "Etc/UTC"},
    "the format of dates": {"dateFormat": "dd/MM/yyyy"},
    "a column of what is malformed": {"columnNameOfCorruptRecord": "nowhere"},
    "of other types": {"nanValue": "none", "samplingRatio": "0.1"},
}
_SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "Etc/UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.legacy.timeParserPolicy": "EXCEPTION",
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.sql.files.maxPartitionBytes": "1000",
}


def _same_readings() -> Iterator[Changed]:
    """Options, settings and tables that decide no value."""
    for name, options in _HARMLESS.items():
        yield Changed("sums", name, BASES["sums"], _read(**options))
        yield Changed("window", name, BASES["window"], _read(**options))
    for number, (name, value) in enumerate(_SETTINGS.items()):
        base = ("times", "priced", "messages", "join")[number % 4]
        yield Changed(base, name, BASES[base], conf=((name, value),))
    yield Changed("counts", "zone of the session", BASES["counts"], conf=_TOKYO, starts=True)
    yield Changed("messages", "default mode", messages(json_of("a", mode="PERMISSIVE")))
    yield Changed("messages", "a field more", messages(json_of("a", "z INT, a INT")))
    yield Changed("messages", "format of another field", messages(json_of("a", timestampFormat="dd/MM/yyyy")))
    yield Changed("priced", "a hint", priced(table(change=lambda prices: prices.hint("merge"))))
    yield Changed("priced", "a table's alias", priced(table(change=lambda prices: prices.alias("p"))))
    yield Changed("priced", "a column of the table", priced(table(change=lambda prices: prices.drop("at"))))
    yield Changed("folded", "names of variables", folded("(b, a) -> b - a"))
    yield Changed("distinct", "as exact", grouped("k", "approx_count_distinct(v, 0.0501) AS n"), starts=True)
    yield Changed("random", "a seed", BASES["random"])


SAME = (*_same(), *WRITTEN_OTHERWISE, *_same_readings())
DOUBTFUL = tuple(Changed(base, "nothing", BASES[base]) for base in ("clock", "mapped", "memory"))
"""Unchanged queries with parts that ckpt cannot see: they are not held, and never ``full``."""


ALL = "4.2"
"""The version that is asked everything; the others are asked a part."""


def changes(minor: str) -> list[Changed]:
    """Those that a version is asked."""
    same = SAME if minor == ALL else SAME[::4]
    return [change for change in (*WRONG, *same, *DOUBTFUL) if change.since <= minor <= change.until]


def is_started(change: Changed, minor: str) -> bool:
    """Tell whether a version is asked to start a changed query."""
    return change.starts and (minor == ALL or change.since == minor)


def build(
    spark: SparkSession, folder: Path, query: Query, opened: Callable[[SparkSession, str], DataFrame] | None
) -> DataFrame:
    """The unstarted query; each of its sources has a folder of its own."""
    places = iter(range(9))
    return query.build(lambda: (opened or read)(spark, str(folder / f"in{next(places)}")))
