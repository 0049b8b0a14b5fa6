"""Meaning of an error, as a page and as a document."""

from collections.abc import Iterator
from typing import Annotated

from ckpt.advice import CHECKPOINT, Known, Step, advise, call, left_out, run, words
from ckpt.advice.spelling import quote_line
from ckpt.inspection.explain.catalog import KnownError, list_calls
from ckpt.inspection.explain.explain import ErrorMatch, Explanation, NearError
from ckpt.inspection.inspection import Inspection
from ckpt.restart.diagnoses import all_diagnoses, sources
from ckpt.restart.findings import Diagnosis
from ckpt.texts import plural

from .blocks import Block, Headline, Item, Line, Next, Page, Tone, bullets, page_of, show_advice
from .book import BOOK
from .document import DocumentKeys
from .keys import Keys, of
from .reports import Exit, Report

_OTHERS = 5  # further matches that are named
_SHOWN = 3  # findings of the checkpoint that are named
_WIDTH = 10
_NOTHING = "Nothing needs to be done."
_SOURCES = {value.code for value in vars(sources).values() if isinstance(value, Diagnosis)}
"""Codes of findings that ckpt reports only if it asks the sources."""


class _Shown(Keys):
    code: Annotated[str, of("finding.diagnosis.code")]
    path: Annotated[str, of("finding.path")]
    remedy: str | None


_MATCH = "id title system cause cure since codes command matched times innermost twin source shown"


class _Match(Keys, record=ErrorMatch, keys=_MATCH):
    id: Annotated[str, of("error.id")]
    title: Annotated[str, of("error.title")]
    system: Annotated[str, of("error.system")]
    cause: Annotated[str, lambda match: str(match.error.cause)]
    cure: Annotated[str, lambda match: str(match.cure) or _NOTHING]
    since: Annotated[str, of("error.since")]
    codes: Annotated[tuple[str, ...], of("error.codes")]
    command: Annotated[str | None, lambda match: match.command and quote_line(match.command)]
    twin: Annotated[str | None, of("error.twin")]
    source: Annotated[str, of("error.source")]
    shown: tuple[_Shown, ...]


class _Near(Keys, record=NearError, keys="id title why"):
    id: Annotated[str, of("error.id")]
    title: Annotated[str, of("error.title")]


class _Checkpoint(Keys):
    path: Annotated[str, of("inspection.checkpoint.uri")]
    verdict: Annotated[str, of("inspection.verdict")]
    codes: Annotated[
        tuple[str, ...],
        lambda explanation: list(dict.fromkeys(r.finding.diagnosis.code for r in explanation.inspection.findings)),
    ]
    contradictions: tuple[str, ...]


class ExplanationDocument(DocumentKeys):
    """The document of ``ckpt explain``."""

    matches: tuple[_Match, ...]
    seen: Annotated[str | None, lambda explanation: explanation.seen or None]
    nearest: tuple[_Near, ...]
    checkpoint: Annotated[
        _Checkpoint | None, lambda explanation: explanation if explanation.inspection is not None else None
    ]


class ExplanationReport(Report[Explanation]):
    """Report of ``ckpt explain``."""

    keys = ExplanationDocument

    @property
    def exit(self) -> Exit:
        return Exit.OK if self.record.matches else Exit.FOUND

    def page(self) -> Page:
        explanation = self.record
        if not explanation.matches:
            return page_of(_show_unknown(explanation))
        first, *others = explanation.matches
        here = _show_findings(first, explanation.inspection)
        twins = [match for match in others if first.error.id == match.error.twin or match.error.id == first.error.twin]
        others = [match for match in others if match not in twins]
        return page_of(
            _show_first(first),
            here,
            _show_elsewhere(explanation),
            _show_cure(first, explanation.inspection),
            _show_twins(twins),
            _show_others(others),
        )


def _show_first(match: ErrorMatch) -> Iterator[Block]:
    error = match.error
    yield Headline(error.title, Tone.ERROR)
    times = f" ({plural(match.times, 'line')} like it)" if match.times > 1 else ""
    yield Item(match.matched + times, _WIDTH, "  Seen    ")
    if match.innermost:
        yield Item(match.innermost, _WIDTH, "  Cause   ")
    if error.id in error.codes:  # a finding of ckpt: the headline names it
        yield Item(error.cause, _WIDTH, "  Means   ")
        return
    yield Item(error.cause + f" Raised by {_name_system(error)}.", _WIDTH, "  Means   ")
    if error.codes:
        yield Item(_name_codes(error.codes), _WIDTH, "  Finding ")


def _show_cure(match: ErrorMatch, inspection: Inspection | None) -> Iterator[Block]:
    """Remedy of the checkpoint's finding, which knows the files, or else the cure of the catalog."""
    if _LOG_OF_FILES in match.error.frames and not match.shown and inspection is not None and inspection.sound:
        in_sink = BOOK.advise("look_into_sink").fill(Known(inspection.checkpoint.uri))
        yield Next(in_sink.steps)  # the log of a file sink is read by the same class
        return
    here = next((rated.advice for rated in match.shown if rated.advice), None)
    steps = (here or match.cure).mark_stop().steps
    if match.command is not None and not here and match.command not in list_calls(match.cure):
        steps += (run(match.command, words("See which signs of the error this checkpoint shows.")),)
    yield Next(steps, _NOTHING)


_LOG_OF_FILES = "CompactibleFileStreamLog"
_SYSTEMS = {"spark": "Spark", "rocksdb": "Spark with RocksDB", "kafka": "Spark's Kafka source", "storage": "Spark"}


def _name_system(error: KnownError) -> str:
    """Who says it, since when."""
    who = _SYSTEMS.get(error.system, "")
    return f"{who} {error.since}" if who and error.since[0].isdigit() else error.since


def _show_findings(match: ErrorMatch, inspection: Inspection | None) -> Iterator[Block]:
    """Findings of the checkpoint that show the error."""
    if inspection is None:
        return
    for rated in match.shown[:_SHOWN]:
        finding = rated.finding
        path = f" {finding.path}:" if finding.path else ""
        name = f"{finding.diagnosis.code} {finding.diagnosis.name}"
        yield Item(f"this checkpoint shows {name}:{path} {finding.detail}", _WIDTH, "Here")
    if len(match.shown) > _SHOWN:
        yield Item(words("and {left} more: see {fields}", left=f"{len(match.shown) - _SHOWN:,}"), _WIDTH)
    codes = " or ".join(match.error.codes)
    if not match.shown and _SOURCES.issuperset(match.error.codes) and codes:
        yield Item(f"the checkpoint's sources were not asked: only they show {codes}", _WIDTH, "Here")
    elif not match.shown:
        shows = f"this checkpoint does not show {codes}" if codes else "no checkpoint finding shows this error"
        yield Item(f"{shows}. Verdict on the checkpoint: {inspection.verdict}", _WIDTH, "Here")


def _show_elsewhere(explanation: Explanation) -> Iterator[Block]:
    if explanation.contradictions:
        yield Item(f"{'; '.join(explanation.contradictions)}. Is it the right checkpoint?", _WIDTH, "But")


def _show_twins(twins: list[ErrorMatch]) -> Iterator[Block]:
    """Other causes of the same text, with what to do about them."""
    for match in twins:
        yield Item(words("{title}. {cause}", title=match.error.title, cause=match.error.cause), _WIDTH, "Or        ")
        yield from show_advice(match.cure, _WIDTH, "")


def _show_others(others: list[ErrorMatch]) -> Iterator[Block]:
    if others:
        yield Line("Also found in this text:")
    codes = (f" ({', '.join(match.error.codes)})" if match.error.codes else "" for match in others)
    yield from bullets((f"{match.error.title}{named}" for match, named in zip(others, codes, strict=True)), _OTHERS)


def _show_unknown(explanation: Explanation) -> Iterator[Block]:
    yield Headline("This error is not in the catalog", Tone.WARNING)
    if explanation.seen:
        yield Item(explanation.seen, _WIDTH, "  Seen    ")
    for near in explanation.nearest:
        yield Item(f"{near.error.title}: it has {near.why}. This is not an answer", _WIDTH, "  Nearest ")
    if explanation.inspection is not None:
        yield Item(explanation.inspection.verdict, _WIDTH, "  Here    ")
    yield from _show_elsewhere(explanation)
    inspection = explanation.inspection
    look = run(call("inspect", CHECKPOINT), words("Regardless of the message, see what the next start does."))
    known = Known(None if inspection is None else inspection.checkpoint.uri)
    yield Next(advise(look, *_show_hidden_causes(inspection)).fill(known).steps)


def _show_hidden_causes(inspection: Inspection | None) -> Iterator[Step]:
    """Name what a checkpoint alone does not show: a sink that fails the batch, and rows that always do."""
    if inspection is None or not inspection.sound:
        return
    yield from BOOK.advise("look_into_sink").steps
    again = next((forecast.batch_id for forecast in inspection.counted if forecast.reexecutes), None)
    if again is not None:
        what = words("If a row of batch {number} makes every start fail, plan how to skip that batch.", number=again)
        yield run(call("skip", CHECKPOINT), what, rows=left_out(again))


def _name_codes(codes: tuple[str, ...]) -> str:
    names = {diagnosis.code: diagnosis.name for diagnosis in all_diagnoses()}
    return ", ".join(f"{code} {names[code]}" for code in codes)
