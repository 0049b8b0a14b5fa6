"""What Spark said of state across a switch: the part of the page, and the part of the JSON document."""

from collections.abc import Iterator
from itertools import groupby

from ckpt.migrate.comparison import Carried, Comparison, ComparisonVerdict, TwoWays, VersionComparison

from ..arguments import as_options
from .blocks import Block, Heading, Item, Line
from .text import plural

_SHOWN = 12  # how many partitions or units are named


def comparison_entry(found: Comparison | None) -> dict[str, object] | None:
    """The value of ``state_compared`` in the JSON document."""
    if found is None:
        return None
    return {
        "verdict": found.verdict,
        "spark": found.spark,
        "failed": None if found.failed is None else as_options(found.failed),
        "two_ways": [_compared_entry(one) for one in found.compared],
        "carried": [_carried_entry(one) for one in found.carried],
        "one_way": [
            {"operator": way.operator, "store": way.store, "partition": way.partition, "why": way.why}
            for way in found.alone
        ],
    }


def _compared_entry(one: VersionComparison) -> dict[str, object]:
    return {
        "operator": one.operator,
        "unit": one.unit,
        "batch": one.version - 1,
        "version": one.version,
        "older_snapshot": one.older,
        "partitions": list(one.partitions),
        "rows": one.rows,
        "rows_replayed": one.rows_replayed,
        "only_direct": one.only_direct,
        "only_replayed": one.only_replayed,
        "different": list(one.different),
    }


def _carried_entry(one: Carried) -> dict[str, object]:
    return {
        "operator": one.operator,
        "unit": one.unit,
        "last_version": one.last,
        "later_version": one.later,
        "partitions": list(one.partitions),
        "rows": one.rows,
        "rows_later": one.rows_later,
        "unchanged": one.unchanged,
    }


def headline_of(found: Comparison | None) -> str:
    """The second part of the verdict on a switch."""
    if found is None:
        return ""
    return {
        ComparisonVerdict.SAME: "; state read in two ways is the same",
        ComparisonVerdict.DIFFERENT: "; but STATE DIFFERS between two ways of reading it",
        ComparisonVerdict.UNKNOWN: "; whether state is the same is UNKNOWN, because not all of it can be "
        "read in two ways",
        ComparisonVerdict.NOT_COMPARED: "; state was NOT COMPARED",
    }[found.verdict]


def comparison_section(found: Comparison) -> Iterator[Block]:
    """What was compared, for which version, with how many rows, and what was not."""
    yield Heading("State", f"compared by Spark {found.spark}, every key and value" if found.spark else "")
    yield from (Item(_two_ways(one), 4, "  ") for one in found.compared[:_SHOWN])
    yield from (Item(_across(one), 4, "  ") for one in found.carried[:_SHOWN])
    if any(one.unchanged < one.rows for one in found.carried):
        yield Item("the other rows were rewritten or removed by batches in between", 4, "  ")
    left = max(len(found.compared), len(found.carried)) - _SHOWN
    if left > 0:
        yield Line(f"  and {left} more of each: see -o json")
    yield from _one_way(found.alone)
    if found.failed is not None:
        yield Item(f"not compared: {as_options(found.failed)}", 4, "  ")


def _where(one: VersionComparison | Carried) -> str:
    return f"{one.unit} ({plural(len(one.partitions), 'partition')})"


def _two_ways(one: VersionComparison) -> str:
    logs = f"{one.older}.zip and changelogs {one.older + 1} to {one.version}"
    ways = f"{_where(one)}, batch {one.version - 1}, from {one.version}.zip and from {logs}"
    if not one.different:
        return f"{ways}: {plural(one.rows, 'row')}, no difference"
    places = ", ".join(map(str, one.different))
    return (
        f"{ways}: DIFFERENT in partition {places}: {one.only_direct:,} of {plural(one.rows, 'row')} are only in the "
        f"former, {one.only_replayed:,} of {one.rows_replayed:,} only in the latter"
    )


def _across(one: Carried) -> str:
    return (
        f"{_where(one)}: {one.unchanged:,} of {plural(one.rows, 'row')} of version {one.last}, the last before the "
        f"switch, are unchanged in {one.later}.zip ({plural(one.rows_later, 'row')})"
    )


def _one_way(ways: tuple[TwoWays, ...]) -> Iterator[Block]:
    """What could not be compared, and why; the same reason is given once."""
    by_reason = sorted(ways, key=lambda way: (way.why or "", way.operator, way.store, way.partition))
    for why, group in groupby(by_reason, key=lambda way: way.why):
        places = [f"state/{way.operator}/{way.partition} {way.store}" for way in group]
        named = ", ".join(places[:_SHOWN])
        left = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        yield Item(f"unknown: {named}{left}: {why}", 4, "  ")


def next_of(found: Comparison | None, verify: str) -> tuple[str, str]:
    """What to do after a switch that took effect, and a command for it."""
    verdict = ComparisonVerdict.SAME if found is None else found.verdict
    return {
        ComparisonVerdict.SAME: ("nothing to do; keep the setting", ""),
        ComparisonVerdict.DIFFERENT: (
            "stop the query, keep a copy of the checkpoint, and see which files are damaged",
            "",
        ),
        ComparisonVerdict.UNKNOWN: (
            "the files show that it took effect; keep the setting. If a snapshot is missing, compare again after "
            "one was uploaded",
            verify,
        ),
        ComparisonVerdict.NOT_COMPARED: (
            "the files show that it took effect; keep the setting. To skip comparing state, or after the fix "
            "above, without it",
            f"{verify} --files-only",
        ),
    }[verdict]
