"""Pairs of queries at random: an old one, and the same with one to four changes.

A change is one of: operators, keys, aggregates, windows, watermarks, output modes, filters, generators, joins,
deduplications, functions of a user, limits, sorts, sources, settings of the session.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

SEED, BASES, CHANGED, CONTINUED = 46, 50, 20, 3
"""The number of old queries, of changed ones for each, and of pairs that Spark continues."""
SCHEMA = "id BIGINT, k INT, g STRING, v INT, xs ARRAY<INT>, t TIMESTAMP, u TIMESTAMP"
PLAIN = ("v > 3", "g <> 'a'", "k < 3", "v + k > 6", "v > 3 AND k < 3", "v > 3 OR k < 2", "NOT (v > 3)", "id % 3 <> 1")
NULLS = (
    *("v IS NOT NULL", "NOT (g IS NULL)", "g IS NOT NULL", "v IS NULL", "NOT (v <=> NULL)", "t IS NOT NULL"),
    *("v IS NOT NULL AND k < 3", "v IS NOT NULL OR k = 1", "v IS NOT NULL AND v > 3", "coalesce(v, 0) >= 0"),
    *("na.drop v", "na.drop v+g", "na.drop any", "isnotnull(g) AND g <> 'b'", "size(xs) > 0", "get(xs, 0) IS NOT NULL"),
)
FILTERS = (*PLAIN, *NULLS)
VALUES = (
    *("count(*)", "sum(v)", "count(v)", "max(v)", "min(v)", "avg(v)", "sum(k)", "sum(coalesce(v, 0))", "sum(v + 1)"),
    *("count_if(v > 5)", "sort_array(collect_set(v))", "max(t)", "sum(CASE WHEN k = 1 THEN v END)", "bool_or(k = 2)"),
)
KEYS = (("g",), ("g",), ("g", "k"), ("k", "g"), ("k",), ("upper(g)",), ("k % 2",), ("date_format(t, 'HH')",))
WINDOWS = (
    *(("1 minute", None), ("2 minutes", None), ("3 minutes", None), ("90 seconds", None)),
    *(("2 minutes", "1 minute"), ("4 minutes", "1 minute"), ("4 minutes", "2 minutes"), ("90 seconds", "30 seconds")),
)
DELAYS = (None, "0 seconds", "10 seconds", "30 seconds", "30 seconds", "90 seconds", "10 minutes")
TABLES = ("inner", "left", "left_semi", "left_anti")
JOINS = ("inner", "leftOuter", "rightOuter", "fullOuter", "leftSemi")
GENERATORS = ("explode", "explode_outer", "posexplode", "two rows")
DISTINCT = (("id",), ("id", "t"), ("t", "id"), ("g", "v"), ("id", "g"))
KINDS = ("rows", "limit", "window", "window", "window", "window", "keys", "keys", "session", "within", "join", "twice")


@dataclass(frozen=True)
class Query:
    """A query over a folder of files, from the source on."""

    united: bool = False  # with a second source
    watermark: str | None = "30 seconds"
    marked: str = "t"  # the column of the watermark
    filters: tuple[str, ...] = ()
    function: str = ""  # of a user, by which rows are filtered: small or even
    generator: str = ""
    table: str = ""  # how a table that is not streamed is joined
    names: int = 3  # rows of that table
    distinct: tuple[str, ...] = ()
    filtered_last: tuple[str, ...] = ()  # filters after the deduplication
    kind: str = "window"
    keys: tuple[str, ...] = ("g",)
    time: str = "t"  # the column of the window
    length: str = "1 minute"
    slide: str | None = None
    values: tuple[str, ...] = ("count(*)", "sum(v)")
    how: str = "inner"
    condition: str = ""
    having: str = ""
    sort: str = ""
    limit: int = 0
    zone: str = "UTC"
    mode: str = "update"

    def build(self, spark: Any, folder: Path) -> Any:
        """Return the frame; the same folder has the rows of the other side of a join."""
        functions = __import__("pyspark.sql.functions", fromlist=["expr"])

        def read(folder: Path = folder) -> Any:
            reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1")
            return self._mark(reader.json(str(folder)))

        rows = read()
        if self.united:
            rows = rows.union(read(folder.with_name("more inputs")))
        for text in self.filters:
            rows = _filter(rows, text)
        if self.function:
            test = {"small": lambda v: v is not None and v < 12, "even": lambda v: v is None or v % 2 == 0}
            rows = rows.where(functions.udf(test[self.function], "boolean")("v"))
        if self.generator == "two rows":
            rows = rows.select("*", functions.expr("stack(2, 1, 2)"))
        elif self.generator:
            rows = rows.select("*", functions.expr(f"{self.generator}(xs)"))
        if self.table:
            values = ", ".join(f"({number}, '{number * 7}')" for number in range(self.names))
            rows = rows.join(spark.sql(f"SELECT * FROM VALUES {values} AS t(k, name)"), "k", self.table)
        if self.distinct:
            rows = rows.dropDuplicates(list(self.distinct))
        for text in self.filtered_last:
            rows = _filter(rows, text)
        return self._finish(rows, read, functions)

    def _mark(self, rows: Any) -> Any:
        return rows.withWatermark(self.marked, self.watermark) if self.watermark else rows

    def _finish(self, rows: Any, read: Callable[[], Any], functions: Any) -> Any:
        keys = [functions.expr(text).alias(f"key{number}") for number, text in enumerate(self.keys)]
        values = [functions.expr(text).alias(_name(text)) for text in self.values]
        match self.kind:
            case "rows":
                return rows.select("id", "g", "v")
            case "limit":
                return rows.select("id", "g", "v").limit(self.limit)
            case "within":
                return rows.dropDuplicatesWithinWatermark(list(self.distinct or ("id",))).select("id", "v")
            case "join":
                other = read().selectExpr("id + 1 AS id2", "t AS t2", "u AS u2", "v AS v2")
                on = f"id = id2 AND t2 BETWEEN t AND t + INTERVAL {self.length}" if self.watermark else "id = id2"
                on += f" AND {self.condition}" if self.condition else ""
                joined = rows.join(other, functions.expr(on), self.how)
                return joined.select("id", "v", *(("v2",) if self.how != "leftSemi" else ()))
            case "session":
                groups = rows.groupBy(functions.session_window(self.time, self.length), *keys)
            case "window" | "twice":
                groups = rows.groupBy(functions.window(self.time, self.length, self.slide).alias("w"), *keys)
            case _:
                groups = rows.groupBy(*keys)
        counted = groups.agg(*values)
        if self.having:
            counted = counted.where(f"{_name('count(*)')} {self.having}")
        if self.kind == "twice":
            groups = counted.groupBy(functions.window(functions.window_time("w"), "4 minutes"))
            return groups.agg(functions.expr(f"sum({_name('count(*)')})").alias("all"))
        counted = counted.orderBy(*self.sort.split("+")) if self.sort else counted
        return counted.limit(self.limit) if self.limit else counted


def _filter(rows: Any, text: str) -> Any:
    if not text.startswith("na.drop"):
        return rows.where(text)
    names = text.split()[1]
    return rows.na.drop(subset=["v", "g", "k"] if names == "any" else names.split("+"))


def _name(text: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in text)


@dataclass(frozen=True)
class Pair:
    """An old query, and the changed one."""

    number: str
    old: Query
    new: Query
    continued: bool

    @cached_property
    def name(self) -> str:
        """Its number, what the old query is, and each difference."""
        said = (f"{name} {spell(getattr(self.old, name))} to {spell(getattr(self.new, name))}" for name in self.changed)
        return f"{self.number} {self.old.kind}: {', '.join(said)}"

    @property
    def changed(self) -> tuple[str, ...]:
        """The fields that differ."""
        return tuple(
            each.name for each in fields(Query) if getattr(self.old, each.name) != getattr(self.new, each.name)
        )


def spell(value: Any) -> str:
    """Spell the value of a field."""
    return ("+".join(value) if isinstance(value, (list, tuple)) else str(value)) or "-"


def make_query(chance: random.Random, kind: str) -> Query:
    """Make a query that Spark can run."""

    def maybe(share: float, choices: Iterable[Any], other: Any) -> Any:
        return chance.choice([*choices]) if chance.random() < share else other

    length, slide = chance.choice(WINDOWS)
    return fit(
        Query(
            united=chance.random() < 0.1,
            watermark=chance.choice(DELAYS),
            filters=maybe(0.4, [(text,) for text in FILTERS], ()),
            generator=maybe(0.2, GENERATORS, ""),
            table=maybe(0.2, TABLES, ""),
            distinct=maybe(0.25, DISTINCT, ()),
            filtered_last=maybe(0.15, [(text,) for text in FILTERS], ()),
            kind=kind,
            keys=chance.choice(KEYS),
            length=length,
            slide=slide,
            values=("count(*)", *chance.sample(VALUES[1:], chance.choice((0, 1, 2)))),
            how=chance.choice(JOINS),
            condition=maybe(0.3, ("v2 > 3", "v < v2"), ""),
            having=maybe(0.1, ("> 1",), ""),
            limit=5,
            mode=chance.choice(("append", "update", "update", "complete")),
        )
    )


def change(query: Query, chance: random.Random, count: int) -> Query:
    """Change a few parts of a query."""
    for part in chance.sample(sorted(_CHANGES), count):
        query = fit(_CHANGES[part](query, chance))
    return query


def _change_values(query: Query, chance: random.Random) -> Query:
    rest = list(query.values[1:])
    how = chance.choice(("more", "less", "other", "order"))
    if how == "less" and rest:
        rest.pop()
    elif how == "order":
        rest.reverse()
    else:
        new = chance.choice([text for text in VALUES[1:] if text not in rest])
        rest = [new, *rest] if how == "more" or not rest else [*rest[:-1], new]
    return replace(query, values=("count(*)", *rest))


def _change_window(query: Query, chance: random.Random) -> Query:
    length, slide = chance.choice(WINDOWS)
    return replace(query, length=length, slide=slide)


def _toggle(name: str, choices: tuple[Any, ...], plain: Any) -> Callable[[Query, random.Random], Query]:
    """Set a field to one of the others, or to what it plainly is."""

    def make(query: Query, chance: random.Random) -> Query:
        others = [each for each in (*choices, plain) if each != getattr(query, name)]
        value = plain if getattr(query, name) != plain and chance.random() < 0.5 else chance.choice(others)
        return replace(query, **{name: value})

    return make


_CHANGES: dict[str, Callable[[Query, random.Random], Query]] = {
    "united": lambda query, _: replace(query, united=not query.united),
    "watermark": _toggle("watermark", DELAYS, None),
    "marked": _toggle("marked", ("u",), "t"),
    "filters": _toggle("filters", tuple((text,) for text in FILTERS), ()),
    "filters, null": _toggle("filters", tuple((text,) for text in NULLS), ()),
    "a filter more": lambda query, chance: replace(query, filters=(*query.filters, chance.choice(FILTERS))),
    "a filter later": lambda query, _: replace(query, filters=query.filtered_last, filtered_last=query.filters),
    "filtered_last": _toggle("filtered_last", tuple((text,) for text in NULLS), ()),
    "function": _toggle("function", ("small", "even"), ""),
    "generator": _toggle("generator", GENERATORS, ""),
    "table": _toggle("table", TABLES, ""),
    "names": _toggle("names", (2, 4), 3),
    "distinct": _toggle("distinct", DISTINCT, ()),
    "kind": lambda query, chance: replace(query, kind=chance.choice([kind for kind in KINDS if kind != query.kind])),
    "keys": _toggle("keys", KEYS, ("g",)),
    "time": _toggle("time", ("u",), "t"),
    "both times": lambda query, _: replace(query, time="u", marked="u"),
    "window": _change_window,
    "values": _change_values,
    "how": _toggle("how", JOINS, "inner"),
    "condition": _toggle("condition", ("v2 > 3", "v < v2", "v2 IS NOT NULL"), ""),
    "having": _toggle("having", ("> 1", "IS NOT NULL"), ""),
    "sort": lambda query, _: replace(query, sort="" if query.sort else "count___", mode="complete"),
    "limit": _toggle("limit", (3, 8), 5),
    "zone": _toggle("zone", ("Asia/Kolkata",), "UTC"),
    "mode": _toggle("mode", ("append", "complete"), "update"),
}


def fit(query: Query) -> Query:
    """Make a query one that Spark can run, without fields that it does not use."""
    kind, plain = query.kind, Query()
    windowed, grouped = kind in ("window", "session", "twice"), kind in ("window", "session", "twice", "keys")
    mode = query.mode
    if not grouped or kind == "twice" or (kind == "session" and mode == "update"):
        mode = "append"
    elif kind == "keys" and mode == "append":
        mode = "update"
    timed = kind in ("within", "twice") or (windowed and mode == "append") or (kind == "join" and query.how != "inner")
    query = replace(query, mode=mode, watermark=query.watermark or "30 seconds" if timed else query.watermark)
    unused: dict[str, Any] = {
        **({} if query.watermark else {"marked": "t"}),
        **({} if query.table else {"names": plain.names}),
        **({} if windowed or kind == "join" else {"length": plain.length}),
        **({} if kind in ("window", "twice") else {"slide": None}),
        **({} if windowed else {"time": "t"}),
        **({} if grouped else {"values": plain.values, "keys": plain.keys, "having": ""}),
        **({} if kind == "join" else {"how": "inner", "condition": ""}),
        **({} if mode == "complete" and not windowed else {"sort": ""}),
        **({} if kind == "limit" or query.sort else {"limit": 0}),
    }
    query = replace(query, **unused)
    if query.sort or kind == "limit":
        query = replace(query, limit=query.limit or 5)
    if kind == "join":  # both sides read one folder
        query = replace(query, distinct=(), generator="", table="", united=False, filtered_last=())
        query = replace(query, marked="t")
        query = replace(query, condition="") if query.how == "leftSemi" else query
    if timed and windowed:
        query = replace(query, time=query.marked)
    if kind == "within":
        query = replace(query, filtered_last=())
    if kind in ("limit", "twice") or (kind == "within" and query.distinct == ("t", "id")):
        query = replace(query, distinct=())
    return query


def make_pairs(bases: int = BASES, changed: int = CHANGED) -> list[Pair]:
    """Make all pairs: of each old query those with one change first, which are continued."""
    chance = random.Random(SEED)
    pairs = []
    for base in range(bases):
        old = make_query(chance, KINDS[base % len(KINDS)])
        seen = {old}
        for number in range(changed):
            count = (1, 1, 2, 1, 3, 4)[number % 6]
            new = change(old, chance, count)
            while new in seen:
                new = change(old, chance, count)
            seen.add(new)
            pairs.append(Pair(f"{base + 1}.{number + 1}", old, new, number < CONTINUED))
    return pairs


def make_rows(number: int, *, more: bool = False) -> list[dict[str, Any]]:
    """Return the rows of a file, a minute each: some come late, some twice, some have no value."""
    rows = []
    for n in range(24):
        second = number * 60 + n * 2 - (150 if n % 8 == 5 else 45 if n % 8 == 2 else 0)
        other = second - n % 3 * 50
        rows.append(
            {
                **{"id": number * 12 + n * 5 % 22 + more * 6, "k": n % 4, "g": (None, "a", "b", "c")[(n + number) % 4]},
                **{"v": None if n % 5 == 1 else n, "xs": [[], [1], [1, 2], None][n % 4]},
                **{name: _spell_time(each) for name, each in (("t", second), ("u", other))},
            }
        )
    return rows


def _spell_time(second: int) -> str:
    return f"2024-01-01T01:{(second + 600) // 60:02}:{second % 60:02}.000Z"
