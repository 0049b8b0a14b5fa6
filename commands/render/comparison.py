"""Comparison of state across a switch, by Spark: the part of the page, and the part of the JSON document."""

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated

from ckpt.migrate.comparison import Carried, Comparison, ComparisonVerdict, TwoWays, VersionComparison
from ckpt.texts import plural

from ..arguments import as_options
from .blocks import Block, Heading, Item, Line
from .keys import ForPeople, Keys, of

_SHOWN = 12  # how many partitions or units are named


class _TwoWays(Keys):
    operator: int
    unit: ForPeople
    batch: Annotated[int, lambda pair: pair.version - 1]
    version: Annotated[int, "of the state store"]
    older_snapshot: Annotated[int, "the version where the longer way starts", of("older")]
    partitions: tuple[int, ...]
    rows: Annotated[int, "read from the snapshot of the version"]
    rows_replayed: Annotated[int, "read the longer way"]
    only_direct: Annotated[int, "rows (key and value) that the longer way does not return"]
    only_replayed: Annotated[int, "rows that only the longer way returns"]
    different: Annotated[tuple[int, ...], "partitions"]


class _Carried(Keys):
    operator: int
    unit: ForPeople
    last_version: Annotated[int, of("last")]
    later_version: Annotated[int, of("later")]
    partitions: tuple[int, ...]
    rows: Annotated[int, "of the last version before the switch"]
    rows_later: Annotated[int, "of the first snapshot after it"]
    unchanged: Annotated[int, "rows that are in both; batches in between rewrote or removed the others"]


class _OneWay(Keys):
    operator: int
    store: str
    partition: int
    why: ForPeople


class ComparisonKeys(Keys):
    """State that Spark compared across a switch."""

    verdict: Annotated[
        ComparisonVerdict,
        "unknown: no difference, but not every partition could be read in two ways; not-compared: Spark is missing or "
        "failed",
    ]
    spark: Annotated[str | None, "the version that read"]
    failed: Annotated[
        str | None,
        "why it stopped; its words are not fixed",
        lambda comparison: None if comparison.failed is None else as_options(comparison.failed),
    ]
    two_ways: Annotated[
        tuple[_TwoWays, ...],
        "one version of one unit of state, read from its snapshot and from an older one through changelogs",
        of("compared"),
    ]
    carried: Annotated[
        tuple[_Carried, ...],
        "what the last version before the switch has in common with the first snapshot after it; not part of the "
        "verdict",
    ]
    one_way: Annotated[tuple[_OneWay, ...], "what cannot be read in two ways", of("alone")]


def describe_headline(comparison: Comparison | None) -> str:
    """The second part of the verdict on a switch."""
    if comparison is None:
        return ""
    return {
        ComparisonVerdict.SAME: "; state read in two ways is the same",
        ComparisonVerdict.DIFFERENT: "; but STATE DIFFERS between two ways of reading it",
        ComparisonVerdict.UNKNOWN: "; whether state is the same is UNKNOWN, because not all of it can be "
        "read in two ways",
        ComparisonVerdict.NOT_COMPARED: "; state was NOT COMPARED",
    }[comparison.verdict]


def show_comparison(comparison: Comparison) -> Iterator[Block]:
    """Section with each comparison, its version and rows, and with state that was not compared."""
    yield Heading("State", f"compared by Spark {comparison.spark}, every key and value" if comparison.spark else "")
    yield from (Item(_compare_two_ways(pair), 4, "  ") for pair in comparison.compared[:_SHOWN])
    yield from (Item(_compare_across(carried), 4, "  ") for carried in comparison.carried[:_SHOWN])
    if any(carried.unchanged < carried.rows for carried in comparison.carried):
        yield Item("the other rows were rewritten or removed by batches in between", 4, "  ")
    left = max(len(comparison.compared), len(comparison.carried)) - _SHOWN
    if left > 0:
        yield Line(f"  and {left} more of each: see -o json")
    yield from _show_one_way(comparison.alone)
    if comparison.failed is not None:
        yield Item(f"not compared: {as_options(comparison.failed)}", 4, "  ")


def _name_unit(pair: VersionComparison | Carried) -> str:
    return f"{pair.unit} ({plural(len(pair.partitions), 'partition')})"


def _compare_two_ways(pair: VersionComparison) -> str:
    logs = f"{pair.older}.zip and changelogs {pair.older + 1} to {pair.version}"
    ways = f"{_name_unit(pair)}, batch {pair.version - 1}, from {pair.version}.zip and from {logs}"
    if not pair.different:
        return f"{ways}: {plural(pair.rows, 'row')}, no difference"
    places = ", ".join(map(str, pair.different))
    return (
        f"{ways}: DIFFERENT in partition {places}: {pair.only_direct:,} of {plural(pair.rows, 'row')} are only in the "
        f"former, {pair.only_replayed:,} of {pair.rows_replayed:,} only in the latter"
    )


def _compare_across(carried: Carried) -> str:
    return (
        f"{_name_unit(carried)}: {carried.unchanged:,} of {plural(carried.rows, 'row')} of version {carried.last}, the "
        f"last before the switch, are unchanged in {carried.later}.zip ({plural(carried.rows_later, 'row')})"
    )


def _show_one_way(ways: tuple[TwoWays, ...]) -> Iterator[Block]:
    """State that could not be compared, grouped by reason."""
    by_reason = sorted(ways, key=lambda way: (way.why or "", way.operator, way.store, way.partition))
    for why, group in groupby(by_reason, key=lambda way: way.why):
        places = [f"state/{way.operator}/{way.partition} {way.store}" for way in group]
        named = ", ".join(places[:_SHOWN])
        left = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        yield Item(f"unknown: {named}{left}: {why}", 4, "  ")


def choose_next(comparison: Comparison | None, verify: str) -> tuple[str, str]:
    """Advice after a switch that took effect, and a command for it."""
    verdict = ComparisonVerdict.SAME if comparison is None else comparison.verdict
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
