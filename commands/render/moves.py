"""A move to another state store provider or to real-time mode: as a page, and as a JSON document."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated

from ckpt.advice import Code, Step, call, run, words
from ckpt.migrate.handoff.plan import Handoff
from ckpt.migrate.switches import (
    NEEDS,
    PROVIDER_NAMES,
    MoveOutcome,
    OperatorMove,
    ProviderMove,
    RealTimeMove,
    RealTimeOutcome,
    Transfer,
)
from ckpt.model import Provider

from .blocks import Block, Command, Heading, Headline, Item, Next, Page, Tone, bullets, page_of, show_warnings, spell
from .book import BOOK
from .document import DocumentKeys
from .inspection import CheckpointKeys, RestartKeys
from .keys import ForPeople, Keys, of
from .page import forecast_cases, show_title
from .reports import Exit, Report

_TONES = {Exit.OK: Tone.GOOD, Exit.FOUND: Tone.WARNING, Exit.FAILED: Tone.ERROR}


def _choose_exit(move: ProviderMove | RealTimeMove) -> Exit:
    match move.outcome.value:
        case "already" | "nothing":
            return Exit.OK
        case "no-way" | "refused":
            return Exit.FAILED
    return Exit.FOUND


class _Operator(Keys, record=OperatorMove, keys="id name kind carry why"):
    id: Annotated[int, of("operator")]
    kind: Annotated[str | None, of("family")]


class _Handoff(Keys, record=Handoff, keys="batch exact doubts"):
    doubts: tuple[ForPeople, ...]


class MigrationStepKeys(Keys):
    """A step of a way."""

    what: ForPeople
    command: Annotated[str | None, lambda step: step.line and spell(step.line)]


_KEYS = "checkpoint to outcome provider recorded operators handoff confs steps remains refused"


class ProviderDocument(DocumentKeys, record=ProviderMove, keys=_KEYS):
    """The document of ``ckpt migrate provider``."""

    checkpoint: Annotated[CheckpointKeys, of("handoff.inspection")]
    operators: tuple[_Operator, ...]
    handoff: _Handoff
    steps: tuple[MigrationStepKeys, ...]
    remains: tuple[MigrationStepKeys, ...]


def _show_move(move: ProviderMove) -> Iterator[Block]:
    to, of = PROVIDER_NAMES[Provider(move.to)], PROVIDER_NAMES[move.provider or Provider.UNKNOWN]
    lost = [operator for operator in move.operators if operator.carry is Transfer.NONE]
    name = "move_rewritable" if move.outcome is MoveOutcome.POSSIBLE and move.rewritable else f"move_{move.outcome}"
    text = BOOK.text(name, to=to, now=to.upper(), of=of, lost=lost[0].why if lost else "", why=move.refused or "")
    yield Headline(str(text), _TONES[_choose_exit(move)])
    yield from bullets(move.handoff.doubts if move.outcome is MoveOutcome.POSSIBLE and not move.rewritable else ())


def _show_why(move: ProviderMove) -> Iterator[Block]:
    if move.provider is None or move.provider is Provider.UNKNOWN:
        return
    latest = move.handoff.inspection.checkpoint.offsets.latest
    recorded = move.recorded
    yield Heading("Provider", PROVIDER_NAMES[move.provider])
    if recorded is None:
        unrecorded = f"offsets/{latest} does not record the provider"
        yield Item(f"{unrecorded}: the files show it, and the session's setting applies")
        return
    where = f"offsets/{latest} records {recorded.rpartition('.')[2]}"
    yield Item(f"{where}, and Spark keeps the recorded provider, regardless of the session.")


def _show_operators(move: ProviderMove) -> Iterator[Block]:
    if move.operators:
        yield Heading("State", "operator by operator")
    for operator in move.operators:
        yield Item(f"{BOOK.text(f'carry_{operator.carry}')}: {operator.why}", 6, f"  {_label_operator(operator)}: ")


def _label_operator(operator: OperatorMove) -> str:
    name = f" ({operator.name})" if operator.name else ""
    return f"operator {operator.operator}{name}" + (f", {operator.family}" if operator.family else "")


def _show_steps(move: ProviderMove) -> Iterator[Block]:
    if move.steps:
        same, other = "with a new checkpoint", "with initial state, a handoff and a separate checkpoint"
        yield Heading("How", same if move.rewritable else other)
    yield from list_steps(move.steps)


def list_steps(steps: Iterable[Step], bullet: str = "") -> Iterator[Block]:
    """Steps one after the other, each with its command: by number, or as what can be chosen."""
    indent = len(bullet) or 5
    for number, step in enumerate(steps, 1):
        yield Item(step.what, indent, bullet or f"  {number}. ")
        if step.line is not None:
            yield Command(step.line, indent)


def _show_remains(move: ProviderMove) -> Iterator[Block]:
    if move.remains:
        yield Heading("Alternatives", "without this state, or without this provider")
    yield from list_steps(move.remains, "  - ")


def _show_next(move: ProviderMove) -> Iterator[Block]:
    checkpoint = move.handoff.inspection.checkpoint
    match move.outcome:
        case MoveOutcome.ALREADY | MoveOutcome.NOTHING:
            yield Next((), words("Nothing to do."))
        case MoveOutcome.POSSIBLE:
            clean = checkpoint.offsets.latest == checkpoint.commits.latest
            first = words("Stop the query.") if clean or move.rewritable else words("Do step 1.")
            writing = next(step for step in move.steps if step.call is not None)
            yield Next((replace(writing, before=(first,)),))
        case MoveOutcome.NO_WAY | MoveOutcome.REFUSED:
            name = "see_what_is_there" if move.outcome is MoveOutcome.REFUSED else "state_as_data"
            yield Next(BOOK.advise(name, uri=checkpoint.uri).steps)


class ProviderReport(Report[ProviderMove]):
    """Report of ``ckpt migrate provider``."""

    keys = ProviderDocument

    @property
    def exit(self) -> Exit:
        return _choose_exit(self.record)

    def page(self) -> Page:
        parts = (_show_move, _show_why, _show_operators, _show_steps, _show_remains, _show_next)
        return page_of(show_title(self.record.handoff.inspection), *(part(self.record) for part in parts))


class RealTimeDocument(
    DocumentKeys, record=RealTimeMove, keys="checkpoint spark outcome restart steps warnings refused"
):
    """The document of ``ckpt migrate real-time``."""

    checkpoint: Annotated[CheckpointKeys, of("inspection")]
    spark: str
    restart: Annotated[RestartKeys, of("forecast")]
    steps: tuple[MigrationStepKeys, ...]
    warnings: tuple[ForPeople, ...]


def _show_start(move: RealTimeMove) -> Iterator[Block]:
    writing = next((step for step in move.steps if step.call is not None), None)
    if writing is not None:
        yield Next((replace(writing, before=(words("Stop the query."),)),))
    elif move.outcome is RealTimeOutcome.ALREADY:
        trigger = Code('.trigger(realTime="5 minutes")')
        yield Next((), words("Nothing to do; start the query with {trigger}.", trigger=trigger))
    elif move.outcome is RealTimeOutcome.NO_WAY:
        yield Next((), words("Nothing to do; start the query in micro-batch mode."))
    else:
        look = call("inspect", move.inspection.checkpoint.uri, progress="realtime")
        yield Next((run(look, words("See what the checkpoint contains.")),))


class RealTimeReport(Report[RealTimeMove]):
    """Report of ``ckpt migrate real-time``."""

    keys = RealTimeDocument

    @property
    def exit(self) -> Exit:
        return _choose_exit(self.record)

    def page(self) -> Page:
        move = self.record
        text = str(BOOK.text(f"to_real_time_{move.outcome}", why=move.refused or ""))
        head = ([Headline(text, _TONES[self.exit])], [forecast_cases([move.forecast])])
        how = [Heading("How"), *list_steps(move.steps)]
        needs = [Heading("Needs", "otherwise real-time mode refuses the query"), *bullets(NEEDS)]
        end = (show_warnings(move.warnings), _show_start(move))
        return page_of(show_title(move.inspection), *head, *((how, needs) if move.steps else ()), *end)
