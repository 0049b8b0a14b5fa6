"""A change to real-time mode: as a page, and as the JSON document of the contract."""

from collections.abc import Iterator
from typing import Annotated

from ckpt.inspection.next_steps import NextStep, RowCost
from ckpt.migrate.provider import Advice
from ckpt.migrate.real_time import NEEDS, RealTimeMove, RealTimeOutcome
from ckpt.texts import quote_path

from ..arguments import as_options
from .blocks import Block, Command, Heading, Headline, Item, Next, Page, Tone, bullets, page_of, show_warnings
from .document import DocumentKeys
from .inspection import CheckpointKeys, RestartKeys
from .keys import ForPeople, of
from .page import forecast_cases, show_title
from .reports import Exit, Report

_EXITS = {
    RealTimeOutcome.ALREADY: Exit.OK,
    RealTimeOutcome.REWRITE: Exit.FOUND,
    RealTimeOutcome.COMMIT: Exit.FOUND,
    RealTimeOutcome.NO_WAY: Exit.FAILED,
    RealTimeOutcome.REFUSED: Exit.FAILED,
}


class RealTimeDocument(DocumentKeys):
    """The document of ``ckpt migrate real-time``."""

    checkpoint: Annotated[CheckpointKeys, of("inspection")]
    spark: Annotated[str, "the version that is to run the query in real-time mode"]
    outcome: RealTimeOutcome
    restart: Annotated[RestartKeys, "the next start in real-time mode, as the checkpoint is", of("forecast")]
    steps: Annotated[tuple[Advice, ...], "what to do, in order"]
    warnings: tuple[ForPeople, ...]
    refused: Annotated[str | None, lambda move: move.refused and as_options(move.refused)]


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
    reason = as_options(move.refused or "")
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
    for number, step in enumerate(move.steps, 1):
        if number == 1:
            yield Heading("How")
        yield Item(step.what, 5, f"  {number}. ")
        if step.command:
            yield Command(step.command, 5)


def _show_needs(move: RealTimeMove) -> Iterator[Block]:
    if move.steps:
        yield Heading("Needs", "real-time mode refuses the query otherwise")
        yield from bullets(NEEDS)


def _show_warnings(move: RealTimeMove) -> Iterator[Block]:
    yield from show_warnings(move.warnings)


def _show_next(move: RealTimeMove) -> Iterator[Block]:
    path = quote_path(move.inspection.checkpoint.uri)
    command = next((step.command for step in move.steps if step.command), None)
    if command is not None:
        yield Next((NextStep("stop the query, then", command, RowCost.NONE),))
    elif move.outcome is RealTimeOutcome.ALREADY:
        yield Next((), 'nothing to do; start the query with `.trigger(realTime="5 minutes")`')
    elif move.outcome is RealTimeOutcome.NO_WAY:
        yield Next((), "nothing to do; start the query in micro-batches")
    else:
        yield Next((NextStep("see what is there", f"ckpt inspect {path} --progress realtime", RowCost.NONE),))
