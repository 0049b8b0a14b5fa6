"""The findings of a page: troubles with their meaning, then notes in brief, then the one thing to do next."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from ckpt.inspection.inspection import Inspection, RatedFinding
from ckpt.restart.diagnoses.others import EMPTY
from ckpt.restart.findings import Asked
from ckpt.texts import quote_path

from .blocks import Block, FindingHead, Heading, Item, Line, Next, show_advice

_PLACES = 3  # how many places of one finding are named
_INDENT = 11


def show_findings(inspection: Inspection) -> Iterator[Block]:
    """Findings, worst first; the page ends with the remedy of the worst."""
    troubles = inspection.troubles
    notes = inspection.notes
    empty = any(rated.finding.diagnosis == EMPTY for rated in notes)
    all_clear = "there is nothing here" if empty else "nothing that stops or harms a start"
    yield Heading("Findings", "" if troubles else all_clear)
    for number, same in enumerate(_group_by_code(troubles)):
        yield from _show_trouble(same, remedy=number > 0)
    for same in _group_by_code(notes):
        yield from _show_note(same)


def show_next(inspection: Inspection) -> Iterator[Block]:
    """The remedy of the worst finding."""
    yield Next(inspection.advice.steps, _describe_usual_start(inspection))


def _describe_usual_start(inspection: Inspection) -> str:
    usual = "nothing to repair; start the query as usual"
    if inspection.asked is Asked.ASYNC:
        usual = 'nothing to repair; start the query with `.writeStream.option("asyncProgressTrackingEnabled", "true")`'
    if inspection.asked is Asked.CONTINUOUS:
        return 'nothing to repair; start the query with `.trigger(continuous="1 second")`'
    if inspection.asked is Asked.REALTIME:
        return 'nothing to repair; start the query with `.trigger(realTime="5 minutes")`'
    latest = inspection.checkpoint.offsets.latest
    if latest is not None and latest in inspection.uncommitted:
        command = f"ckpt skip {quote_path(inspection.checkpoint.uri)}{' --deep' * inspection.deep}"
        skip = f"If batch {latest} fails every time, `{command}` leaves its rows out"
        if inspection.checkpoint.state is None:
            skip += (
                ". That does not help a query that aggregates, joins or deduplicates: its state is lost, and "
                "state/ has to be put back from a copy first"
            )
        return f"{usual}. {skip}"
    return usual


def _group_by_code(rated: Sequence[RatedFinding]) -> list[list[RatedFinding]]:
    return [list(same) for _, same in groupby(rated, key=lambda each: (each.severity, each.finding.diagnosis.code))]


def _show_trouble(same: list[RatedFinding], *, remedy: bool) -> Iterator[Block]:
    first = same[0]
    yield _name_finding(first, first.finding.path if len(same) == 1 else "")
    yield Item(first.meaning, _INDENT)
    if len(same) == 1:
        yield Item(f"Here: {first.finding.detail}.", _INDENT)
    for rated in same[:_PLACES] if len(same) > 1 else ():
        yield Item(f"{rated.finding.path}: {rated.finding.detail}", _INDENT + 2, " " * _INDENT + "- ")
    if len(same) > _PLACES:
        yield Line(" " * _INDENT + f"- and {len(same) - _PLACES} more: see -o json")
    if remedy and first.advice:
        yield from show_advice(first.advice, _INDENT + 2, " " * _INDENT + "→ ")


def _show_note(same: list[RatedFinding]) -> Iterator[Block]:
    yield _name_finding(same[0])
    for rated in same[:_PLACES]:
        path = f"{rated.finding.path}: " if rated.finding.path else ""
        yield Item(f"{path}{rated.finding.detail}", _INDENT)
    if len(same) > _PLACES:
        yield Line(" " * _INDENT + f"and {len(same) - _PLACES} more: see -o json")


def _name_finding(rated: RatedFinding, path: str = "") -> FindingHead:
    return FindingHead(rated.severity, f"{rated.finding.diagnosis.code} {rated.finding.diagnosis.name}", path)
