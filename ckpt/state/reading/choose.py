"""Choose units and batch: the request, checked against what can be read. Refusals name the remedy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from ckpt.advice import Option, Words, join, plain, words
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.state.ranges import Ranges
from ckpt.errors import CkptError, UsageError
from ckpt.model import DamageKind, Provider
from ckpt.settings import COMPRESSION_CODEC
from ckpt.state.book import BOOK
from ckpt.state.reading.stated_schemas import StatedStore
from ckpt.state.reading.units import StateUnit, UnitKind, only_a_start_gets_round, state_units
from ckpt.texts import ranges


class StateDamaged(CkptError):
    """State that was asked for cannot be loaded; the text has what inspect found, and what can be read instead."""


class Part(TypedDict, total=False):
    """The requested part of the state, as ``state_units`` has it; nothing is needed where there is only one."""

    operator: int | None  # the id of a stateful operator
    store: str | None  # a store of a join, as Spark keeps it
    side: str | None  # a side of a join: left or right
    variable: str | None  # a variable of transformWithState
    timers: bool  # the timers of transformWithState
    schema: str | None  # a file with the schemas of state that keeps none (Spark before 3.1)


@dataclass(frozen=True, slots=True)
class RequestedPart:
    """A ``Part`` that was asked for; None and False leave a choice open."""

    operator: int | None = None
    store: str | None = None
    side: str | None = None
    variable: str | None = None
    timers: bool = False
    schema: str | tuple[StatedStore, ...] | None = None  # a file, and what it says once it is read

    def fits(self, unit: StateUnit) -> bool:
        """Tell whether a unit is among what was asked for."""
        if self.store is None:
            kind_fits = not unit.shown_elsewhere
        else:
            kind_fits = unit.kind is not UnitKind.SIDE and self.store in unit.stores
        return (
            kind_fits
            and self.operator in (None, unit.operator)
            and self.side in (None, unit.side)
            and self.variable in (None, unit.variable)
            and (not self.timers or unit.kind is UnitKind.TIMERS)
        )


def choose_units(
    checkpoint: Checkpoint, wanted: RequestedPart, *, all_of_them: bool | None = None
) -> tuple[StateUnit, ...]:
    """The units that were asked for: exactly one, unless all are; None where the caller cannot take all.

    Raises UsageError, naming those there are.
    """
    units = state_units(checkpoint)
    if not units:
        name = "read_no_state" if checkpoint.commits.ids else "read_no_state_yet"
        raise CkptError(BOOK.text(name, uri=checkpoint.uri))
    chosen = tuple(unit for unit in units if wanted.fits(unit))
    if not chosen:
        raise UsageError.of("{uri}: {why}", uri=checkpoint.uri, why=_explain_no_such_part(wanted, units))
    if len(chosen) > 1 and not all_of_them:
        or_all = Words() if all_of_them is None else words("; or {--all-units=True}")
        parts = {"uri": checkpoint.uri, "listed": _list_units(chosen), "or_all": or_all}
        raise UsageError.of("{uri}: choose one: {listed}{or_all}", **parts)
    return chosen


def check_operators(checkpoint: Checkpoint) -> None:
    """Raise StateDamaged where the folder of an operator is lost, so that the others are not all."""
    damages = checkpoint.state.damages if checkpoint.state else ()
    for lost in damages:
        if lost.kind is DamageKind.MISSING_STATE and lost.operator is not None:
            operators = sorted({unit.operator for unit in state_units(checkpoint)})
            left = join((Option("operator", operator) for operator in operators), ", ")
            parts = {"lost": lost.path, "detail": lost.detail, "left": left}
            raise StateDamaged(BOOK.text("read_not_all", uri=checkpoint.uri, **parts))


def _explain_no_such_part(wanted: RequestedPart, units: Sequence[StateUnit]) -> Words:
    within = [unit for unit in units if wanted.operator in (None, unit.operator)]
    stores = [store for unit in within if unit.kind is not UnitKind.SIDE for store in unit.stores]
    for name, value, there in (
        ("operator", wanted.operator, [unit.operator for unit in units]),
        ("store", wanted.store, stores),
        ("side", wanted.side, [unit.side for unit in within]),
        ("variable", wanted.variable, [unit.variable for unit in within]),
    ):
        known = list(dict.fromkeys(known_value for known_value in there if known_value is not None))
        if value is not None and value not in known and known:
            others = join((Option(name, known_value) for known_value in known), ", ")
            return words("there is no {wanted}; available: {others}", wanted=Option(name, value), others=others)
    return words("it has no such state; available: {others}", others=_list_units(within))


def arguments_for(unit: StateUnit) -> Words:
    """The arguments that pick a unit."""
    picks = [Option("operator", unit.operator)]
    match unit.kind:
        case UnitKind.SIDE:
            picks.append(Option("side", unit.side))
        case UnitKind.STORE:
            picks.append(Option("store", unit.stores[0]))
        case UnitKind.TIMERS:
            picks.append(Option("timers", True))
        case _ if unit.variable is not None:
            picks.append(Option("variable", unit.variable))
    return join(picks)


def _list_units(units: Iterable[StateUnit]) -> Words:
    return join((arguments_for(unit) for unit in units if not unit.shown_elsewhere), ", ")


def choose_batch(
    checkpoint: Checkpoint,
    units: Sequence[StateUnit],
    batch: int | None,
    *,
    damaged: bool = False,
    only_count: bool = False,
) -> int:
    """The batch whose state is to be read: the one asked for, or the newest committed.

    ``damaged``: what is missing or damaged is known, and left out. ``only_count``: no row is decoded.

    Raises StateDamaged where files of that state are missing or damaged, UsageError for a batch that is not there.
    """
    newest = checkpoint.commits.latest
    if newest is None and checkpoint.state and checkpoint.state.needed_version:
        newest = checkpoint.state.needed_version - 1  # Spark 2.1 kept no commits, and finished it before it planned on
    if newest is None:
        raise CkptError(f"{checkpoint.uri}: no batch is committed yet, so there is no state to read")
    chosen = newest if batch is None else batch
    for unit in units:
        if not unit.described and not (only_count and unit.provider is Provider.HDFS):
            raise StateDamaged(_explain_no_schema(checkpoint, unit))
        if damaged:
            continue
        broken = _is_broken(checkpoint, unit, chosen)
        readable = unit.readable_batches
        if not broken and any(first <= chosen <= last for first, last in readable):
            continue
        if broken:
            readable = tuple((first, min(last, chosen - 1)) for first, last in readable if first < chosen)
        offer = _offer(unit, readable)
        if batch is not None and not broken:
            raise UsageError(plain(f"{checkpoint.uri}: there is no batch {chosen} to read; ") + offer)
        worst = _describe_finding(checkpoint, unit, chosen)
        unreadable = plain(f"{checkpoint.uri}: the state of batch {chosen} cannot be read: {worst}; ")
        raise StateDamaged(unreadable + offer + _explain_no_files(checkpoint))
    return chosen


def _explain_no_files(checkpoint: Checkpoint) -> str:
    """Say how a new query may have no state file at all; empty where it has any."""
    versions = (partition.newest_version for _, store in checkpoint.stores() for partition in store.partitions)
    if any(version is not None for version in versions):
        return ""
    return (
        ". If this is the first start of a new query, its sink already had these batch ids from another query, and "
        "skipped them, so Spark computed no state: start it once into noop, with a new checkpoint, or, if it "
        "writes files, into a new output folder"
    )


def _is_broken(checkpoint: Checkpoint, unit: StateUnit, batch: int) -> bool:
    """Tell whether the state of a batch is what the next start loads, and would not load."""
    state = checkpoint.state
    if state is None or state.needed_version != batch + 1:
        return False
    serious = (damage for damage in unit.damages if damage.kind not in _HARMLESS)
    return any(not damage.fallback or only_a_start_gets_round(damage) for damage in serious)


_HARMLESS = (DamageKind.ODD_END, DamageKind.BLOCKED, DamageKind.VERSION_1)  # a load gets round them


def _offer(unit: StateUnit, readable: Ranges) -> Words:
    if not readable:
        return words("{unit}: no batch can be read", unit=unit.label)
    newest, batches = readable[-1][1], ranges(readable, len(readable))
    return words("{unit}: batches {batches} can be read: {--batch=}", unit=unit.label, batches=batches, batch=newest)


def _describe_finding(checkpoint: Checkpoint, unit: StateUnit, batch: int) -> str:
    """Return inspect's worst finding about the files of a unit, or else the damage itself."""
    from ckpt.inspection.inspection import inspect  # not at the top: whoever reads intact state judges no start

    paths = {*(damage.path for damage in unit.damages), f"commits/{batch}"}
    troubles = sorted(inspect(checkpoint).troubles, key=lambda j: (j.finding.path not in paths, -j.severity.rank))
    for evidence in (judged.finding for judged in troubles):
        if evidence.path in {*paths, "state"} or evidence.path.startswith(f"state/{unit.operator}/"):
            return f"{evidence.diagnosis.code} {evidence.diagnosis.name}, {evidence.path}: {evidence.detail}"
    return next((f"{damage.path}: {damage.detail}" for damage in unit.damages), "some of its files are missing")


def _explain_no_schema(checkpoint: Checkpoint, unit: StateUnit) -> Words:
    for file in checkpoint.state.unreadable if checkpoint.state else ():
        if file.path.startswith(f"state/{unit.operator}/"):
            return plain(f"{checkpoint.uri}: {unit.label}: {file.path} cannot be read ({file.reason}): {_PUT_BACK}")
    where = f"state/{unit.operator}/" + ("_stateSchema" if unit.variable or unit.kind is UnitKind.TIMERS else "0/")
    parts = {"uri": checkpoint.uri, "unit": unit.label, "where": where, "put_back": _PUT_BACK}
    old = COMPRESSION_CODEC not in checkpoint.conf  # which Spark records since 3.1, as it writes schemas
    text = BOOK.text("read_never_had_schema" if old else "read_no_schema", **parts)
    return text + BOOK.text("read_only_count") if unit.provider is Provider.HDFS else text


_PUT_BACK = "restore it from a copy of the checkpoint"
