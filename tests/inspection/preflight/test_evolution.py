"""Operators of two descriptions compared part by part, where no recorded query shows it."""

from dataclasses import replace

import pytest

from ckpt.model import Json
from ckpt.query.compare_queries import Knowledge, PartKind, compare_signatures, pair_sources, spell
from ckpt.query.description import (
    DescribedAggregate,
    DescribedBuffer,
    DescribedExpression,
    DescribedJoin,
    DescribedOperator,
    DescribedSide,
    DescribedSource,
    DescribedStore,
    DescribedWindow,
    QueryDescription,
)
from ckpt.versions import Spark

KEY = DescribedExpression("k@0", "integer", "k")
SCHEMA: Json = {"type": "struct", "fields": [{"name": "v", "type": "integer"}]}
SOURCE = DescribedSource("file", path="/a", schema=SCHEMA)


def aggregate(sql: str, kind: str = "long", *, known: bool = True) -> DescribedAggregate:
    function = sql.partition("(")[0]
    return DescribedAggregate(function, sql, False, None, None, (DescribedBuffer(function, kind, True, None, known),))


def query(operator: DescribedOperator, *sources: DescribedSource, spark: Spark = Spark.V4_2) -> QueryDescription:
    operator = replace(operator, conditions=operator.filters or ())
    return QueryDescription(spark, "update", sources or (SOURCE,), (operator,), None, None, {}, (), {})


def grouped(*aggregates: DescribedAggregate, keys: tuple[DescribedExpression, ...] = (KEY,)) -> DescribedOperator:
    stores = (DescribedStore("default", ()),)
    return DescribedOperator("stateStoreSave", stores=stores, keys=keys, aggregates=aggregates, filters=())


def compared(
    old: QueryDescription, new: QueryDescription, sources: dict[int, int] | None = None
) -> list[tuple[object, ...]]:
    """Kind, old and new place, verdict and silence of each part that is not as it was."""
    sources = pair_sources(old.sources, new.sources) if sources is None else sources
    (pair,) = compare_signatures(old, new, sources, {0: 0})
    parts = ((part.kind, part.old, part.new, part.verdict, part.silent) for part in pair.parts)
    return [part for part in parts if part[1] != part[2] or part[3] is not Knowledge.FULL or part[4]]


HOW = ("LeftSemi", "Inner")
SUM, COUNT = aggregate("sum(v@0)"), aggregate("count(1)")


NEW_AND_GONE = [
    (PartKind.VALUE, None, 0, Knowledge.FROM_NOW_ON, True),
    (PartKind.VALUE, 0, None, Knowledge.FULL, False),
]
UNKNOWN_BUFFER = [(PartKind.VALUE, None, 0, Knowledge.IMPOSSIBLE, False), (PartKind.VALUE, 0, 1, Knowledge.FULL, False)]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ((SUM,), []),
        ((SUM, COUNT), [(PartKind.VALUE, None, 1, Knowledge.FROM_NOW_ON, False)]),
        ((aggregate("sum(w@0)"),), NEW_AND_GONE),
        ((aggregate("mine(v@0)", known=False), SUM), UNKNOWN_BUFFER),
        ((aggregate("sum(CAST(v@0 AS long))"),), []),
        ((aggregate("sum(CAST(v@0 AS string))"),), NEW_AND_GONE),
        ((aggregate("sum(v@0)", "string"),), [(PartKind.VALUE, 0, 0, Knowledge.UNKNOWN, False)]),
    ],
)
def test_aggregates_are_matched_by_what_they_compute(
    new: tuple[DescribedAggregate, ...], expected: list[tuple[object, ...]]
) -> None:
    assert compared(query(grouped(SUM)), query(grouped(*new))) == expected


def test_user_code_is_never_full() -> None:
    old = query(grouped(aggregate("sum(f?(v@0))")))
    assert compared(old, old) == [(PartKind.VALUE, 0, 0, Knowledge.UNKNOWN, False)]


def test_a_source_more_in_a_union_changes_no_expression() -> None:
    both, more = replace(SOURCE, path="/b"), replace(SOURCE, path="/c")
    old = query(grouped(aggregate("sum({0: v@0 | 1: w@1})"), keys=()), SOURCE, both)
    new = query(grouped(aggregate("sum({0: x@0 | 1: w@1 | 2: v@2})"), keys=()), more, both, SOURCE)

    assert compared(old, new, {1: 1, 2: 0}) == []
    assert compared(old, query(grouped(aggregate("sum(w@0)"), keys=()), both), {0: 1}) == []
    wrong = query(grouped(aggregate("sum({0: x@0 | 1: v@1 | 2: v@2})"), keys=()), more, both, SOURCE)
    assert (PartKind.VALUE, None, 0, Knowledge.FROM_NOW_ON, True) in compared(old, wrong, {1: 1, 2: 0})


def test_keys_are_widened_dropped_and_added() -> None:
    other = DescribedExpression("g@0", "string", "g")
    old = query(grouped(SUM, keys=(KEY, other)))

    assert compared(old, query(grouped(SUM, keys=(replace(KEY, type="long"), other)))) == []
    assert compared(old, query(grouped(SUM, keys=(KEY,)))) == [(PartKind.KEY, 1, None, Knowledge.UNKNOWN, False)]
    added = query(grouped(SUM, keys=(KEY, other, KEY)))
    assert compared(old, added) == [(PartKind.KEY, None, 2, Knowledge.IMPOSSIBLE, False)]


@pytest.mark.parametrize(
    ("length", "slide", "verdict"),
    [(20, 20, Knowledge.FULL), (20, 10, Knowledge.FULL), (5, 5, Knowledge.IMPOSSIBLE), (20, 5, Knowledge.IMPOSSIBLE)],
)
def test_a_longer_window_may_be_made_of_old_ones(length: int, slide: int, verdict: Knowledge) -> None:
    old, new = (
        replace(grouped(SUM), window=DescribedWindow("t@0", size * 1_000_000, step * 1_000_000, 0))
        for size, step in ((10, 10), (length, slide))
    )
    assert compared(query(old), query(new)) == [(PartKind.WINDOW, 0, 0, verdict, True)]
    of_3_5 = replace(new, stores=())
    assert compared(query(old), query(of_3_5)) == [(PartKind.WINDOW, 0, 0, Knowledge.IMPOSSIBLE, True)]


def test_sides_of_a_join_that_have_changed_places() -> None:
    left, right = (
        DescribedSide((number,), (replace(KEY, sql=f"k@{number}"),), (replace(KEY, sql=f"k@{number}"),))
        for number in (0, 1)
    )
    orders, refunds = replace(SOURCE, name="orders"), replace(SOURCE, name="refunds")
    old = query(DescribedOperator("symmetricHashJoin", join=DescribedJoin("Inner", left, right, None)), orders, refunds)
    new = replace(old, sources=(refunds, orders))

    assert compared(old, new) == [(PartKind.KEY, None, None, Knowledge.UNKNOWN, True)]
    swapped = query(
        DescribedOperator("symmetricHashJoin", join=DescribedJoin("Inner", right, left, None)), orders, refunds
    )
    assert compared(old, replace(swapped, sources=(refunds, orders))) == []


def test_a_semi_join_keeps_no_row_that_was_joined() -> None:
    left, right = (DescribedSide((0,), (KEY,), (KEY,)) for _ in range(2))
    semi, inner = (query(DescribedOperator("join", join=DescribedJoin(how, left, right, None))) for how in HOW)

    assert compared(semi, inner) == [(PartKind.ROWS, None, None, Knowledge.FROM_NOW_ON, True)]
    assert compared(inner, semi) == []


def reading(kind: str = "timestamp", **options: str) -> QueryDescription:
    schema: Json = {"type": "struct", "fields": [{"name": "v", "type": kind}, {"name": "bad", "type": "string"}]}
    return query(grouped(SUM), replace(SOURCE, schema=schema, options=options))


KEY_READ = (PartKind.KEY, 0, 0, Knowledge.UNKNOWN, True)
VALUE_READ = (PartKind.VALUE, 0, 0, Knowledge.UNKNOWN, True)
OTHER_ROWS = (PartKind.ROWS, None, None, Knowledge.FROM_NOW_ON, True)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (reading(), reading(timestampformat="1f"), [VALUE_READ]),
        (reading("integer"), reading("integer", timestampformat="1f"), []),
        (reading("decimal(9,2)"), reading("decimal(9,2)", locale="de"), [VALUE_READ]),
        (reading(), reading(mode="dropmalformed"), [KEY_READ, VALUE_READ, OTHER_ROWS]),
        (reading(mode="failfast"), reading(), []),
        (reading(), reading(columnnameofcorruptrecord="bad"), []),
        (reading(), reading(columnnameofcorruptrecord="v"), [VALUE_READ]),
        (reading(), reading(pathglobfilter="1f"), [OTHER_ROWS]),
        (reading(skipchangecommits="false"), reading(skipchangecommits="true"), []),
        (reading(skipchangecommits="true"), reading(), [OTHER_ROWS]),
    ],
)
def test_options_of_a_reader_decide_what_depends_on_them(
    old: QueryDescription, new: QueryDescription, expected: list[tuple[object, ...]]
) -> None:
    assert compared(old, new) == expected


def test_a_condition_is_read_otherwise_too() -> None:
    old, new = (reading(timezone=zone) for zone in ("UTC", "Asia/Tokyo"))
    counts = (replace(grouped(COUNT, keys=()), conditions=("(v@0 < 3)",)),)
    assert compared(replace(old, operators=counts), replace(new, operators=counts)) == [OTHER_ROWS]


@pytest.mark.parametrize(
    ("old", "new", "sql", "held"),
    [
        ("false", "true", "sum(v@0)", True),
        ("true", "false", "sum(v@0)", False),
        ("false", "true", "count(1)", False),
        ("false", "true", "max(v@0)", False),
        ("false", "true", "max((v@0 / w@0))", True),
        ("false", "true", "max(CAST(v@0 AS integer))", True),
    ],
)
def test_ansi_mode_refuses_what_was_counted_before(old: str, new: str, sql: str, held: bool) -> None:
    before, after = (
        replace(query(grouped(aggregate(sql))), session={"spark.sql.ansi.enabled": each}) for each in (old, new)
    )
    expected = [(PartKind.ROWS, None, None, Knowledge.UNKNOWN, True)] if held else []
    assert compared(before, after) == expected


def test_a_description_of_an_older_ckpt_is_never_full() -> None:
    """An older ckpt wrote no brackets, so they are ignored in the new description too."""
    new = query(grouped(aggregate("max(hour(v@0)[timezone=UTC])")))
    old = replace(query(grouped(aggregate("max(hour(v@0))"))), session=None)

    assert compared(old, new) == [(PartKind.ROWS, None, None, Knowledge.UNKNOWN, False)]
    assert compared(replace(old, session={}), new) == NEW_AND_GONE


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("4 seconds", "1 minutes 5.5 seconds", Knowledge.FULL),
        ("1 minutes", "59 seconds", Knowledge.IMPOSSIBLE),
        ("1 days", "2 days", Knowledge.IMPOSSIBLE),
        ("v@0", "9 seconds", Knowledge.IMPOSSIBLE),
    ],
)
def test_a_longer_gap_may_be_carried_over(old: str, new: str, verdict: Knowledge) -> None:
    before, after = (query(replace(grouped(SUM), gap=gap)) for gap in (old, new))
    assert compared(before, after) == [(PartKind.WINDOW, 0, 0, verdict, True)]


def test_what_another_version_wrote_is_not_known() -> None:
    old, new = query(grouped(SUM), spark=Spark.V4_1), query(grouped(aggregate("sum(w@0)")))
    (verdict,) = {part[3] for part in compared(old, new) if part[2] == 0}
    assert verdict is Knowledge.UNKNOWN


def test_an_operator_of_an_old_file_is_unknown() -> None:
    old = query(DescribedOperator("stateStoreSave"))
    assert compared(old, query(grouped(SUM))) == [(PartKind.ROWS, None, None, Knowledge.UNKNOWN, False)]


def test_an_expression_for_people() -> None:
    assert spell("sum((a%20%b@0 % 3))") == "sum((a b % 3))"
