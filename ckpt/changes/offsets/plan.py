"""From the ends that somebody wants to a plan: what changes, what is then skipped or read again, and what Spark does.

Only the end of the latest batch L changes: the next new batch begins there. Where L is committed its range is not read
again, or (sources of the first kind) read and thrown away. Where it is not, it runs over the new range.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from ckpt.changes.check_fix import ANY_START, check_fix, find_starts
from ckpt.changes.offsets.ends import Moved, Place, moved, rule_of
from ckpt.changes.offsets.requested import RequestedEnd
from ckpt.changes.plan import END_FIRST, FINISHED_AGAIN, STOP_FIRST, ChangePlan, NoWay, Replay
from ckpt.changes.rewind.files_after import state_above
from ckpt.changes.steps import Step, unread_removals, writing
from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.checkpoint.history import Pattern, pattern, rate_sources
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.file_logs import file_source_logs
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import SourceView, in_order, source_views
from ckpt.errors import UsageError
from ckpt.formats.offsets import format_offset_log
from ckpt.inspection.inspection import inspect
from ckpt.inspection.verdict import verdict
from ckpt.model import Kind, OffsetLog, Unreadable
from ckpt.restart.forecast import Forecast, SourceRange, source_ranges
from ckpt.restart.sinks import DROPS, AboutSinks
from ckpt.storage import Storage
from ckpt.versions import Spark

Ask = Callable[[Sequence[SourceView]], Mapping[int, RequestedEnd]]
"""Which sources get which end; raises UsageError, or NoWay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsPlan(ChangePlan):
    """Other ends of the latest batch, so that the next new batch begins elsewhere."""

    command: ClassVar[str] = "offsets set"

    batch: int | None = None  # whose end is changed
    committed: bool = False
    moved: tuple[Moved, ...] = ()
    starts: tuple[Forecast, ...] = ()  # what follows, of the versions and modes that somebody may try

    @property
    def verdict_after(self) -> str:
        """What these starts come to."""
        return verdict(self.starts) if self.starts else ""

    @property
    def skipped(self) -> tuple[SourceRange, ...]:
        """Rows that the query then never reads."""
        return tuple(one for source in self.moved for one in source.ahead) if self.committed else ()


Planned = TypeVar("Planned", bound=OffsetsPlan)

# What a new end costs, by whether the batch is committed.
_SKIPS = {
    True: "rows would never be read by this query",
    False: "a sink that has seen this batch drops the rows that it now reads in addition",
}
_REPEATS = {True: FINISHED_AGAIN, False: "a sink that has seen this batch gets rows of it again in the next one"}


def plan_offsets(
    kind: type[Planned], storage: Storage, ask: Ask, batch: int | None = None, versions: Sequence[Spark] = ()
) -> Planned:
    """What setting offsets would do; nothing is written.

    Args:
        kind: The class of the plan.
        storage: The checkpoint; its complete offset and commit logs are read.
        ask: Which sources get which end.
        batch: Whose end changes, refused if that is not the latest; None is whichever is.
        versions: The Spark versions that the query may be started with; none named is all.

    Raises:
        NotACheckpoint, NotFound, StorageError: It cannot be read.
        UsageError: What is wanted is no offset of such a source.

    """
    found = inspect(read_checkpoint(storage, batches=0), versions)
    try:
        places = _places(found.checkpoint)
        changes = _changes(places, ask, batch)
    except NoWay as error:
        return kind(inspection=found, needed=True, refused=str(error))
    latest, committed = places[0].batch, places[0].committed
    plan = kind(inspection=found, needed=bool(changes), batch=latest, committed=committed)
    if not changes:
        return replace(plan, why=f"batch {latest} ends there already")
    plan = replace(plan, steps=tuple(_steps(found.checkpoint, storage, changes)))
    plan = check_fix(plan, storage, ANY_START, versions)
    if plan.inspection_after is None:
        return plan
    plan = replace(
        plan,
        moved=changes,
        replay=tuple(_read_again(found.checkpoint, changes)),
        starts=find_starts(found, plan.inspection_after),
        skips=_SKIPS[committed] if any(one.ahead for one in changes) else None,
        repeats=_REPEATS[committed] if any(one.back for one in changes) else None,
    )
    return replace(plan, warnings=tuple(_warnings(plan)))


def _changes(places: Sequence[Place], ask: Ask, batch: int | None) -> tuple[Moved, ...]:
    """The sources that get another end. Raises NoWay, or UsageError."""
    if batch not in (None, places[0].batch):
        raise NoWay(f"the latest batch is {places[0].batch}, not {batch}: look at a new plan first")
    changes = tuple(
        moved(places[index], new)
        for index, new in sorted(ask([place.view for place in places]).items())
        if new.value != places[index].view.offset or new.left_out
    )
    _must_be_one_reader_each(places, changes)
    return changes


def _places(checkpoint: Checkpoint) -> list[Place]:
    """Every source in the latest batch. Raises NoWay where nothing can be said of that."""
    offsets, latest = checkpoint.offsets, checkpoint.offsets.latest
    if checkpoint.kind is Kind.CONTINUOUS:
        raise NoWay("it was written by continuous processing, whose offsets are those of epochs")
    if latest is None:
        raise NoWay("no batch was ever planned: the query begins where its reader options say")
    log = offsets.readable(latest)
    if log is None:
        entry = offsets.entries.get(latest)
        reason = entry.reason if isinstance(entry, Unreadable) else "it is not there"
        raise NoWay(f"{OFFSETS}/{latest} cannot be read ({reason}): see ckpt inspect, and fix that first")
    if (checkpoint.commits.latest or -1) > latest:
        raise NoWay(
            f"commits/ is ahead of offsets/, which ends at batch {latest}: see ckpt inspect, and fix that first"
        )
    before = offsets.readable(latest - 1)
    begins = source_ranges(before, log)
    logs = {one.source: one.log for one in file_source_logs(checkpoint.listing, log)}
    committed = latest in checkpoint.commits
    places = []
    for place, view in enumerate(source_views(log, rate_sources(checkpoint))):
        start = begins[place].start if before is not None else checkpoint.initial_offsets.get(view.index)
        known = before is not None or (latest == 0 and (start is not None or view.type is not SourceType.KAFKA))
        places.append(Place(latest, committed, view, start, known, logs.get(view.index)))
    if not places:
        raise NoWay(f"{OFFSETS}/{latest} names no source")
    return places


def _must_be_one_reader_each(places: Sequence[Place], changes: Sequence[Moved]) -> None:
    """A reader that a query uses twice is one source with two lines, which always agree. Raises NoWay."""
    new = {one.place.index: one.new.value for one in changes}
    for one in changes:
        for other in places:
            was_equal = (other.view.offset, other.start) == (one.place.view.offset, one.place.start)
            if other is not one.place and was_equal and new.get(other.index, other.view.offset) != one.new.value:
                raise NoWay(
                    f"sources {one.place.index} and {other.index} have the same offsets: if the query uses one reader "
                    "twice, they are one source, and Spark takes one of the two ends for both. Give both the same end, "
                    "with `ckpt offsets export` and `ckpt offsets import`"
                )


def _steps(checkpoint: Checkpoint, storage: Storage, changes: Sequence[Moved]) -> Iterator[Step]:
    """State of abandoned batches goes first; the offsets change last."""
    place = changes[0].place
    listing, log = checkpoint.listing, checkpoint.offsets.readable(place.batch)
    assert log is not None
    yield from unread_removals(listing, state_above(listing, place.batch + place.committed))
    data = format_offset_log(_with_ends(log, changes))
    yield from writing(storage, listing, f"{OFFSETS}/{place.batch}", data)


def _with_ends(log: OffsetLog, changes: Sequence[Moved]) -> OffsetLog:
    ordered = in_order(log)
    new = {id(ordered[one.place.index]): one.new for one in changes}
    return replace(
        log,
        sources=tuple(
            replace(source, text=new[id(source)].text, value=new[id(source)].value) if id(source) in new else source
            for source in log.sources
        ),
    )


def _read_again(checkpoint: Checkpoint, changes: Sequence[Moved]) -> Iterator[Replay]:
    place = changes[0].place
    if place.committed:
        again = tuple(one for source in changes for one in source.back)
        if again:
            yield Replay(place.batch + 1, again, finished=True)
        return
    log, before = checkpoint.offsets.readable(place.batch), checkpoint.offsets.readable(place.batch - 1)
    assert log is not None
    yield Replay(place.batch, source_ranges(before, _with_ends(log, changes)), finished=False)


def _warnings(plan: OffsetsPlan) -> Iterator[str]:
    checkpoint = plan.inspection.checkpoint
    yield END_FIRST if checkpoint.stateful and not plan.committed else STOP_FIRST
    if plan.skipped:
        yield "Skipped rows are lost to this query. To read them anyway, read these ranges with a query of its own."
    back = any(one.back for one in plan.moved)
    if plan.committed and back:
        yield "Rows that are read again come in a new batch: every sink writes them again; upserts by key are safe."
    if plan.committed and back and checkpoint.stateful is not False:
        yield (
            "A query that keeps state counts rows that it reads again twice, except where they are late and dropped; "
            "ckpt rewind takes the state back too."
        )
    if not plan.committed:
        yield AboutSinks(
            f"Batch {plan.batch} was planned, and may have reached the sink before it failed. It runs again over the "
            f"new range: {DROPS}."
        )
    if pattern(checkpoint) is Pattern.ASYNC_PROGRESS:
        yield (
            f"Asynchronous tracking had not logged every batch: rows after the old end of batch {plan.batch} may be in "
            "the sink already."
        )
    if plan.inspection.written_by.may_read_event_hubs and any(
        one.place.view.type is SourceType.KAFKA for one in plan.moved
    ):
        yield "Offsets of Azure Event Hubs look like those of Kafka: there the numbers are sequence numbers."
    yield from dict.fromkeys(text for one in plan.moved for text in one.warnings)
    yield from _reported(plan)


def _reported(plan: OffsetsPlan) -> Iterator[str]:
    """What ``ckpt inspect`` will say of the change itself."""
    before, after = (
        {one.finding.diagnosis for one in found.troubles} if found else set()
        for found in (plan.inspection, plan.inspection_after)
    )
    names = ", ".join(sorted(f"{one.code} {one.name}" for one in after - before))
    if names:
        yield f"ckpt inspect will report this change as {names}, until enough batches have run."


def chosen(views: Sequence[SourceView], index: int | None) -> SourceView:
    """The source that was named; the only one needs no name. Raises UsageError, or NoWay for one of another type."""
    if index is None and len(views) > 1:
        raise UsageError(f"the query has {len(views)} sources: say which with `source`")
    view = next((one for one in views if one.index == (index or 0)), None)
    if view is None:
        raise UsageError(f"there is no source {index}; the query has {', '.join(str(one.index) for one in views)}")
    rule_of(view)
    return view
