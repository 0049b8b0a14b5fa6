"""The findings of a page: troubles with their meaning, then notes in brief, then the one thing to do next."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from ckpt.inspection.inspection import Inspection, RatedFinding
from ckpt.inspection.verdict import IF_STATELESS
from ckpt.restart.diagnoses.logs import ASYNC_REFUSES_STATE
from ckpt.restart.diagnoses.others import EMPTY
from ckpt.restart.diagnoses.state import NO_STATE_FOLDER
from ckpt.restart.findings import Asked, Severity
from ckpt.texts import quoted_path

from .blocks import Block, FindingHead, Heading, Item, Line

_PLACES = 3  # how many places of one finding are named
_INDENT = 11


def findings_section(inspection: Inspection) -> Iterator[Block]:
    """What was found, worst first; the page ends with the remedy of the worst."""
    troubles = inspection.troubles
    notes = [one for one in inspection.findings if one.severity is Severity.NOTE and not _is_told(one, inspection)]
    yield Heading("Findings", "" if troubles else _all_clear(notes))
    for place, same in enumerate(_by_code(troubles)):
        yield from _trouble(same, remedy=place > 0)
    for same in _by_code(notes):
        yield from _note(same)


def _all_clear(notes: list[RatedFinding]) -> str:
    """What a page without troubles says, as far as it is known."""
    found = {judged.finding.diagnosis for judged in notes}
    if EMPTY in found:
        return "there is nothing here"
    return "nothing that stops or harms a start"


def _is_told(note: RatedFinding, inspection: Inspection) -> bool:
    """Whether the verdict, or the lines of the forecast, say it already."""
    if note.finding.diagnosis is NO_STATE_FOLDER:
        return IF_STATELESS in inspection.verdict and inspection.checkpoint.stateful is False
    return note.finding.diagnosis is ASYNC_REFUSES_STATE


def next_advice(inspection: Inspection) -> Iterator[Block]:
    """The one thing to do next."""
    yield Item(_next(inspection), 10, "Next", advice=True)


def _next(inspection: Inspection) -> str:
    troubles = inspection.troubles
    if troubles:
        return troubles[0].remedy or "nothing you can do about it; start the query as usual"
    found = {judged.finding.diagnosis: judged for judged in inspection.findings}
    if EMPTY in found:
        return found[EMPTY].remedy or ""
    usual = "start the query as usual"
    if inspection.asked is Asked.ASYNC:
        usual = 'start the query with `.writeStream.option("asyncProgressTrackingEnabled", "true")`'
    if NO_STATE_FOLDER in found and inspection.checkpoint.stateful is None:
        return (
            f"{usual}; but if it aggregates, joins or deduplicates, its state is lost: restore state/ before the start"
        )
    sink = inspection.sink
    if any(one.live.unreached for one in inspection.live) or (sink is not None and sink.log.unreached):
        return 'ask again once what was "not reached" can be reached; the checkpoint itself has nothing to repair'
    latest = inspection.checkpoint.offsets.latest
    if latest is not None and latest in inspection.uncommitted:
        path = quoted_path(inspection.checkpoint.uri)
        return f"nothing to repair; {usual}. If batch {latest} fails every time, `ckpt skip {path}` leaves its rows out"
    return f"nothing to repair; {usual}"


def _by_code(judged: Sequence[RatedFinding]) -> list[list[RatedFinding]]:
    return [list(same) for _, same in groupby(judged, key=lambda j: (j.severity, j.finding.diagnosis.code))]


def _trouble(same: list[RatedFinding], *, remedy: bool) -> Iterator[Block]:
    first = same[0]
    yield _found(first, first.finding.path if len(same) == 1 else "")
    yield Item(first.meaning, _INDENT)
    if len(same) == 1:
        yield Item(f"Here: {first.finding.detail}.", _INDENT)
    for judged in same[:_PLACES] if len(same) > 1 else ():
        yield Item(f"{judged.finding.path}: {judged.finding.detail}", _INDENT + 2, " " * _INDENT + "- ")
    if len(same) > _PLACES:
        yield Line(" " * _INDENT + f"- and {len(same) - _PLACES} more: see -o json")
    if remedy and first.remedy:
        yield Item(first.remedy, _INDENT + 2, " " * _INDENT + "→ ", advice=True)


def _note(same: list[RatedFinding]) -> Iterator[Block]:
    yield _found(same[0])
    for judged in same[:_PLACES]:
        place = f"{judged.finding.path}: " if judged.finding.path else ""
        yield Item(f"{place}{judged.finding.detail}", _INDENT)
    if len(same) > _PLACES:
        yield Line(" " * _INDENT + f"and {len(same) - _PLACES} more: see -o json")


def _found(judged: RatedFinding, path: str = "") -> FindingHead:
    return FindingHead(judged.severity, f"{judged.finding.diagnosis.code} {judged.finding.diagnosis.name}", path)
