"""What an error means, as a page and as a document."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ckpt.inspection.explain.catalog import KnownError
from ckpt.inspection.explain.explain import ErrorMatch, Explanation
from ckpt.inspection.inspection import Inspection
from ckpt.restart.diagnoses import all_diagnoses

from ..exits import Exit
from .blocks import Block, Headline, Item, Line, Page, Tone, page_of
from .document import Document, ToolKeys
from .text import plural

_OTHERS = 5  # further matches that are named
_SHOWN = 3  # findings of the checkpoint that are named
_WIDTH = 10


@dataclass(frozen=True, slots=True)
class ExplanationReport:
    """What ``ckpt explain`` says."""

    found: Explanation

    @property
    def exit(self) -> Exit:
        """Whether the error is known."""
        return Exit.OK if self.found.matches else Exit.FOUND

    def document(self) -> Document:
        """All of it."""
        found = self.found
        return {
            "ckpt": ToolKeys(),
            "matches": [_entry(match) for match in found.matches],
            "seen": found.seen or None,
            "nearest": [{"id": near.error.id, "title": near.error.title, "why": near.why} for near in found.nearest],
            "checkpoint": _checkpoint(found),
        }

    def page(self) -> Page:
        """The cause, what to do, then what else is in the text."""
        found = self.found
        if not found.matches:
            return page_of(_unknown(found))
        first, *others = found.matches
        here = _here(first, found.inspection)
        return page_of(_first(first), here, _elsewhere(found), _do(first), _others(others))


def _entry(match: ErrorMatch) -> dict[str, Any]:
    error = match.error
    return {
        "id": error.id,
        "title": error.title,
        "system": error.system,
        "cause": error.cause,
        "cure": match.cure,
        "since": error.since,
        "codes": list(error.codes),
        "command": match.command,
        "matched": match.matched,
        "times": match.times,
        "source": error.source,
        "shown": [
            {"code": one.finding.diagnosis.code, "path": one.finding.path, "remedy": one.remedy} for one in match.shown
        ],
    }


def _checkpoint(found: Explanation) -> dict[str, Any] | None:
    inspection = found.inspection
    if inspection is None:
        return None
    codes = dict.fromkeys(one.finding.diagnosis.code for one in inspection.findings)
    return {
        "path": inspection.checkpoint.uri,
        "verdict": inspection.verdict,
        "codes": list(codes),
        "contradictions": list(found.contradictions),
    }


def _first(match: ErrorMatch) -> Iterator[Block]:
    error = match.error
    yield Headline(error.title, Tone.ERROR)
    times = f" ({plural(match.times, 'line')} like it)" if match.times > 1 else ""
    yield Item(match.matched + times, _WIDTH, "  Seen    ")
    yield Item(f"{error.cause} Said by {_who(error)}.", _WIDTH, "  Means   ")
    if error.codes:
        yield Item(_named(error.codes), _WIDTH, "  Finding ")


def _do(match: ErrorMatch) -> Iterator[Block]:
    """What to do: as the finding of the checkpoint says, where there is one, because it knows the files."""
    here = next((one.remedy for one in match.shown if one.remedy), None)
    yield Item(here or match.cure, _WIDTH, "Do", advice=True)
    if match.command and not here:
        yield Item(f"`{match.command}`", _WIDTH, "Command", advice=True)


_SYSTEMS = {"spark": "Spark", "rocksdb": "Spark with RocksDB", "kafka": "Spark's Kafka source", "storage": "Spark"}


def _who(error: KnownError) -> str:
    """Who says it, since when."""
    who = _SYSTEMS.get(error.system, "")
    return f"{who} {error.since}" if who else error.since


def _here(match: ErrorMatch, inspection: Inspection | None) -> Iterator[Block]:
    """Whether the checkpoint shows it."""
    if inspection is None:
        return
    for one in match.shown[:_SHOWN]:
        found = one.finding
        place = f" {found.path}:" if found.path else ""
        name = f"{found.diagnosis.code} {found.diagnosis.name}"
        yield Item(f"this checkpoint shows {name}:{place} {found.detail}", _WIDTH, "Here")
    if len(match.shown) > _SHOWN:
        yield Line(f"{' ' * _WIDTH}and {len(match.shown) - _SHOWN:,} more: see -o json")
    if not match.shown:
        codes = " or ".join(match.error.codes)
        shows = f"this checkpoint does not show {codes}" if codes else "no finding of a checkpoint shows this"
        yield Item(f"{shows}. The verdict on it: {inspection.verdict}", _WIDTH, "Here")


def _elsewhere(found: Explanation) -> Iterator[Block]:
    if found.contradictions:
        yield Item(f"{'; '.join(found.contradictions)}. Is it the right checkpoint?", _WIDTH, "But")


def _others(others: list[ErrorMatch]) -> Iterator[Block]:
    if others:
        yield Line("Also in this text, further from the cause or earlier:")
    for match in others[:_OTHERS]:
        codes = f" ({', '.join(match.error.codes)})" if match.error.codes else ""
        yield Item(f"{match.error.title}{codes}", 4, "  - ")
    if len(others) > _OTHERS:
        yield Line(f"  and {len(others) - _OTHERS:,} more: see -o json")


def _unknown(found: Explanation) -> Iterator[Block]:
    yield Headline("This error is not in the catalog", Tone.WARNING)
    if found.seen:
        yield Item(found.seen, _WIDTH, "  Seen    ")
    for near in found.nearest:
        yield Item(f"{near.error.title}: it has {near.why}. This is no answer", _WIDTH, "  Nearest ")
    if found.inspection is not None:
        yield Item(found.inspection.verdict, _WIDTH, "  Here    ")
    yield from _elsewhere(found)
    text = "`ckpt inspect CHECKPOINT` says what the next start will do, whatever the message was."
    yield Item(text, _WIDTH, "  Do      ", advice=True)


def _named(codes: tuple[str, ...]) -> str:
    names = {one.code: one.name for one in all_diagnoses()}
    return ", ".join(f"{code} {names[code]}" for code in codes)
