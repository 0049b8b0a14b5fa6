"""Which rows are lost, doubled or wrong in a sink, and what ckpt had announced of that."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.laws.next_obeyed import Document
from tests.laws.operator.queries import AHEAD, CLOSING, REPEATED, Kind, Row, World

WAITING = 12
"""Newest rows of a query from `rate-micro-batch` that may still be in state: no row closes their windows."""


class Outcome(StrEnum):
    EXACT = "exact"
    ANNOUNCED = "as announced"
    UNSEEN = "unseen"  # only a sink or source shows it that was not asked, as the page says, or that keeps no record
    PERSON = "needs a person"
    STOP = "stop"
    UNANNOUNCED = "unannounced"
    LOOP = "loop"
    TRACEBACK = "traceback"
    STUCK = "stuck"


BAD = (Outcome.UNANNOUNCED, Outcome.LOOP, Outcome.TRACEBACK, Outcome.STUCK)


@dataclass(frozen=True)
class Count:
    """Numbers of rows in the end."""

    lost: tuple[int, ...] = ()
    doubled: tuple[int, ...] = ()
    wrong: str = ""

    @property
    def exact(self) -> bool:
        return self == Count()


def expected(world: World, seen: Iterable[int]) -> set[int]:
    """The numbers that a query which nothing happened to would have in its sink."""
    kind, numbers = world.kind, {*world.added}
    if kind.source == "rate":
        numbers = {*range(max(world.rows_of_rate, max(seen, default=-1) + 1))}
        waiting = {"window": WAITING}.get(kind.operator, 0)
        numbers = {number for number in numbers if number < len(numbers) - waiting}
    if kind.operator == "dedup":
        return {number for number in numbers if number % 5 != 4 or number < REPEATED}
    if kind.operator == "join":
        return {number for number in numbers if number + AHEAD in numbers}
    return numbers


def count_rows(world: World, rows: list[Row]) -> Count:
    """Compare a sink with what would be there had nothing happened; it has every row that ought to be there by now."""
    if world.kind.upserts:
        rows = [*{row[0]: row for row in rows}.values()]
    times = Counter(number for _, ids, _ in rows for number in ids if number != CLOSING)
    wanted = expected(world, times)
    lost = tuple(sorted(wanted - {*times}))
    doubled = tuple(sorted(number for number in times if times[number] > 1))
    wrong = "" if lost or doubled else _wrong_state(world.kind, rows)
    return Count(lost, doubled, wrong)


def _wrong_state(kind: Kind, rows: list[Row]) -> str:
    """Say where a user's function counted otherwise than its rows: its state is not theirs."""
    if kind.operator != "transform":
        return ""
    totals, emitted = defaultdict[int, int](int), defaultdict[int, int](int)
    for key, ids, total in rows:
        emitted[key] += len(ids)
        totals[key] = max(totals[key], total)
    return "" if totals == emitted else f"state counts {dict(totals)}, and its rows are {dict(emitted)}"


_LOSES = {
    *("CKPT205", "CKPT403", "CKPT405", "CKPT411", "CKPT412", "CKPT413", "CKPT418", "CKPT419", "CKPT420"),
    *("CKPT421", "CKPT422", "CKPT423", "CKPT424", "CKPT425", "CKPT426", "CKPT427"),
    *("CKPT451", "CKPT452", "CKPT453", "CKPT454", "CKPT455", "CKPT456", "CKPT457", "CKPT458"),
    *("CKPT461", "CKPT462", "CKPT463", "CKPT464", "CKPT304", "CKPT306", "CKPT332", "CKPT112", "CKPT127", "CKPT602"),
}
"""Findings whose meaning says that the query leaves out rows, or counts on without its state."""
_REPEATS = {
    *("CKPT108", "CKPT112", "CKPT127", "CKPT203", "CKPT205", "CKPT209", "CKPT212", "CKPT213", "CKPT401"),
    *("CKPT403", "CKPT414"),
    *("CKPT415", "CKPT402", "CKPT463", "CKPT464", "CKPT602", "CKPT306", "CKPT332", "CKPT425", "CKPT451"),
    *("CKPT453", "CKPT457"),
}
"""Findings whose meaning says that rows may be read or written again."""
_WITHOUT_RECORD = ("unknown-query", "unknown")
_SAYS_LOST = re.compile(r"\bdrop(s|ped)?\b|\bloses?\b|\blost\b|\bleft out\b|\bnever\b")
_SAYS_AGAIN = re.compile(r"\bagain\b|\btwice\b")


@dataclass
class Announced:
    """What ckpt said of rows before the query was started, by kind."""

    lost: set[str] = field(default_factory=set)
    doubled: set[str] = field(default_factory=set)
    unseen: bool = False  # the page did not look at a source or sink, or it keeps no record of batches

    def hear(self, documents: Iterable[Document], steps: Iterable[Document]) -> None:
        """Take in the pages that were seen, and the steps that were done."""
        for document in documents:
            codes = {finding["code"] for finding in document.get("findings", ())}
            self.lost |= codes & _LOSES
            self.doubled |= codes & _REPEATS
            if any(start["reexecutes"] for start in document.get("restart", ())):
                self.doubled.add("a batch runs again")
            if "restart" in document and "sources" in document:
                sources = [source["live"] for source in document["sources"] if source["type"] != "rate-micro-batch"]
                sink = document["sink"]
                self.unseen = None in sources or sink is None or sink["outcome"] in _WITHOUT_RECORD
            if document.get("applied"):
                warnings = " ".join(document.get("warnings", ()))
                self.lost |= {"a warning"} if _SAYS_LOST.search(warnings) else set()
                self.doubled |= {"a warning"} if _SAYS_AGAIN.search(warnings) else set()
        for step in steps:
            if step["rows"] in ("left-out", "unknown"):
                self.lost.add(f"rows {step['rows']}")
            if step["rows"] in ("again", "unknown"):
                self.doubled.add(f"rows {step['rows']}")

    def covers(self, count: Count) -> bool:
        """Whether everything that is not exact was announced, in kind."""
        return (not count.lost or bool(self.lost)) and (not count.doubled or bool(self.doubled)) and not count.wrong

    def as_json(self) -> dict[str, Any]:
        return {"lost": sorted(self.lost), "doubled": sorted(self.doubled)}


def shorten(numbers: tuple[int, ...]) -> str:
    """Numbers as ranges, such as `3-7 9`."""

    def ranges() -> Iterator[str]:
        first = None
        for number in numbers:
            if first is None:
                first = number
            if number + 1 not in numbers:
                yield f"{first}-{number}" if number > first else str(number)
                first = None

    return " ".join(ranges())
