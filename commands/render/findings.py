"""The findings of a page: troubles with their meaning, then notes in brief, then the one thing to do next."""

from collections.abc import Iterator
from itertools import groupby

from ckpt.diagnoses.logs import ASYNC_REFUSES_STATE
from ckpt.diagnoses.others import EMPTY
from ckpt.diagnoses.state import NO_STATE_FOLDER
from ckpt.findings import Asked, Severity
from ckpt.inspection import Inspection, Judged

from .layout import Page
from .text import printable

COLOURS = {Severity.ERROR: "31;1", Severity.WARNING: "33;1", Severity.NOTE: "36"}
_PLACES = 3  # how many places of one finding are named
_INDENT = 11


def findings_section(inspection: Inspection, layout: Page) -> str:
    """What was found, worst first; the page ends with the remedy of the worst."""
    troubles = [judged for judged in inspection.findings if judged.severity is not Severity.NOTE]
    notes = [judged for judged in inspection.findings if judged.severity is Severity.NOTE and not _is_told(judged)]
    lines = [layout.heading("Findings", "" if troubles else _all_clear(notes))]
    for place, same in enumerate(_by_code(troubles)):
        lines += _trouble(same, layout, remedy=place > 0)
    for same in _by_code(notes):
        lines += _note(same, layout)
    lines += ["", next_advice(inspection, layout)]
    return "\n".join(lines)


def _all_clear(notes: list[Judged]) -> str:
    """What a page without troubles says, as far as it is known."""
    found = {judged.finding.diagnosis for judged in notes}
    if EMPTY in found:
        return "nothing is here"
    stateless = " of a stateless query" if NO_STATE_FOLDER in found else ""
    return f"nothing that stops or spoils a start{stateless}"


def _is_told(note: Judged) -> bool:
    """Whether the lines of the forecast say it already."""
    return note.finding.diagnosis is ASYNC_REFUSES_STATE


def next_advice(inspection: Inspection, layout: Page) -> str:
    """The one thing to do next."""
    return layout.advise(_next(inspection), 10, "Next")


def _next(inspection: Inspection) -> str:
    troubles = [judged for judged in inspection.findings if judged.severity is not Severity.NOTE]
    if troubles:
        return printable(troubles[0].remedy or "nothing can be done about it; start the query as usual")
    found = {judged.finding.diagnosis: judged for judged in inspection.findings}
    if EMPTY in found:
        return printable(found[EMPTY].remedy or "")
    usual = "start the query as usual"
    if inspection.asked is Asked.ASYNC:
        usual = 'start the query with `.writeStream.option("asyncProgressTrackingEnabled", "true")`'
    if NO_STATE_FOLDER in found:
        return (
            f"{usual}; but if it aggregates, joins or deduplicates, its state is lost: restore state/ before the start"
        )
    return f"nothing has to be repaired; {usual}"


def _by_code(judged: list[Judged]) -> list[list[Judged]]:
    return [list(same) for _, same in groupby(judged, key=lambda j: (j.severity, j.finding.diagnosis.code))]


def _trouble(same: list[Judged], layout: Page, *, remedy: bool) -> Iterator[str]:
    first = same[0]
    label, path = _label(first, layout), printable(first.finding.path) if len(same) == 1 else ""
    fits = len(_plain_label(first)) + 3 + len(path) <= layout.width
    yield f"{label}   {path}" if path and fits else label
    if path and not fits:
        yield " " * _INDENT + path
    yield layout.wrap(printable(first.meaning), _INDENT)
    if len(same) == 1:
        yield layout.wrap(f"Here: {printable(first.finding.detail)}.", _INDENT)
    for judged in same[:_PLACES] if len(same) > 1 else ():
        place = printable(f"{judged.finding.path}: {judged.finding.detail}")
        yield layout.wrap(place, _INDENT + 2, " " * _INDENT + "- ")
    if len(same) > _PLACES:
        yield " " * _INDENT + f"- and {len(same) - _PLACES} more, which -o json names"
    if remedy and first.remedy:
        yield layout.advise(printable(first.remedy), _INDENT + 2, " " * _INDENT + "→ ")


def _note(same: list[Judged], layout: Page) -> Iterator[str]:
    yield _label(same[0], layout)
    for judged in same[:_PLACES]:
        place = f"{judged.finding.path}: " if judged.finding.path else ""
        yield layout.wrap(printable(f"{place}{judged.finding.detail}"), _INDENT)
    if len(same) > _PLACES:
        yield " " * _INDENT + f"and {len(same) - _PLACES} more, which -o json names"


def _label(judged: Judged, layout: Page) -> str:
    plain = f"{judged.severity:8}"
    return _plain_label(judged).replace(plain, layout.paint(plain, COLOURS[judged.severity]), 1)


def _plain_label(judged: Judged) -> str:
    return f"  {judged.severity:8} {judged.finding.diagnosis.code} {judged.finding.diagnosis.name}"
