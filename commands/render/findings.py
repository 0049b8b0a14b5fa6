"""The findings of a page: troubles with their meaning, then notes in brief, then the one thing to do next."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from ckpt.advice import CHECKPOINT, NO_ROWS, Advice, Code, Do, advise, call, do, run, words
from ckpt.inspection.inspection import Inspection, RatedFinding, gather_known
from ckpt.inspection.verdict import AS_FAR_AS_NAMES
from ckpt.restart.diagnoses.others import EMPTY
from ckpt.restart.diagnoses.state import NO_STATE_FOLDER
from ckpt.restart.findings import Asked

from .blocks import Block, FindingHead, Heading, Item, Next, more, show_advice

_TRIGGERS = {
    Asked.ASYNC: Code('.writeStream.option("asyncProgressTrackingEnabled", "true")'),
    Asked.CONTINUOUS: Code('.trigger(continuous="1 second")'),
    Asked.REALTIME: Code('.trigger(realTime="5 minutes")'),
}
_PLACES = 3  # how many places of one finding are named
_BRIEF = 3  # how many findings a short page has
_INDENT = 11


def show_findings_briefly(inspection: Inspection) -> Iterator[Block]:
    """Findings without their meanings, worst first."""
    groups = _group_by_code(inspection.troubles)
    if groups:
        yield Heading("Findings", str(words("what they mean: {verbose}")))
    cause = inspection.cause.words if inspection.cause else ""
    for same in groups[:_BRIEF]:
        first, more_places = same[0], f" (and {len(same) - 1} more)" if len(same) > 1 else ""
        yield _name_finding(first, first.path)
        if not cause.startswith(first.cause.words) or first.finding.diagnosis.cause:
            yield Item(first.finding.detail + more_places, _INDENT)
    yield from more(len(groups) - _BRIEF)


def show_notes_briefly(inspection: Inspection) -> Iterator[Block]:
    """The codes of notes."""
    codes = ", ".join(dict.fromkeys(note.code for note in inspection.notes))
    if codes:
        yield Heading("Notes", str(words("{codes}: see {verbose}", codes=codes)))


def show_findings(inspection: Inspection) -> Iterator[Block]:
    """Findings, worst first; the page ends with the remedy of the worst."""
    troubles = inspection.troubles
    notes = inspection.notes
    empty = any(rated.finding.diagnosis == EMPTY for rated in notes)
    all_clear = "there is nothing here" if empty else "nothing prevents or harms a start"
    yield Heading("Findings", "" if troubles else all_clear)
    for number, same in enumerate(_group_by_code(troubles)):
        yield from _show_trouble(same, remedy=number > 0)
    for same in _group_by_code(notes):
        yield from _show_note(same)


def show_next(inspection: Inspection) -> Iterator[Block]:
    """The remedy of the worst finding."""
    yield Next(inspection.advice.steps, _advise_usual_start(inspection))


def _advise_usual_start(inspection: Inspection) -> Advice:
    checkpoint, trigger = inspection.checkpoint, _TRIGGERS.get(inspection.asked)
    how = words("as usual") if trigger is None else words("with {trigger}", trigger=trigger)
    if any(rated.finding.diagnosis == NO_STATE_FOLDER for rated in inspection.findings):
        how += ", if it is stateless"
    far = AS_FAR_AS_NAMES if inspection.not_read else ""
    start = do(Do.START, words("nothing to repair{far}; start the query {how}", far=far, how=how), rows=NO_ROWS)
    latest = checkpoint.offsets.latest
    skips = latest in inspection.uncommitted and latest != 0 and checkpoint.stateful is not None  # others are refused
    if not skips or not inspection.asked.in_micro_batches:
        return advise(start)
    stateless = " and the query is stateless" if checkpoint.state is None else ""
    fails = f"If batch {latest} fails every time{stateless}"
    what = words("{fails}, see the plan that skips the batch's rows.", fails=fails)
    skip = run(call("skip", CHECKPOINT), what)
    return advise(start.or_(skip)).fill(gather_known(checkpoint, inspection.sink))


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
        left = words("and {count} more: see {fields}", count=len(same) - _PLACES)
        yield Item(left, _INDENT + 2, " " * _INDENT + "- ")
    if remedy and first.advice:
        yield from show_advice(first.advice, _INDENT + 2, " " * _INDENT + "→ ")


def _show_note(same: list[RatedFinding]) -> Iterator[Block]:
    yield _name_finding(same[0])
    for rated in same[:_PLACES]:
        path = f"{rated.finding.path}: " if rated.finding.path else ""
        yield Item(f"{path}{rated.finding.detail}", _INDENT)
    if len(same) > _PLACES:
        yield Item(words("and {count} more: see {fields}", count=len(same) - _PLACES), _INDENT)


def _name_finding(rated: RatedFinding, path: str = "") -> FindingHead:
    return FindingHead(rated.severity, f"{rated.finding.diagnosis.code} {rated.finding.diagnosis.name}", path)
