"""What decides which rows an operator has, besides its columns: each change has a verdict, none is full by default."""

from dataclasses import replace

import pytest

from ckpt.model import Json
from ckpt.query.compare_checkpoint import can_read_avro
from ckpt.query.compare_queries import (
    Knowledge,
    PartComparison,
    compare_signatures,
    drops_late_rows,
    find_worst,
    pair_sources,
)
from ckpt.query.description import (
    DescribedExpression,
    DescribedOperator,
    DescribedSource,
    DescribedWatermark,
    DescribedWindow,
    QueryDescription,
)
from ckpt.versions import Spark

WINDOW = DescribedWindow("t@0", 60_000_000, 60_000_000, 0)
WINDOWED = DescribedOperator(
    "stateStoreSave", keys=(), aggregates=(), window=WINDOW, filters=(), conditions=(), inputs=()
)
SESSIONS = replace(WINDOWED, name="sessionWindowStateStoreSaveExec", window=None, gap="10 seconds")
DEDUPLICATED = DescribedOperator("dedupe", keys=(), filters=(), conditions=(), inputs=())
LATE = 1_700_000_000_000


def delayed(seconds: int | None) -> tuple[DescribedWatermark, ...]:
    return () if seconds is None else (DescribedWatermark("t@0", seconds * 1000),)


def query(*operators: DescribedOperator, mode: str = "append", delay: int | None = 30) -> QueryDescription:
    source = DescribedSource("file", path="/a")
    return QueryDescription(Spark.V4_2, mode, (source,), operators, None, None, {}, delayed(delay), {})


def compare(
    old: QueryDescription, new: QueryDescription, watermark_ms: int = LATE, pairs: dict[int, int] | None = None
) -> list[list[PartComparison]]:
    operators = pairs if pairs is not None else {0: 0}
    compared = compare_signatures(old, new, pair_sources(old.sources, new.sources), operators, watermark_ms)
    return [[*each.parts] for each in compared]


def judge(old: QueryDescription, new: QueryDescription, watermark_ms: int = LATE) -> Knowledge:
    return find_worst(part.verdict for part in compare(old, new, watermark_ms)[0])


@pytest.mark.parametrize(
    ("operator", "old", "new", "watermark_ms", "verdict"),
    [
        (WINDOWED, "append", "update", LATE, Knowledge.FULL),
        (WINDOWED, "update", "append", LATE, Knowledge.FULL),
        (WINDOWED, "append", "complete", LATE, Knowledge.FROM_NOW_ON),
        (WINDOWED, "update", "complete", LATE, Knowledge.FROM_NOW_ON),
        (WINDOWED, "append", "complete", 0, Knowledge.FULL),
        (WINDOWED, "complete", "append", LATE, Knowledge.FROM_NOW_ON),
        (WINDOWED, "complete", "append", 0, Knowledge.FROM_NOW_ON),
        (WINDOWED, "complete", "update", LATE, Knowledge.FROM_NOW_ON),
        (SESSIONS, "complete", "update", LATE, Knowledge.FROM_NOW_ON),
        (DEDUPLICATED, "append", "update", LATE, Knowledge.FULL),
    ],
)
def test_an_output_mode_decides_what_was_evicted(
    operator: DescribedOperator, old: str, new: str, watermark_ms: int, verdict: Knowledge
) -> None:
    assert judge(query(operator, mode=old), query(operator, mode=new), watermark_ms) is verdict


@pytest.mark.parametrize(
    ("old", "new", "watermark_ms", "verdict"),
    [
        (30, None, LATE, Knowledge.FROM_NOW_ON),
        (30, 60, LATE, Knowledge.FROM_NOW_ON),
        (30, 10, LATE, Knowledge.FROM_NOW_ON),
        (None, 30, 0, Knowledge.FROM_NOW_ON),
        (30, 10, 0, Knowledge.FROM_NOW_ON),
        (30, 60, 0, Knowledge.FULL),
        (30, None, 0, Knowledge.FULL),
        (30, 30, LATE, Knowledge.FULL),
    ],
)
def test_another_watermark_is_full_only_while_nothing_was_dropped(
    old: int | None, new: int | None, watermark_ms: int, verdict: Knowledge
) -> None:
    for operator in (WINDOWED, SESSIONS, DEDUPLICATED):
        assert judge(query(operator, delay=old), query(operator, delay=new), watermark_ms) is verdict
    modes = [query(WINDOWED, mode="complete", delay=each) for each in (old, new)]
    assert judge(modes[0], modes[1], watermark_ms) is Knowledge.FULL


@pytest.mark.parametrize("text", ["v@0 IS NOT NULL", "explode(xs@0)", "explode(xs@0) OUTER", "Sample(seed=1)?"])
def test_a_condition_more_or_less_counts_from_now_on(text: str) -> None:
    plain, narrowed = query(WINDOWED), query(replace(WINDOWED, conditions=(text,)))
    for old, new in ((plain, narrowed), (narrowed, plain)):
        (parts,) = compare(old, new)
        assert [part.verdict for part in parts if part.silent] == [Knowledge.FROM_NOW_ON]
    assert judge(narrowed, narrowed) is (Knowledge.UNKNOWN if "?" in text else Knowledge.FULL)


def test_folders_below_that_are_read_now_or_no_longer_count_from_now_on() -> None:
    plain = query(WINDOWED)
    deep = replace(plain, sources=(replace(plain.sources[0], recursive=True),))
    assert judge(plain, deep) is judge(deep, plain) is Knowledge.FROM_NOW_ON
    assert judge(deep, deep) is Knowledge.FULL


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("/in/[ab]", Knowledge.FROM_NOW_ON),
        ("/in/*", Knowledge.FROM_NOW_ON),
        ("/in", Knowledge.FROM_NOW_ON),
        ("/in/a/day=1", Knowledge.FROM_NOW_ON),
        ("file:///in/a/", Knowledge.FULL),
        ("/in/another", Knowledge.FULL),  # CKPT443, CKPT465; evolve takes it for another source
        (None, Knowledge.FULL),
    ],
)
def test_a_pattern_or_a_folder_around_reads_other_rows(path: str | None, verdict: Knowledge) -> None:
    plain = query(WINDOWED)
    one, other = (replace(plain, sources=(replace(plain.sources[0], path=each),)) for each in ("/in/a", path))
    assert judge(one, other) is judge(other, one) is verdict


def test_a_window_of_each_branch_of_a_union_is_the_window_of_one() -> None:
    def windowed(text: str, length_us: int = 60_000_000) -> DescribedOperator:
        sql = f"window(t@0, {length_us}, {length_us}, 0)"
        key = DescribedExpression(text.format(sql, sql.replace("@0", "@1")), "timestamp")
        return replace(WINDOWED, keys=(key,), window=replace(WINDOW, length_us=length_us, slide_us=length_us))

    one, both = query(windowed("{}")), query(windowed("{{0: {} | 1: {}}}"))
    both = replace(both, sources=(*both.sources, DescribedSource("file", path="/b")))
    longer = replace(both, operators=(windowed("{{0: {} | 1: {}}}", 90_000_000),))
    assert judge(one, both) is judge(both, both) is Knowledge.FULL
    assert judge(one, longer) is judge(both, longer) is Knowledge.IMPOSSIBLE
    unread, other = (
        replace(each, operators=tuple(replace(own, window=None) for own in each.operators or ()))
        for each in (both, longer)
    )
    assert judge(unread, other) is Knowledge.IMPOSSIBLE


def test_an_older_description_leaves_open_what_it_lacks() -> None:
    older = query(replace(WINDOWED, conditions=None))
    assert judge(older, query(WINDOWED)) is judge(query(WINDOWED), older) is Knowledge.UNKNOWN


@pytest.mark.parametrize("inputs", [(1,), None])
def test_what_stands_in_front_decides_which_rows_come(inputs: tuple[int, ...] | None) -> None:
    after = replace(WINDOWED, inputs=inputs)
    chain, alone = query(after, DEDUPLICATED), query(replace(WINDOWED, inputs=inputs and ()))
    changed = query(after, replace(DEDUPLICATED, conditions=("v@0 IS NOT NULL",)))
    both, beside = {0: 0, 1: 1}, query(replace(WINDOWED, inputs=()), DEDUPLICATED)

    verdicts = [find_worst(part.verdict for part in parts) for parts in compare(chain, changed, pairs=both)]
    assert verdicts == [Knowledge.FROM_NOW_ON] * 2
    assert find_worst(part.verdict for part in compare(alone, chain)[0]) is Knowledge.FROM_NOW_ON
    assert find_worst(part.verdict for part in compare(chain, alone)[0]) is Knowledge.UNKNOWN
    if inputs:
        for old, new in ((chain, beside), (beside, chain)):
            assert find_worst(part.verdict for part in compare(old, new, pairs=both)[0]) is Knowledge.UNKNOWN
    assert {part.verdict for parts in compare(chain, chain, pairs=both) for part in parts} <= {Knowledge.FULL}


def test_rows_are_dropped_behind_the_watermark() -> None:
    assert drops_late_rows(query(WINDOWED), LATE)
    assert not drops_late_rows(query(WINDOWED), 0)
    assert not drops_late_rows(query(WINDOWED, delay=None), LATE)
    assert not drops_late_rows(query(WINDOWED, mode="complete"), LATE)
    assert not drops_late_rows(query(), LATE)


def struct(**fields: Json) -> Json:
    return {"type": "struct", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def test_avro_reads_wider_types_and_other_fields() -> None:
    old = struct(n="integer", s="string")
    for new in (struct(n="long", s="string"), struct(s="string"), struct(n="integer", s="string", more="date")):
        assert can_read_avro(new, old)
    for new in (struct(n="short"), struct(n="string"), struct(n="integer", s={"type": "array"})):
        assert not can_read_avro(new, old)
