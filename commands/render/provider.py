"""A move to another state store provider: as a page for a tired person, and as the JSON document of the contract."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated

from ckpt.advice import Step, words
from ckpt.migrate.handoff.plan import Handoff
from ckpt.migrate.switches import PROVIDER_NAMES, Carry, MoveOutcome, OperatorMove, ProviderMove
from ckpt.model import Provider

from .blocks import Block, Command, Heading, Headline, Item, Next, Page, Tone, bullets, page_of, spell
from .book import BOOK
from .document import DocumentKeys
from .inspection import CheckpointKeys
from .keys import ForPeople, Keys, of
from .page import show_title
from .reports import Exit, Report

_CARRIES = {
    Carry.AS_IT_IS: "CONTINUES in the same query",
    Carry.GOES_ON: "CONTINUES in a new query",
    Carry.STATE_ONLY: "ITS STATE CAN BE LOADED by a new query",
    Carry.NONE: "NOT POSSIBLE",
}
_EXITS = {MoveOutcome.POSSIBLE: Exit.FOUND, MoveOutcome.NO_WAY: Exit.FAILED, MoveOutcome.REFUSED: Exit.FAILED}


class _Operator(Keys, record=OperatorMove, keys="id name kind carry why"):
    id: Annotated[int, of("operator")]
    kind: Annotated[
        str | None, "for people; its words are not fixed; null: the same query continues, whatever it is", of("family")
    ]


class _Handoff(Keys, record=Handoff, keys="batch exact doubts"):
    batch: int | None
    doubts: Annotated[tuple[ForPeople, ...], "why rows may be read twice"]


class MigrationStepKeys(Keys):
    """A step of a way."""

    what: ForPeople
    command: Annotated[str | None, "a line of a shell", lambda step: step.line and spell(step.line)]


_KEYS = "checkpoint to outcome provider recorded operators handoff confs steps remains refused"


class ProviderDocument(DocumentKeys, record=ProviderMove, keys=_KEYS):
    """The document of ``ckpt migrate provider``."""

    checkpoint: Annotated[CheckpointKeys, of("handoff.inspection")]
    provider: Annotated[Provider | None, "of the checkpoint"]
    recorded: Annotated[str | None, "the class that the latest offsets record; no session overrides it"]
    operators: Annotated[
        tuple[_Operator, ...], "empty if it already has the provider, if there is no state, and if it cannot be read"
    ]
    handoff: Annotated[_Handoff, "of `ckpt handoff`"]
    confs: Annotated[Mapping[str, str], "object: session settings of a new query and their values, all strings"]
    steps: Annotated[tuple[MigrationStepKeys, ...], "if it is possible: what to do, in order"]
    remains: Annotated[tuple[MigrationStepKeys, ...], "if it is not: what can be done instead"]


class ProviderReport(Report[ProviderMove]):
    """Report of ``ckpt migrate provider``."""

    keys = ProviderDocument

    @property
    def exit(self) -> Exit:
        return _EXITS.get(self.record.outcome, Exit.OK)

    def page(self) -> Page:
        parts = (_show_headline, _show_why, _show_operators, _show_steps, _show_remains, _show_next)
        return page_of(show_title(self.record.handoff.inspection), *(part(self.record) for part in parts))


_TONES = {
    MoveOutcome.ALREADY: Tone.GOOD,
    MoveOutcome.NOTHING: Tone.GOOD,
    MoveOutcome.POSSIBLE: Tone.WARNING,
    MoveOutcome.NO_WAY: Tone.ERROR,
    MoveOutcome.REFUSED: Tone.ERROR,
}


def _show_headline(move: ProviderMove) -> Iterator[Block]:
    to, of = PROVIDER_NAMES[Provider(move.to)], PROVIDER_NAMES[move.provider or Provider.UNKNOWN]
    lost = [operator for operator in move.operators if operator.carry is Carry.NONE]
    name = "move_rewritable" if move.outcome is MoveOutcome.POSSIBLE and move.rewritable else f"move_{move.outcome}"
    text = BOOK.text(name, to=to, of=of, lost=lost[0].why if lost else "", why=move.refused or "")
    yield Headline(str(text), _TONES[move.outcome])
    yield from bullets(move.handoff.doubts if move.outcome is MoveOutcome.POSSIBLE and not move.rewritable else ())


def _show_why(move: ProviderMove) -> Iterator[Block]:
    if move.provider is None or move.provider is Provider.UNKNOWN:
        return
    latest = move.handoff.inspection.checkpoint.offsets.latest
    recorded = move.recorded
    yield Heading("Provider", PROVIDER_NAMES[move.provider])
    if recorded is None:
        yield Item(f"offsets/{latest} does not record it: the files show it, and the session decides")
        return
    where = f"offsets/{latest} records {recorded.rpartition('.')[2]}"
    yield Item(f"{where}, and Spark keeps what is recorded, whatever the session says.")


def _show_operators(move: ProviderMove) -> Iterator[Block]:
    if move.operators:
        yield Heading("State", "operator by operator")
    for operator in move.operators:
        yield Item(f"{_CARRIES[operator.carry]}: {operator.why}", 6, f"  {_label_operator(operator)}: ")


def _label_operator(operator: OperatorMove) -> str:
    name = f" ({operator.name})" if operator.name else ""
    return f"operator {operator.operator}{name}" + (f", {operator.family}" if operator.family else "")


def _show_steps(move: ProviderMove) -> Iterator[Block]:
    if move.steps:
        same, other = "with a new checkpoint", "with initial state and a handoff, to its own checkpoint"
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
