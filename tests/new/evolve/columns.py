"""Changes of the columns of state, and what each column of the changed query then is: full, or from now on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

FULL, NOW, NONE = "full", "now", "none"  # of a column: of all history, of new rows alone, of neither
SCHEMA = "id BIGINT, k INT, c STRING, g INT, v INT, v2 INT, d DECIMAL(10,2), f FLOAT, t TIMESTAMP"
WIDE = SCHEMA.replace("v INT", "v BIGINT").replace("f FLOAT", "f DOUBLE").replace("(10,2)", "(14,2)")
WIDE_KEYS = SCHEMA.replace("k INT", "k BIGINT").replace("g INT", "g BIGINT")


Variable = tuple[str, str, str, str, int | None]
"""A column of the result, the name and kind of the variable that it shows, its schema, and its time to live in ms."""


@dataclass(frozen=True)
class Query:
    """A query over files of rows, or of two folders of them (`join`)."""

    keys: tuple[str, ...] = ("k",)  # expressions
    aggregates: tuple[str, ...] = ()  # expressions with names
    schema: str = SCHEMA
    window: str | None = None  # its length, and after a slash its slide
    gap: str | None = None  # of session windows
    watermark: str = "1 day"  # of windows; none if empty
    distinct: tuple[str, ...] = ()  # the columns of a deduplication
    within: bool = False  # the watermark
    join: tuple[tuple[str, ...], tuple[str, ...]] = ()  # type: ignore[assignment]  # columns of both sides
    variables: tuple[Variable, ...] = ()  # of transformWithState
    group: tuple[tuple[str, str], ...] = ()  # fields of the state of applyInPandasWithState: columns and their schemas
    time_mode: str = "None"
    by_rows: bool = False  # transformWithState, which has Row; else transformWithStateInPandas
    mode: str | None = None  # output mode, where it is none that its kind has


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
    conf: tuple[tuple[str, str], ...] = ()
    plain: bool = False  # without `ckpt evolve`: a plain start, which says nothing

    def fits(self, columns: dict[str, str]) -> bool:
        """Tell whether each column was as expected; some are full where new rows alone give the same."""
        expected = dict(self.expected)
        either = f"{FULL}, and {NOW}"
        return columns.keys() == expected.keys() and all(
            text == expected[name] or (text == either and expected[name] == FULL) for name, text in columns.items()
        )

    @property
    def first_version(self) -> str:
        """The first Spark version that has its operator and its state store."""
        return max(self.since, "4.2" if self.store == "format2" else "")

    @property
    def job(self) -> dict[str, Any]:
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
        more = replace(BASE, aggregates=("max(v2) AS hi", *BASE.aggregates[::-1], "count(v2) AS c2"))
        expected = (("hi", NOW), ("c2", NOW), *_full("n", "s"))
        yield ColumnCase(f"{store}: add and reorder", BASE, more, expected, store)
        less = replace(BASE, aggregates=("sum(v) AS total",))
        yield ColumnCase(f"{store}: remove count", BASE, less, _full("total"), store)
        only = replace(BASE, aggregates=("count(*) AS n",))
        yield ColumnCase(f"{store}: remove sum", BASE, only, _full("n"), store)
        unknown = replace(BASE, aggregates=("max(v) AS hi", "sum(v) AS s"))
        expected = (("hi", NOW), *_full("s"))
        name = f"{store}: without the old query"
        yield ColumnCase(name, BASE, unknown, expected, store, known=False, verdict="unknown")
    swapped = replace(TWO, aggregates=TWO.aggregates[::-1])
    yield ColumnCase("two sums swapped", TWO, swapped, _full("s", "s2"))
    other = replace(BASE, aggregates=("count(*) AS n", "sum(id) AS s"))
    yield ColumnCase("another sum", BASE, other, (("n", FULL), ("s", NOW)))
    least = replace(BASE, aggregates=("max(v) AS x", "count(*) AS n"))
    yield ColumnCase(
        "max to min", least, replace(least, aggregates=("min(v) AS x", "count(*) AS n")), (("x", NOW), ("n", FULL))
    )
    three = replace(TWO, aggregates=("sum(id) AS i", *TWO.aggregates))
    why = "OLD=value_sum"  # as `map_column` takes it
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
        "a key column without a value",
        BASE,
        replace(BASE, keys=("k", "c")),
        (),
        refused="gives all of them one value",
    )
    every = replace(BASE, keys=())
    yield ColumnCase(
        "keys where none were", every, BASE, (), default=(("k", "1"),), refused="all rows are in one group"
    )
    other = replace(BASE, keys=("k % 2",))
    yield ColumnCase("another key", replace(BASE, keys=("k % 3",)), other, (), refused="the key has (k % 2)")


MERGED = (
    *("count(*) AS n", "count(v) AS c", "sum(v) AS s", "sum(f) AS fs", "sum(d) AS ds", "avg(v) AS m", "avg(d) AS dm"),
    *("min(v) AS lo", "max(v) AS hi", "min(c) AS cl", "max(d) AS dh", "max(t) AS th", "bool_or(v > 70) AS any"),
    *("bool_and(v2 > -15) AS all", "bit_or(v) AS bo", "bit_and(v2) AS ba", "bit_xor(v) AS bx", "stddev(v) AS sd"),
    *("var_pop(v) AS vp", "skewness(v2) AS sk", "kurtosis(v2) AS ku", "corr(v, v2) AS co", "covar_samp(v, v2) AS cs"),
    *("approx_count_distinct(v2) AS ad", "try_sum(v) AS ts", "min(CAST(f AS DOUBLE)) AS fl", "sum(dd) AS dds"),
)
UNMERGED = ("first(v)", "max_by(v, v2)", "collect_set(f)", "regr_slope(v, v2)", "percentile(v, 0.5)", "mode(v)")
COLLECTED = (
    *("collect_list(v) AS l", "collect_set(v2) AS s", "collect_list(c) AS cl", "collect_set(c) AS cs", "count(*) AS n"),
    *("collect_list(struct(v, c)) AS p", "collect_set(d) AS ds", "collect_list(f) AS fl", "collect_set(v > 9) AS b"),
    *("collect_list(array(c, 'x')) AS a", "collect_set(t) AS ts"),
)


def _merged() -> Iterator[ColumnCase]:
    for store in STORES:
        two = replace(BASE, keys=("k", "g"))
        yield ColumnCase(f"{store}: a key column less", two, BASE, _full("n", "s"), store)
    schema = f"{SCHEMA}, dd DECIMAL(24,2)"
    all_of_them = Query(keys=("g", "k"), aggregates=MERGED, schema=schema)
    names = [text.rpartition(" AS ")[2] for text in MERGED]
    for store in ("hdfs", "rocksdb"):
        less = replace(all_of_them, keys=("k",))
        yield ColumnCase(f"{store}: every function merged", all_of_them, less, _full(*names), store)
        every = replace(all_of_them, keys=())
        yield ColumnCase(f"{store}: every function in one group", all_of_them, every, _full(*names), store)
    two = replace(BASE, keys=("k", "g"))
    more = replace(BASE, aggregates=("collect_list(v2) AS l", "max(v2) AS hi", *BASE.aggregates[::-1]))
    yield ColumnCase("a key column less, aggregates more", two, more, (("l", NOW), ("hi", NOW), *_full("n", "s")))
    wide = replace(BASE, schema=WIDE_KEYS, aggregates=(*BASE.aggregates, "count(v2) AS c2"))
    yield ColumnCase("a key column less, and wider", two, wide, (*_full("n", "s"), ("c2", NOW)))
    name = "a key column less, without the old query"
    yield ColumnCase(name, two, BASE, _full("n", "s"), known=False, verdict="unknown")
    for function in UNMERGED:
        old = replace(two, aggregates=(f"{function} AS x", "count(*) AS n"))
        why = f"does not merge values of {function.partition('(')[0].replace('_', '')}("
        yield ColumnCase(f"merge {function}", old, replace(old, keys=("k",)), (), refused=why)


def _windows() -> Iterator[ColumnCase]:
    short = replace(BASE, window="10 seconds", watermark="")
    for store in STORES:
        longer = replace(short, window="20 seconds")
        yield ColumnCase(f"{store}: longer windows", short, longer, _full("n", "s"), store)
    keyless = replace(short, keys=())
    yield ColumnCase("longer windows without keys", keyless, replace(keyless, window="30 seconds"), _full("n", "s"))
    both = replace(short, window="20 seconds", keys=(), aggregates=("max(v2) AS hi", "avg(v) AS m", "sum(v) AS s"))
    old = replace(short, keys=("k", "g"), aggregates=("sum(v) AS s", "count(v) AS c"))
    yield ColumnCase("longer windows, keys and aggregates", old, both, (("hi", NOW), *_full("m", "s")))
    watched = replace(short, watermark="1 day")
    yield ColumnCase(
        "longer windows behind a watermark",
        watched,
        replace(watched, window="20 seconds"),
        _full("n", "s"),
        verdict="from-now-on",
    )
    yield ColumnCase(
        "windows that are not made of the old", short, replace(short, window="15 seconds"), (), refused="(impossible)"
    )
    yield ColumnCase("shorter windows", short, replace(short, window="5 seconds"), (), refused="(impossible)")
    yield ColumnCase("key of a window less", replace(watched, keys=("k", "g")), watched, _full("n", "s"))
    gone = "lacks the groups that the watermark has evicted"
    yield ColumnCase("the window gone", watched, replace(watched, window=None), (), refused=gone)
    yield ColumnCase("the window gone, no watermark", short, replace(short, window=None), _full("n", "s"))


def _derived() -> Iterator[ColumnCase]:
    old = replace(BASE, aggregates=("sum(v) AS s", "count(v) AS c", "sum(f) AS fs", "count(f) AS fc"))
    new = replace(BASE, aggregates=("avg(v) AS m", "avg(f) AS fm", "sum(v) AS s"))
    for store in ("hdfs", "changelog"):
        yield ColumnCase(f"{store}: averages of sums and counts", old, new, _full("m", "fm", "s"), store)
    average = replace(BASE, aggregates=("avg(v) AS m",))
    counted = replace(BASE, aggregates=("count(v) AS c", "avg(v) AS m"))
    yield ColumnCase("a count of an average", average, counted, _full("c", "m"))
    rows = replace(BASE, aggregates=("avg(v) AS m", *BASE.aggregates))
    yield ColumnCase("an average of a count of rows", BASE, rows, (("m", NOW), *_full("n", "s")))
    other = replace(BASE, aggregates=("sum(v) AS s", "count(v2) AS c"))
    yield ColumnCase("an average of two columns", other, average, (("m", NOW),))
    for function in ("percentile(v, {})", "percentile_approx(v, {})"):
        half, most = (replace(BASE, aggregates=(f"{function.format(at)} AS p",)) for at in (0.5, 0.9))
        yield ColumnCase(f"another {function}", half, most, _full("p"))


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
    yield _within("hdfs")


def _within(store: str) -> ColumnCase:
    """A column less in the key of a deduplication within the watermark."""
    old = Query(distinct=("id", "k"), within=True)
    name = f"{store}: within watermark, a column less"
    less = replace(old, distinct=("id",))
    return ColumnCase(name, old, less, (("rows", FULL),), store, verdict="unknown")


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


def _collected() -> Iterator[ColumnCase]:
    """Lists and sets, compared as multisets."""
    names = [text.rpartition(" AS ")[2] for text in COLLECTED]
    old = Query(keys=("k", "g"), aggregates=COLLECTED)
    for store in STORES:
        less = replace(old, keys=("k",))
        yield ColumnCase(f"{store}: lists and sets merged", old, less, _full(*names), store)
    yield ColumnCase("lists and sets in one group", old, replace(old, keys=()), _full(*names))
    short = replace(BASE, window="10 seconds", watermark="", aggregates=COLLECTED)
    longer = replace(short, window="20 seconds")
    yield ColumnCase("lists and sets in longer windows", short, longer, _full(*names), store="changelog")
    two = Query(keys=("k", "g"), aggregates=("collect_set(v) AS s", "collect_set(g) AS sg"))
    wide = replace(two, keys=("k",), schema=WIDE_KEYS)
    yield ColumnCase("a set of another type", two, wide, (), refused="of another type than before")


def _longer_gaps() -> Iterator[ColumnCase]:
    """Sessions whose gap is longer: all of them are in the state where none was put out."""
    rows: dict[str, Any] = {"watermark": "", "mode": "complete", "schema": f"{SCHEMA}, dd DECIMAL(24,2)"}
    old = replace(BASE, gap="3 seconds", **rows)
    for store in STORES:
        longer = replace(old, gap="4 seconds")  # rows of one key are 4 s apart, which is still one session
        yield ColumnCase(f"{store}: a longer gap", old, longer, _full("n", "s"), store)
    longest = replace(old, gap="1 minute", aggregates=("max(v2) AS hi", "collect_list(v) AS l", "sum(v) AS s"))
    known = replace(old, keys=("k", "g"), aggregates=("sum(v) AS s", "collect_list(v) AS l", "count(*) AS n"))
    more = replace(longest, keys=("k", "g"))
    yield ColumnCase("a much longer gap, aggregates more and less", known, more, (("hi", NONE), *_full("l", "s")))
    watched = replace(old, watermark="45 seconds", mode="append")
    name = "a longer gap, nothing emitted"
    later = replace(watched, gap="5 seconds")
    yield ColumnCase(name, watched, later, _full("n", "s"), verdict="from-now-on")
    late = replace(watched, watermark="5 seconds")
    name = "a longer gap, some sessions emitted"
    others = (("keys", "others"),)
    yield ColumnCase(name, late, replace(late, gap="8 seconds"), others, verdict="from-now-on")
    first = replace(old, aggregates=("first(v) AS f",))
    yield ColumnCase("a longer gap of first", first, replace(first, gap="9 seconds"), (), refused="does not merge")
    yield from map(_within, STORES[1:])
    yield from [*_wider_joins()][1:]
    lives = Query(variables=(_call(TOTAL, ttl=_LIVES), _call(ITEMS, ttl=_LIVES)), time_mode="ProcessingTime")
    twice = replace(lives, variables=(_call(TOTAL, ttl=2 * _LIVES), _call(ITEMS, ttl=2 * _LIVES)))
    name = "plain: a longer time to live"
    yield ColumnCase(name, lives, twice, _full("a", "b"), store="changelog", since="4.2", plain=True)


def _wider_joins() -> Iterator[ColumnCase]:
    """Joins that keep all in one store (state formats 3 and 4)."""
    joined = Query(join=(("v",), ("v2", "g")), schema=SCHEMA.replace("id BIGINT", "id INT"))
    for version, since in ((3, "4.2"), (4, "4.3")):
        for store in ("changelog", "rocksdb", "format2"):
            how: dict[str, Any] = {"store": store, "conf": _of_format(version), "since": since}
            name = f"{store}: join of state format {version}"
            wide = replace(joined, schema=SCHEMA)
            yield ColumnCase(f"{name}, a wider key", joined, wide, (("rows", FULL),), **how)
            both = Query(join=(("v",), ("g",)), schema=WIDE)
            yield ColumnCase(f"{name}, a wider key and a column less", joined, both, (("rows", FULL),), **how)
            swapped = replace(joined, join=(("v",), ("g", "v2")))
            yield ColumnCase(f"{name}, columns in another order", joined, swapped, (("rows", FULL),), **how)


def _late_additions() -> Iterator[ColumnCase]:
    """Cases that came after other versions were asked: each fifth case is still the one that they know."""
    for store in ("changelog", "format2"):
        every = replace(BASE, keys=())
        yield ColumnCase(f"{store}: no key any more", BASE, every, _full("n", "s"), store)
    late = replace(BASE, window="10 seconds", watermark="0 seconds")
    longer, none = replace(late, window="20 seconds"), (("n", NONE), ("s", NONE))
    yield ColumnCase("longer windows, of which some were evicted", late, longer, none, verdict="from-now-on")


TOTAL = ("a", "total", "value", "s INT, n INT", None)
ITEMS = ("b", "items", "list", "v INT", None)
COUNTS = ("c", "counts", "map", "g INT | n INT", None)
OTHERS = ("d", "others", "map", "g INT | n INT", None)
_LIVES = 86_400_000


def _call(variable: Variable, name: str | None = None, schema: str | None = None, **how: int | None) -> Variable:
    column, old_name, kind, old_schema, ttl = variable
    return column, name or old_name, kind, schema or old_schema, how.get("ttl", ttl)


def _variables() -> Iterator[ColumnCase]:
    """Variables of transformWithState: no verdict is full, because nobody sees what code makes of them."""
    three = Query(variables=(TOTAL, ITEMS, COUNTS))
    wide = (_call(TOTAL, "sum", "s BIGINT, n BIGINT"), _call(ITEMS, "things", "v BIGINT"))
    wider = Query(variables=(*wide, _call(COUNTS, "seen", "g INT | n BIGINT")))
    names = ("total=sum", "items=things", "counts=seen")
    for store in ("changelog", "rocksdb", "format2"):
        told: dict[str, Any] = {"known": False, "map_column": names, "verdict": "unknown"}
        yield ColumnCase(
            f"{store}: variables renamed and wider", three, wider, _full("a", "b", "c"), store=store, **told
        )
    how: dict[str, Any] = {"store": "changelog", "known": False}
    by_rows = {"map_column": names, "verdict": "unknown", "since": "4.2", **how}
    new_one = replace(wider, by_rows=True)
    yield ColumnCase("variables of rows", replace(three, by_rows=True), new_one, _full("a", "b", "c"), **by_rows)
    ordered = Query(variables=(_call(TOTAL, "sum", "n INT, s BIGINT"), COUNTS))
    told = {"map_column": ("total=sum",), "verdict": "unknown", **how}
    name = "a variable renamed, its fields in another order, one gone"
    yield ColumnCase(name, three, ordered, _full("a", "c"), **told)
    more = Query(variables=(_call(TOTAL, schema="s INT, n INT, m INT"), OTHERS, ITEMS))
    mixed = (("a", NONE), ("b", FULL), ("d", NOW))
    new = {"map_column": ("-=others",), "verdict": "unknown", **how}
    yield ColumnCase("a variable more, and a field of another", three, more, mixed, **new)
    lives = Query(variables=(_call(TOTAL, ttl=_LIVES), _call(ITEMS, ttl=_LIVES)), time_mode="ProcessingTime")
    wide = (_call(TOTAL, "sum", "s BIGINT, n INT", ttl=_LIVES), _call(ITEMS, "things", ttl=_LIVES))
    again = {"map_column": names[:2], "verdict": "unknown", **how}
    yield ColumnCase("variables with a time to live", lives, replace(lives, variables=wide), _full("a", "b"), **again)
    two = Query(variables=(("a", "x", "value", "s INT", None), ("b", "y", "value", "n INT", None)))
    swapped = Query(variables=(("a", "y", "value", "s INT", None), ("b", "x", "value", "n INT", None)))
    crossed = {"map_column": ("x=y", "y=x"), "verdict": "unknown", **how}
    yield ColumnCase("names of variables swapped", two, swapped, _full("a", "b"), **crossed)
    listed = Query(variables=(("b", "total", "list", "v INT", None),))
    living = Query(variables=(_call(TOTAL, ttl=_LIVES),), time_mode="ProcessingTime")
    for name, query, why in (
        (
            "a variable renamed, not told",
            Query(variables=(_call(TOTAL, "sum"), ITEMS, COUNTS)),
            "total=sum",
        ),
        ("another kind of variable", listed, "is a ListState, but a ValueState in the state"),
        ("a time to live", living, "has a time to live"),
        (
            "the key of a map wider",
            Query(variables=(_call(COUNTS, schema="g BIGINT | n INT"),)),
            "does not change such a key",
        ),
        (
            "a narrower variable",
            Query(variables=(_call(TOTAL, schema="s INT, n STRING"),)),
            "does not convert between these",
        ),
        ("the key of variables wider", replace(three, schema=WIDE_KEYS), "does not change such a key"),
    ):
        yield ColumnCase(name, three, query, (), refused=why, **how)


def _groups() -> Iterator[ColumnCase]:
    old = Query(group=(("s", "INT"), ("n", "INT")))
    wide = Query(group=(("s", "BIGINT"), ("n", "BIGINT")))
    for store in ("hdfs", "changelog", "format2"):
        told: dict[str, Any] = {"store": store, "verdict": "unknown", "known": False}
        yield ColumnCase(f"{store}: group state wider", old, wide, _full("s", "n"), **told)
    how: dict[str, Any] = {"known": False}
    less = Query(group=(("n", "INT"),))
    yield ColumnCase("group state less", old, less, _full("n"), verdict="unknown", **how)
    more = Query(group=(("m", "INT"), ("s", "INT"), ("n", "INT")))
    expected = (("m", NOW), *_full("s", "n"))
    yield ColumnCase("group state more", old, more, expected, map_column=("-=m",), verdict="unknown", **how)
    asked = replace(old, group=(("m", "INT"), ("n", "INT"), ("c", "STRING")))
    why = "s=m"  # as `map_column` takes it
    yield ColumnCase("group state more, not told", old, asked, (), refused=why, **how)
    least = (("m", "-1000"),)
    yield ColumnCase("group state more, with a value", old, more, expected, default=least, verdict="unknown", **how)
    ordered = Query(group=(("n", "INT"), ("s", "INT")))
    yield ColumnCase("group state in another order", old, ordered, _full("s", "n"), verdict="unknown", **how)
    renamed = Query(group=(("total", "INT"), ("n", "INT")))
    yield ColumnCase("group state, a field renamed", old, renamed, _full("total", "n"), verdict="unknown", **how)
    keyed = replace(old, schema=WIDE_KEYS)
    yield ColumnCase("group state, key wider", old, keyed, _full("s", "n"), verdict="unknown", **how)
    narrow = Query(group=(("s", "INT"), ("n", "STRING")))
    yield ColumnCase("group state of another type", old, narrow, (), refused="does not convert between these", **how)
    known = replace(wide, group=(("s", "BIGINT"), ("n", "INT")))
    yield ColumnCase("group state wider, both queries known", old, known, _full("s", "n"), verdict="unknown")


def _sessions() -> Iterator[ColumnCase]:
    """Session windows: each is put out once, when the watermark has passed it; some began before the change."""
    old = replace(BASE, gap="6 seconds", watermark="15 seconds", schema=f"{SCHEMA}, dd DECIMAL(24,2)")
    for store in ("hdfs", "changelog", "format2"):
        less = replace(old, aggregates=("sum(v) AS s",))
        name = f"{store}: sessions: an aggregate less"
        yield ColumnCase(name, old, less, _full("s"), store=store)
    more = replace(old, aggregates=("max(v2) AS hi", *BASE.aggregates[::-1]))
    yield ColumnCase("sessions: aggregates more, in another order", old, more, (("hi", NONE), *_full("n", "s")))
    derived = replace(old, aggregates=("sum(v) AS s", "count(v) AS c"))
    average = replace(old, aggregates=("avg(v) AS m",))
    yield ColumnCase("sessions: an average of a sum and a count", derived, average, _full("m"))
    name = "sessions, without the old query"
    only = replace(old, aggregates=("sum(v) AS s",))
    yield ColumnCase(name, old, only, _full("s"), known=False, verdict="unknown")
    for label, changed, why in (
        ("a shorter gap", replace(old, gap="2 seconds"), "(impossible)"),
        ("another key", replace(old, keys=("k", "g")), "does not change session keys"),
        ("another key, not told", replace(old, keys=("g",)), "does not change session keys"),
    ):
        yield ColumnCase(f"sessions: {label}", old, changed, (), refused=why)


def _join_keys() -> Iterator[ColumnCase]:
    narrow = SCHEMA.replace("id BIGINT", "id INT")
    old = Query(join=(("v",), ("v2", "g")), schema=narrow)
    rows = (("rows", FULL),)
    for store in ("hdfs", "changelog", "format2"):
        wide = replace(old, schema=SCHEMA)
        yield ColumnCase(f"{store}: join key wider", old, wide, rows, store=store)
    both = Query(join=(("v",), ("g",)), schema=WIDE)
    yield ColumnCase("join key and columns wider, a column less", old, both, rows)
    yield ColumnCase(
        "join key wider, without the old query", old, replace(old, schema=SCHEMA), rows, known=False, verdict="unknown"
    )
    why = "ckpt does not convert between these"
    yield ColumnCase("join key narrower", replace(old, schema=SCHEMA), old, (), refused=why)


def _join_formats() -> Iterator[ColumnCase]:
    """Joins that keep all in one store (state format 3)."""
    old = Query(join=(("v",), ("v2", "g")))
    rows = (("rows", FULL),)
    for store in ("changelog", "format2"):
        how: dict[str, Any] = {"store": store, "conf": _of_format(3), "since": "4.2"}
        swapped = Query(join=(("v",), ("g", "v2")), schema=WIDE)
        name = f"{store}: join of state format 3, columns swapped and wider"
        yield ColumnCase(name, old, swapped, rows, **how)
        less = Query(join=(("v",), ("g",)))
        yield ColumnCase(f"{store}: join of state format 3, a column less", old, less, rows, **how)
    yield next(_wider_joins())


def _sliding_windows() -> Iterator[ColumnCase]:
    """Sliding windows, and what is made of them; last, because older versions record each fifth of the others."""
    old = replace(BASE, window="10 seconds/2 seconds", watermark="")
    for name, mode, window, store in (
        ("longer", None, "20 seconds/2 seconds", "hdfs"),
        ("longer and coarser", "complete", "20 seconds/4 seconds", "changelog"),
        ("coarser", None, "10 seconds/4 seconds", "hdfs"),
        ("tumbling", "complete", "30 seconds", "format2"),
    ):
        own, new = replace(old, mode=mode), replace(old, mode=mode, window=window)
        yield ColumnCase(f"sliding windows that become {name}", own, new, _full("n", "s"), store)
    tumbling = replace(old, window="5 seconds")
    sliding = replace(tumbling, window="15 seconds/5 seconds")
    yield ColumnCase("tumbling windows that become sliding", tumbling, sliding, _full("n", "s"), "changelog")
    odd = replace(old, window="5 seconds/2 seconds")
    for window in ("10 seconds/2 seconds", "5 seconds/3 seconds", "4 seconds/2 seconds"):
        new, name = replace(odd, window=window), f"windows of 5 seconds/2 seconds do not make {window}"
        yield ColumnCase(name, odd, new, (), refused="(impossible)")


def _of_format(version: int) -> tuple[tuple[str, str], ...]:
    return (("spark.sql.streaming.join.stateFormatVersion", str(version)),)


def _old_state() -> Iterator[ColumnCase]:
    """Spark 3.5, which says neither what state a query keeps nor which operator wrote it."""
    two = replace(TWO, keys=("k", "g"))
    yield ColumnCase("3.5: the same query", two, two, _full("s", "s2"))
    for name, new, why in (
        ("two sums swapped", replace(two, aggregates=TWO.aggregates[::-1]), "a format in which"),
        ("keys swapped", replace(two, keys=("g", "k")), "a format in which"),
        ("another sum", replace(two, aggregates=("sum(v) AS s", "sum(id) AS s2")), "a format in which"),
        ("an aggregate more", replace(two, aggregates=(*TWO.aggregates, "max(v) AS m")), "does not show which state"),
        ("an aggregate less", replace(two, aggregates=TWO.aggregates[:1]), "does not show which state"),
        ("a key column less", replace(two, keys=("k",)), "does not show which state"),
        ("a wider key", replace(two, schema=WIDE_KEYS), "does not show which state"),
    ):
        yield ColumnCase(f"3.5: {name}", two, new, (), refused=why)
    joined = Query(join=(("v",), ("v2", "g")))
    yield ColumnCase(
        "3.5: join columns swapped", joined, Query(join=(("v",), ("g", "v2"))), (), refused="a format in which"
    )


def _plain_starts() -> Iterator[ColumnCase]:
    """Changes with which Spark starts, silently: CKPT485, and fields that are taken by their places."""
    two = Query(variables=(TOTAL, ITEMS))
    renamed = Query(variables=(_call(TOTAL, "sum"), ITEMS))
    how: dict[str, Any] = {"store": "changelog", "since": "4.2", "plain": True}
    yield ColumnCase("plain: a variable renamed", two, renamed, (("a", NOW), ("b", FULL)), **how)
    swapped = Query(variables=(_call(TOTAL, schema="n INT, s INT"), ITEMS))
    yield ColumnCase("plain: fields of a variable swapped", two, swapped, (("a", NONE), ("b", FULL)), **how)


OLD_STATE_CASES = (*_old_state(),)
COLUMN_CASES = (
    *_aggregates(),
    *_wider(),
    *_keys(),
    *_merged(),
    *_windows(),
    *_derived(),
    *_distinct(),
    *_joins(),
    *_late_additions(),
    *_variables(),
    *_groups(),
    *_sessions(),
    *_join_keys(),
    *_join_formats(),
    *_plain_starts(),
    *_collected(),
    *_longer_gaps(),
    *_sliding_windows(),
)
