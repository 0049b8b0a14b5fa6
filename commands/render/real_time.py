"""A change to real-time mode: as a page, and as the JSON document of the contract."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

from ckpt.advice import Code, call, run, words
from ckpt.migrate.switches import NEEDS, RealTimeMove, RealTimeOutcome

from .blocks import Block, Heading, Headline, Next, Page, Tone, bullets, page_of, show_warnings
from .document import DocumentKeys
from .inspection import CheckpointKeys, RestartKeys
from .keys import ForPeople, of
from .page import forecast_cases, show_title
from .provider import MigrationStepKeys, list_steps
from .reports import Exit, Report

_EXITS = {
    RealTimeOutcome.ALREADY: Exit.OK,
    RealTimeOutcome.REWRITE: Exit.FOUND,
    RealTimeOutcome.COMMIT: Exit.FOUND,
    RealTimeOutcome.NO_WAY: Exit.FAILED,
    RealTimeOutcome.REFUSED: Exit.FAILED,
}


_KEYS = "checkpoint spark outcome restart steps warnings refused"


class RealTimeDocument(DocumentKeys, record=RealTimeMove, keys=_KEYS):
    """The document of ``ckpt migrate real-time``."""

    checkpoint: Annotated[CheckpointKeys, of("inspection")]
    spark: Annotated[str, "the version that is to run the query in real-time mode"]
    restart: Annotated[RestartKeys, "the next start in real-time mode, as the checkpoint is", of("forecast")]
    steps: Annotated[tuple[MigrationStepKeys, ...], "what to do, in order"]
    warnings: tuple[ForPeople, ...]


class RealTimeReport(Report[RealTimeMove]):
    """Report of ``ckpt migrate real-time``."""

    keys = RealTimeDocument

    @property
    def exit(self) -> Exit:
        return _EXITS[self.record.outcome]

    def page(self) -> Page:
        parts = (_show_headline, _show_forecast, _show_steps, _show_needs, _show_warnings, _show_next)
        return page_of(show_title(self.record.inspection), *(part(self.record) for part in parts))


def _show_headline(move: RealTimeMove) -> Iterator[Block]:
    reason = move.refused or ""
    text, tone = {
        RealTimeOutcome.ALREADY: ("READY: a start in real-time mode continues as it is", Tone.GOOD),
        RealTimeOutcome.REWRITE: ("POSSIBLE in a new checkpoint, with which the same query continues", Tone.WARNING),
        RealTimeOutcome.COMMIT: ("POSSIBLE: the newest commit needs version 2", Tone.WARNING),
        RealTimeOutcome.NO_WAY: (f"NOT POSSIBLE: {reason}", Tone.ERROR),
        RealTimeOutcome.REFUSED: (f"NO ANSWER: {reason}", Tone.ERROR),
    }[move.outcome]
    yield Headline(text, tone)


def _show_forecast(move: RealTimeMove) -> Iterator[Block]:
    yield forecast_cases([move.forecast])


def _show_steps(move: RealTimeMove) -> Iterator[Block]:
    if move.steps:
        yield Heading("How")
    yield from list_steps(move.steps)


def _show_needs(move: RealTimeMove) -> Iterator[Block]:
    if move.steps:
        yield Heading("Needs", "real-time mode refuses the query otherwise")
        yield from bullets(NEEDS)


def _show_warnings(move: RealTimeMove) -> Iterator[Block]:
    yield from show_warnings(move.warnings)


def _show_next(move: RealTimeMove) -> Iterator[Block]:
    writing = next((step for step in move.steps if step.call is not None), None)
    if writing is not None:
        yield Next((replace(writing, before=(words("Stop the query."),)),))
    elif move.outcome is RealTimeOutcome.ALREADY:
        trigger = Code('.trigger(realTime="5 minutes")')
        yield Next((), words("Nothing to do; start the query with {trigger}.", trigger=trigger))
    elif move.outcome is RealTimeOutcome.NO_WAY:
        yield Next((), words("Nothing to do; start the query in micro-batches."))
    else:
        look = call("inspect", move.inspection.checkpoint.uri, progress="realtime")
        yield Next((run(look, words("See what is there.")),))
