"""Changes of the columns of state, and what each column of the changed query then is: full, or from now on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

FULL, NOW, NONE = "full", "now", "none"  # of a column: of all history, of new rows alone, of neither
SCHEMA = "id BIGINT, k INT, c STRING, g INT, v INT, v2 INT, d DECIMAL(10,2), f FLOAT, t TIMESTAMP"
WIDE = SCHEMA.replace("v INT", "v BIGINT").replace("f FLOAT", "f DOUBLE").replace("(10,2)", "(14,2)")
WIDE_KEYS = SCHEMA.replace("k INT", "k BIGINT").replace("g INT", "g BIGINT")


@dataclass(frozen=True)
class Query:
    """A query over files of rows, or of two folders of them (`join`)."""

    keys: tuple[str, ...] = ("k",)  # expressions
    aggregates: tuple[str, ...] = ()  # expressions with names
    schema: str = SCHEMA
    window: str | None = None
    distinct: tuple[str, ...] = ()  # the columns of a deduplication
    within: bool = False  # the watermark
    join: tuple[tuple[str, ...], tuple[str, ...]] = ()  # type: ignore[assignment]  # columns of both sides


@dataclass(frozen=True)
class ColumnCase:
    """A changed query on the checkpoint of another one."""

    name: str
    old: Query
    new: Query
    expected: tuple[tuple[str, str], ...]  # of each column of the result
    store: str = "hdfs"
    known: bool = True  # the old query is named
    map_column: tuple[str, ...] = ()
    default: tuple[tuple[str, str], ...] = ()
    refused: str | None = None
    verdict: str | None = None
    since: str = "4.0"
    needs: str = ""

    @property
    def job(self) -> dict[str, Any]:
        """As the worker is told."""
        return {"old": asdict(self.old), "new": asdict(self.new)}


BASE = Query(aggregates=("count(*) AS n", "sum(v) AS s"))
TWO = Query(aggregates=("sum(v) AS s", "sum(v2) AS s2"))
NEW_FUNCTIONS = (
    *("max(v2)", "min(v2)", "avg(v2)", "sum(v2)", "count(v2)", "stddev(v2)", "skewness(v2)", "corr(v, v2)"),
    *("first(v2)", "max_by(v2, v)", "bit_or(v2)", "sum(d)", "avg(d)", "count_if(v2 > 3)"),
    *("collect_list(v2)", "collect_set(v2)", "percentile_approx(v2, 0.5)", "approx_count_distinct(v2)"),
    *("regr_slope(v2, v)", "histogram_numeric(v2, 3)", "try_sum(v2)", "mode(v2)"),
)
STORES = ("hdfs", "rocksdb", "changelog", "format2")


def _full(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, FULL) for name in names)


def _aggregates() -> Iterator[ColumnCase]:
    for function in NEW_FUNCTIONS:
        more = replace(BASE, aggregates=(f"{function} AS x", *BASE.aggregates))
        yield ColumnCase(f"add {function} first", BASE, more, (("x", NOW), *_full("n", "s")))
    last = replace(BASE, aggregates=(*BASE.aggregates, "last(v2) AS x"))
    yield ColumnCase("add last(v2)", BASE, last, (("x", f"{FULL}, and {NOW}"), *_full("n", "s")))
    for store in STORES:
        since = "4.2" if store == "format2" else "4.0"
        more = replace(BASE, aggregates=("max(v2) AS hi", *BASE.aggregates[::-1], "count(v2) AS c2"))
        expected = (("hi", NOW), ("c2", NOW), *_full("n", "s"))
        yield ColumnCase(f"{store}: add and reorder", BASE, more, expected, store, since=since)
        less = replace(BASE, aggregates=("sum(v) AS total",))
        yield ColumnCase(f"{store}: remove count", BASE, less, _full("total"), store, since=since)
        only = replace(BASE, aggregates=("count(*) AS n",))
        yield ColumnCase(f"{store}: remove sum", BASE, only, _full("n"), store, since=since)
        unknown = replace(BASE, aggregates=("max(v) AS hi", "sum(v) AS s"))
        expected = (("hi", NOW), *_full("s"))
        name = f"{store}: without the old query"
        yield ColumnCase(name, BASE, unknown, expected, store, known=False, since=since, verdict="unknown")
    swapped = replace(TWO, aggregates=TWO.aggregates[::-1])
    yield ColumnCase("two sums swapped", TWO, swapped, _full("s", "s2"))
    other = replace(BASE, aggregates=("count(*) AS n", "sum(id) AS s"))
    yield ColumnCase("another sum", BASE, other, (("n", FULL), ("s", NOW)))
    least = replace(BASE, aggregates=("max(v) AS x", "count(*) AS n"))
    yield ColumnCase(
        "max to min", least, replace(least, aggregates=("min(v) AS x", "count(*) AS n")), (("x", NOW), ("n", FULL))
    )
    three = replace(TWO, aggregates=("sum(id) AS i", *TWO.aggregates))
    why = "say it with `map_column` OLD=value_sum"
    yield ColumnCase("a third sum, which is not told", TWO, three, (), known=False, refused=why)
    words = ("-=value_sum", "value_sum=value_sum_2", "value_sum_2=value_sum_3")
    told = (("i", NOW), *_full("s", "s2"))
    yield ColumnCase("a third sum, told", TWO, three, told, known=False, map_column=words, verdict="unknown")
    renamed = replace(BASE, aggregates=("count(*) AS n", "sum(CAST(v AS INT) + 0) AS s"))
    same = ("value_sum=value_sum",)
    yield ColumnCase(
        "another expression of the same", BASE, renamed, _full("n", "s"), map_column=same, verdict="unknown"
    )
    window = replace(BASE, window="10 seconds")
    more = replace(window, aggregates=("max(v2) AS hi", *BASE.aggregates))
    yield ColumnCase("windows: add", window, more, (("hi", NOW), *_full("n", "s")))
    every = Query(keys=(), aggregates=BASE.aggregates)
    most = replace(every, aggregates=("max(v2) AS hi", *BASE.aggregates))
    yield ColumnCase("without keys: add", every, most, (("hi", NOW), *_full("n", "s")))


def _wider() -> Iterator[ColumnCase]:
    both = (
        "max(v) AS hi",
        "max(f) AS fh",
        "sum(d) AS ds",
        "min(d) AS dl",
        "sum(v) AS s",
        "avg(v) AS m",
        "first(v) AS f",
    )
    narrow = Query(aggregates=both)
    names = ("hi", "fh", "ds", "dl", "s", "m", "f")
    for store in ("hdfs", "changelog"):
        yield ColumnCase(f"{store}: wider values", narrow, replace(narrow, schema=WIDE), _full(*names), store)
        wide = replace(BASE, schema=WIDE_KEYS)
        yield ColumnCase(f"{store}: wider key", BASE, wide, _full("n", "s"), store)
    lists = replace(BASE, aggregates=("collect_list(v) AS l", "count(*) AS n"))
    why = "reads a column of another type than before"
    yield ColumnCase("a list of wider values", lists, replace(lists, schema=WIDE), (), refused=why)
    hashed = replace(BASE, aggregates=("max(hash(v)) AS h",))
    yield ColumnCase("a hash of wider values", hashed, replace(hashed, schema=WIDE), (), refused=why)
    distinct = replace(BASE, aggregates=("approx_count_distinct(v) AS d",))
    yield ColumnCase("registers of wider values", distinct, replace(distinct, schema=WIDE), (), refused=why)


def _keys() -> Iterator[ColumnCase]:
    for store in ("hdfs", "rocksdb"):
        two = replace(BASE, keys=("k", "g"))
        swapped = replace(BASE, keys=("g", "k"))
        yield ColumnCase(f"{store}: keys swapped", two, swapped, _full("n", "s"), store)
        split = replace(BASE, keys=("k", "c"))
        words = (("key_c", "one"),)
        name = f"{store}: a key column more"
        yield ColumnCase(name, BASE, split, _full("n", "s"), store, default=words, verdict="unknown")
    split = replace(BASE, keys=("c", "k"), aggregates=("max(v2) AS hi", "sum(v) AS s"))
    expected = (("hi", NOW), ("s", FULL))
    yield ColumnCase("a key column and an aggregate", BASE, split, expected, default=(("c", "one"),), verdict="unknown")
    yield ColumnCase(
        "a key column without a value", BASE, replace(BASE, keys=("k", "c")), (), refused="`default` key_c=VALUE"
    )
    less = replace(BASE, keys=("k", "g"))
    yield ColumnCase("a key column less", less, BASE, (), refused="ckpt does not merge what they keep")
    other = replace(BASE, keys=("k % 2",))
    yield ColumnCase("another key", replace(BASE, keys=("k % 3",)), other, (), refused="the state does not know it")


def _distinct() -> Iterator[ColumnCase]:
    for store in ("hdfs", "changelog"):
        one, two = Query(distinct=("id",)), Query(distinct=("id", "k"))
        yield ColumnCase(f"{store}: dedup column less", two, one, (("rows", FULL),), store)
        more = Query(distinct=("id", "c"))
        words = (("c", "one"),)
        yield ColumnCase(
            f"{store}: dedup column more", one, more, (("rows", FULL),), store, default=words, verdict="unknown"
        )
        ints = Query(distinct=("v", "v2"))
        yield ColumnCase(f"{store}: dedup columns swapped", ints, Query(distinct=("v2", "v")), (("rows", FULL),), store)
        yield ColumnCase(f"{store}: dedup wider", ints, replace(ints, schema=WIDE), (("rows", FULL),), store)
    within = Query(distinct=("v", "v2"), within=True)
    yield ColumnCase("within watermark: swapped", within, replace(within, distinct=("v2", "v")), (("rows", FULL),))
    why = "ckpt does not merge what they keep"
    yield ColumnCase("within watermark: column less", within, replace(within, distinct=("v",)), (), refused=why)


def _joins() -> Iterator[ColumnCase]:
    for store in ("hdfs", "changelog"):
        old = Query(join=(("v",), ("v2", "g")))
        rows = (("rows", FULL),)
        yield ColumnCase(f"{store}: join column less", old, Query(join=(("v",), ("g",))), rows, store)
        yield ColumnCase(f"{store}: join columns swapped", old, Query(join=(("v",), ("g", "v2"))), rows, store)
        yield ColumnCase(f"{store}: join wider", old, replace(old, schema=WIDE), rows, store)
    more = Query(join=(("v", "c"), ("v2", "g")))
    yield ColumnCase("join column more", old, more, (("rows", NONE), ("rows without c", FULL)))
    less = Query(join=(("v",), ("v2",)))
    yield ColumnCase("join, without the old query", old, less, rows, known=False, verdict="unknown")


COLUMN_CASES = (*_aggregates(), *_wider(), *_keys(), *_distinct(), *_joins())
