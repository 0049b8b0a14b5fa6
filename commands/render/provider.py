"""A move to another state store provider: as a page for a tired person, and as the JSON document of the contract."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.migrate import MoveOutcome, ProviderMove, ToProvider
from ckpt.migrate.provider import Carry, OperatorMove
from ckpt.migrate.variables import Family
from ckpt.model import Provider
from ckpt.shell import quoted_path

from ..arguments import as_options
from ..exits import Exit
from .blocks import Block, Command, Heading, Headline, Item, Page, Tone, bullets, page_of
from .document import Document, checkpoint_entry, tool
from .page import title

_NAMES = {Provider.HDFS: "HDFS-backed", Provider.ROCKSDB: "RocksDB", Provider.UNKNOWN: "of an unknown provider"}
_CARRIES = {
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
        "ckpt": tool(),
        "checkpoint": checkpoint_entry(found.handoff.inspection),
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
        "steps": [{"what": what, "command": command} for what, command in _steps(found)],
        "remains": [{"what": what, "command": command} for what, command in _remains(found)],
        "refused": None if found.refused is None else as_options(found.refused),
    }


def _headline(found: ProviderMove) -> Iterator[Block]:
    to, of = _NAMES[Provider(found.to)], _NAMES[found.provider or Provider.UNKNOWN]
    lost = [one for one in found.operators if one.carry is Carry.NONE]
    said, tone = {
        MoveOutcome.ALREADY: (f"ALREADY SO: its state is {to}", Tone.GOOD),
        MoveOutcome.NOTHING: ("NOTHING TO MOVE: there is no state here", Tone.GOOD),
        MoveOutcome.POSSIBLE: (f"NOT ON THIS CHECKPOINT, but a new query on {to} can be given its state", Tone.WARNING),
        MoveOutcome.NO_WAY: (
            f"NOT POSSIBLE for its state from {of} to {to}: {lost[0].why if lost else ''}",
            Tone.ERROR,
        ),
        MoveOutcome.REFUSED: (f"NO ANSWER: {as_options(found.refused or '')}", Tone.ERROR),
    }[found.outcome]
    yield Headline(said, tone)
    yield from bullets(found.handoff.doubts if found.outcome is MoveOutcome.POSSIBLE else ())


def _why(found: ProviderMove) -> Iterator[Block]:
    if found.provider is None or found.provider is Provider.UNKNOWN:
        return
    latest = found.handoff.inspection.checkpoint.offsets.latest
    recorded = found.recorded
    yield Heading("Provider", _NAMES[found.provider])
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
    return f"operator {one.operator}{name}, {one.family}"


def _how(found: ProviderMove) -> Iterator[Block]:
    for place, (what, command) in enumerate(_steps(found), 1):
        if place == 1:
            yield Heading("How", "with initial state and a handoff, to its own checkpoint")
        yield Item(what, 5, f"  {place}. ")
        if command:
            yield Command(command, 5)


def _steps(found: ProviderMove) -> Iterator[tuple[str, str | None]]:
    """What to do, in order; only where there is a way."""
    if found.outcome is not MoveOutcome.POSSIBLE:
        return
    path = found.handoff.inspection.checkpoint.uri
    new = path.rstrip("/").rpartition("/")[2] + f"-on-{found.to}"
    settings = " ".join(f"{key}={value}" for key, value in found.confs.items())
    yield "stop the old query, with no batch left uncommitted (ckpt inspect)", None
    command = f"ckpt migrate transform-with-state {quoted_path(path)} --to {quoted_path(new)}"
    yield f"write the new query: its initial state as of batch {found.handoff.batch}, and the code", command
    yield (
        f"in {new}/processor.py write what the operator did, in {new}/start.py fill in sources, sink and a new "
        f"checkpoint; it sets {settings}",
        None,
    )
    yield "start it", f"python {quoted_path(new + '/start.py')}"
    yield "check that its checkpoint says State rocksdb: ckpt inspect NEW_CHECKPOINT", None
    yield "to go back: the old checkpoint is unchanged, start the old query again", None


def _left(found: ProviderMove) -> Iterator[Block]:
    for place, (what, command) in enumerate(_remains(found)):
        if place == 0:
            yield Heading("Remains", "without this state, or without this provider")
        yield Item(what, 4, "  - ")
        if command:
            yield Command(command, 4)


def _remains(found: ProviderMove) -> Iterator[tuple[str, str | None]]:
    """What can be done instead; only if it is not possible."""
    if found.outcome is not MoveOutcome.NO_WAY:
        return
    path = quoted_path(found.handoff.inspection.checkpoint.uri)
    settings = " ".join(f"{key}={value}" for key, value in found.confs.items())
    stays = _NAMES[found.provider or Provider.UNKNOWN]
    yield f"stay: the query continues with {stays} state in any session, without any setting", None
    alone = [one.family for one in found.operators] if len(found.operators) == 1 else []
    if Family.TRANSFORM not in alone:
        yield (
            f"start over: the same query with {settings} in the session, a new checkpoint and an empty output, its "
            "sources from their beginning. The state is rebuilt from what the sources still have; ckpt cannot see "
            "how far back that goes",
            None,
        )
    if Family.TRANSFORM not in alone and found.handoff.refused is None:
        yield (
            f"start without state after batch {found.handoff.batch}, with the same setting: counts start at zero, "
            "and open windows, sessions and waiting rows of joins are gone",
            f"ckpt handoff {path} --batch {found.handoff.batch} --snippet python",
        )
    if found.to is ToProvider.HDFS and alone and Family.JOIN not in alone:
        yield (
            "rewrite it in Scala: mapGroupsWithState and flatMapGroupsWithState take initial state on any "
            "provider. ckpt writes no such query, and whether one would give the same results is unknown",
            None,
        )


def _next(found: ProviderMove) -> Iterator[Block]:
    path = quoted_path(found.handoff.inspection.checkpoint.uri)
    command = next((command for _, command in _steps(found) if command), "")
    said, todo = {
        MoveOutcome.ALREADY: ("nothing to do", ""),
        MoveOutcome.NOTHING: ("nothing to do", ""),
        MoveOutcome.POSSIBLE: ("stop the old query, then", command),
        MoveOutcome.NO_WAY: (
            "choose among what remains; its state as data",
            f"ckpt export-state {path} --all --to DIR",
        ),
        MoveOutcome.REFUSED: ("see what is there", f"ckpt inspect {path}"),
    }[found.outcome]
    yield Item(said, 10, "Next")
    if todo:
        yield Command(todo)
