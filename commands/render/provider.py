"""A move to another state store provider: as a page for a tired person, and as the JSON document of the contract."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.migrate.provider import PROVIDER_NAMES, Carry, MoveOutcome, OperatorMove, ProviderMove
from ckpt.model import Provider
from ckpt.texts import quoted_path

from ..arguments import as_options
from ..exits import Exit
from .blocks import Block, Command, Heading, Headline, Item, Page, Tone, bullets, page_of
from .document import Document, ToolKeys, checkpoint_keys
from .page import title

_CARRIES = {
    Carry.AS_IT_IS: "CONTINUES in the same query",
    Carry.GOES_ON: "CONTINUES in a new query",
    Carry.STATE_ONLY: "ITS STATE CAN BE LOADED by a new query",
    Carry.NONE: "NOT POSSIBLE",
}


_EXITS = {
    MoveOutcome.ALREADY: Exit.OK,
    MoveOutcome.NOTHING: Exit.OK,
    MoveOutcome.POSSIBLE: Exit.FOUND,
    MoveOutcome.NO_WAY: Exit.FAILED,
    MoveOutcome.REFUSED: Exit.FAILED,
}


@dataclass(frozen=True, slots=True)
class ProviderReport:
    """What ``ckpt migrate provider`` says."""

    found: ProviderMove

    @property
    def exit(self) -> Exit:
        """Whether there is a way, and whether it has to be gone."""
        return _EXITS[self.found.outcome]

    def document(self) -> Document:
        """All of it."""
        return _document(self.found)

    def page(self) -> Page:
        """The answer, then why, then how or what remains."""
        parts = (_headline, _why, _operators, _how, _left, _next)
        return page_of(title(self.found.handoff.inspection), *(part(self.found) for part in parts))


def _document(found: ProviderMove) -> Document:
    return {
        "ckpt": ToolKeys(),
        "checkpoint": checkpoint_keys(found.handoff.inspection),
        "to": found.to,
        "outcome": found.outcome,
        "provider": found.provider,
        "recorded": found.recorded,
        "operators": [
            {"id": one.operator, "name": one.name, "kind": one.family, "carry": one.carry, "why": one.why}
            for one in found.operators
        ],
        "handoff": {
            "batch": found.handoff.batch,
            "exact": found.handoff.exact,
            "doubts": list(found.handoff.doubts),
        },
        "confs": dict(found.confs),
        "steps": [{"what": step.what, "command": step.command} for step in found.steps],
        "remains": [{"what": step.what, "command": step.command} for step in found.remains],
        "refused": None if found.refused is None else as_options(found.refused),
    }


def _headline(found: ProviderMove) -> Iterator[Block]:
    to, of = PROVIDER_NAMES[Provider(found.to)], PROVIDER_NAMES[found.provider or Provider.UNKNOWN]
    lost = [one for one in found.operators if one.carry is Carry.NONE]
    said, tone = {
        MoveOutcome.ALREADY: (f"ALREADY SO: its state is {to}", Tone.GOOD),
        MoveOutcome.NOTHING: ("NOTHING TO MOVE: there is no state here", Tone.GOOD),
        MoveOutcome.POSSIBLE: (
            f"POSSIBLE in a new checkpoint: ckpt writes its state for {to}, and the same query continues"
            if found.rewritable
            else f"NOT ON THIS CHECKPOINT, but a new query on {to} can be given its state",
            Tone.WARNING,
        ),
        MoveOutcome.NO_WAY: (
            f"NOT POSSIBLE for its state from {of} to {to}: {lost[0].why if lost else ''}",
            Tone.ERROR,
        ),
        MoveOutcome.REFUSED: (f"NO ANSWER: {as_options(found.refused or '')}", Tone.ERROR),
    }[found.outcome]
    yield Headline(said, tone)
    yield from bullets(found.handoff.doubts if found.outcome is MoveOutcome.POSSIBLE and not found.rewritable else ())


def _why(found: ProviderMove) -> Iterator[Block]:
    if found.provider is None or found.provider is Provider.UNKNOWN:
        return
    latest = found.handoff.inspection.checkpoint.offsets.latest
    recorded = found.recorded
    yield Heading("Provider", PROVIDER_NAMES[found.provider])
    if recorded is None:
        yield Item(f"offsets/{latest} does not record it: the files show it, and the session decides")
        return
    where = f"offsets/{latest} records {recorded.rpartition('.')[2]}"
    yield Item(f"{where}, and Spark keeps what is recorded, whatever the session says.")


def _operators(found: ProviderMove) -> Iterator[Block]:
    if found.operators:
        yield Heading("State", "operator by operator")
    for one in found.operators:
        yield Item(f"{_CARRIES[one.carry]}: {one.why}", 6, f"  {_label(one)}: ")


def _label(one: OperatorMove) -> str:
    name = f" ({one.name})" if one.name else ""
    return f"operator {one.operator}{name}" + (f", {one.family}" if one.family else "")


def _how(found: ProviderMove) -> Iterator[Block]:
    for place, step in enumerate(found.steps, 1):
        if place == 1:
            how = (
                "with a new checkpoint"
                if found.rewritable
                else "with initial state and a handoff, to its own checkpoint"
            )
            yield Heading("How", how)
        yield Item(step.what, 5, f"  {place}. ")
        if step.command:
            yield Command(step.command, 5)


def _left(found: ProviderMove) -> Iterator[Block]:
    for place, step in enumerate(found.remains):
        if place == 0:
            yield Heading("Remains", "without this state, or without this provider")
        yield Item(step.what, 4, "  - ")
        if step.command:
            yield Command(step.command, 4)


def _next(found: ProviderMove) -> Iterator[Block]:
    checkpoint = found.handoff.inspection.checkpoint
    path, clean = quoted_path(checkpoint.uri), checkpoint.offsets.latest == checkpoint.commits.latest
    command = next((step.command for step in found.steps if step.command), "")
    said, todo = {
        MoveOutcome.ALREADY: ("nothing to do", ""),
        MoveOutcome.NOTHING: ("nothing to do", ""),
        MoveOutcome.POSSIBLE: ("stop the query, then" if clean else "do step 1 first, then", command),
        MoveOutcome.NO_WAY: (
            "choose among what remains; its state as data",
            f"ckpt export-state {path} --all --to DIR",
        ),
        MoveOutcome.REFUSED: ("see what is there", f"ckpt inspect {path}"),
    }[found.outcome]
    yield Item(said, 10, "Next")
    if todo:
        yield Command(todo)
