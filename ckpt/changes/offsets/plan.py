"""From the ends that somebody wants to a plan: what changes, what is then skipped or read again, and what Spark does.

Only the end of the latest batch L changes: the next new batch begins there. Where L is committed its range is not read
again, or (sources of the first kind) read and thrown away. Where it is not, it runs over the new range.

The rules stand with each kind of source, as measured on Spark 4.2.0. A source of Spark's second kind (V2: Kafka,
Iceberg, rate-micro-batch) is asked at a start for the range after the latest committed batch only. One of the first
kind (V1: files, Delta) is asked for the range of that batch once more, though its rows are thrown away, so that the end
of L must not be before its start.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from os import fspath
from typing import Annotated, Any, ClassVar, TypeVar, Unpack

from ckpt.advice import NO_ROWS, Advice, Call, Do, Hole, Words, advise, again, call, do, left_out, run, words
from ckpt.changes.apply import ApplyOptions, ChangeResult, run_change
from ckpt.changes.book import BOOK
from ckpt.changes.check_fix import ANY_START, check_fix, find_starts, warn_of_real_time
from ckpt.changes.plan import FINISHED_AGAIN, OF_EPOCHS, STOP_FIRST, ChangePlan, NoWay, Replay, ToAccept, adapt_to_sink
from ckpt.changes.rewind.files_after import state_above
from ckpt.changes.steps import FileStep, plan_unread_removals, plan_writing
from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.checkpoint.history import Pattern, pattern, rate_sources
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.ends import (
    BatchPlanned,
    BeforeBatch,
    CannotEndThere,
    LatestEnd,
    RequestedEnd,
    parse_json,
)
from ckpt.checkpoint.sources.file_logs import file_source_logs
from ckpt.checkpoint.sources.registry import (
    SourceRange,
    SourceView,
    in_order,
    kind_of,
    settable_kinds,
    source_ranges,
    source_views,
)
from ckpt.checkpoint.sources.starts import NOT_READ
from ckpt.errors import UsageError, parse_choices
from ckpt.formats.offsets import format_offset_log
from ckpt.inspection.inspection import inspect
from ckpt.inspection.verdict import verdict
from ckpt.live.ends import ask_end, compare_end, find_position
from ckpt.live.kind import SourceRequest, unusable_option
from ckpt.live.sink.reader import ask_sink
from ckpt.model import Json, Kind, Location, OffsetLog, Unreadable
from ckpt.restart.findings import Forecast
from ckpt.restart.sinks import AnySink, Ids, OnSinks, Seen, effect, list_sinks
from ckpt.storage import Storage
from ckpt.versions import Spark

Ask = Callable[[Checkpoint, Sequence[SourceView]], Mapping[int, RequestedEnd]]
"""A function that chooses the new end of each source; raises UsageError, or NoWay."""


@dataclass(frozen=True, slots=True)
class BatchSource:
    """A source in the latest batch."""

    view: SourceView  # at its end, as it is
    range: SourceRange  # that the batch reads
    latest: LatestEnd[Any]

    @property
    def index(self) -> int:
        """The number of the source in the query."""
        return self.view.index


@dataclass(frozen=True, slots=True)
class Moved:
    """One source with a new end."""

    source: BatchSource
    new: RequestedEnd
    ahead: tuple[SourceRange, ...] = ()  # from the old end to the new one, where that is later
    back: tuple[SourceRange, ...] = ()  # from the new end to the old one, where that is earlier
    warnings: tuple[Words, ...] = ()

    @property
    def range(self) -> SourceRange:
        """From the old end to the new one."""
        return SourceRange(self.source.index, self.source.view.offset, self.new.value)


def _move_source(source: BatchSource, new: RequestedEnd) -> Moved:
    """Say what the new end of a source leads to. Raises NoWay, CannotEndThere."""
    view, latest = source.view, source.latest
    if not latest.committed and not latest.start_known:
        why = f"the log does not say where batch {latest.batch} begins, so ckpt cannot know the effect of another end"
        raise NoWay(why)
    check_settable(view)
    moved = view.kind.move_end(latest, new)
    ahead, back = (tuple(SourceRange(view.index, *span) for span in spans) for spans in (moved.ahead, moved.back))
    return Moved(source, new, ahead, back, (*new.said, *moved.warnings))


def check_settable(view: SourceView) -> None:
    """Raise NoWay where ckpt cannot set the end of a source."""
    if view.kind.settable:
        return
    if not view.well_formed:
        raise NoWay(f"source {view.index}: {NOT_READ}")
    if view.offset is None:
        raise NoWay(f"source {view.index} has no offset yet: the query has read nothing from it")
    *kinds, last = settable_kinds()
    raise NoWay(BOOK.text("not_set", index=view.index, type=view.type, kinds=", ".join(kinds), last=last))


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsPlan(ChangePlan):
    """Other ends of the latest batch, so that the next new batch begins elsewhere."""

    command: ClassVar[str] = "offsets set"

    batch: Annotated[int | None, "the latest batch, whose end changes; null if there is no plan"] = None
    committed: bool = False
    moved: tuple[Moved, ...] = ()
    starts: tuple[Forecast, ...] = ()  # what follows, of the versions and modes that somebody may try
    asked: Call | None = None  # what was asked for, without the checkpoint

    @property
    def verdict_after(self) -> str:
        """The verdict on these starts."""
        return verdict(self.starts, not_read=bool(self.inspection.not_read)) if self.starts else ""

    @property
    def skipped(self) -> tuple[SourceRange, ...]:
        """Rows that the query then never reads."""
        return tuple(skipped for moved in self.moved for skipped in moved.ahead) if self.committed else ()


Planned = TypeVar("Planned", bound=OffsetsPlan)

# What a new end costs, by whether the batch is committed.
_SKIPS = {
    True: ToAccept(left_out(), words("rows would never be read by this query")),
    False: ToAccept(
        effect(None, Ids.REUSED),
        words("a sink that has seen this batch drops the additional rows that the batch now reads"),
    ),
}
_REPEATS = {
    True: FINISHED_AGAIN,
    False: ToAccept(again(), words("a sink that has seen this batch gets some of its rows again in the next one")),
}


def offsets_set(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    source: int | None = None,
    to: Json | datetime = None,
    only: Sequence[str] = (),
    shift: Sequence[str] = (),
    expect_batch: int | None = None,
    spark: Sequence[Spark | str] = (),
    sink: str | None = None,
    source_options: Mapping[int, Mapping[str, str]] | None = None,
    **how: Unpack[ApplyOptions],
) -> ChangeResult[OffsetsPlan]:
    """Do what ``ckpt offsets set`` does; return the plan and its receipt. Without ``apply`` or ``undo`` it only plans.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        source: The index of the source; needed if the query has several.
        to: Its new end, in the form of ``offsets_show``, or as JSON text. A Kafka partition given as null is left
            out, and read from its beginning. For Kafka, Delta, Iceberg and files also ``earliest``,
            ``latest``, or the time of the first row that is read next (without a zone UTC): the source is asked.
        only: With such a place, the topics, or partitions as ``topic/partition``, that move.
        shift: For Kafka instead of ``to``: how far partitions move, as ``topic/partition=+n`` or ``-n``.
        expect_batch: The batch whose end changes, as shown by a plan; refused if it is not the latest.
        spark: The Spark versions that the query may be started with; none named is all.
        sink: The query's sink, as for ``inspect``: the plan is then for that sink.
        source_options: Options of the readers by source, as ``inspect`` takes them: where to ask.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier change; see ``ApplyOptions``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        SourceError: The source cannot be asked.
        UsageError: A URI, offset or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.offsets_set("sample_checkpoints/kafka-4.2", shift=["orders/0=-10"])
    >>> plan.batch, plan.moved[0].new.text, str(plan.repeats), receipt.applied
    (5, '{"orders":{"0":41,"1":49}}', 'rows of finished batches would be read again', False)

    """
    uri, sparks = fspath(checkpoint), parse_choices(Spark, spark, "spark")
    if how.get("undo") is None and (to is None) != bool(shift):
        raise UsageError.of("name the start of the next batch with {--to} or {--shift}, not both")
    position = find_position(to)
    if only and position is None:
        raise UsageError.of("{--only} goes with {--to=earliest}, {--to=latest} or a time")
    value = None if isinstance(to, datetime) else to
    if isinstance(value, str) and position is None:
        value = parse_json(value, words("{--to}"))
    new = to if to is None or isinstance(to, str) else json.dumps(to, default=str)
    request = call("offsets_set").but(source=source, to=new, shift=tuple(shift) or None)

    def ask(checkpoint: Checkpoint, views: Sequence[SourceView]) -> dict[int, RequestedEnd]:
        view = choose_source(views, source)
        options = dict(source_options or {})
        asking = SourceRequest(checkpoint, view, options.pop(view.index, {}), storage_options or {})
        if options:
            raise unusable_option(BOOK.text("another_source", given=min(options), moved=view.index))
        if position is not None:
            return {view.index: ask_end(asking, position, only)}
        new = view.kind.shift_end(view.record, shift) if shift else view.kind.parse_end(value, words("{--to}"))
        return {view.index: compare_end(asking, new)}

    def plan(storage: Storage) -> OffsetsPlan:
        planned = plan_offsets(OffsetsPlan, storage, request, ask=ask, batch=expect_batch, versions=sparks)
        if planned.moved:  # what is applied is what was shown
            end = planned.moved[0].new
            where = source_options if end.ahead is not None else None  # only the source knows which is later
            to_end = {} if position is None else {"to": end.text}
            planned = replace(planned, asked=request.but(source_options=where, **to_end))
        return adapt_to_sink(planned, ask_sink(sink, uri, storage_options or {}), other_range=not planned.committed)

    return run_change(OffsetsPlan, plan, uri, storage_options, sparks, **how)


def plan_offsets(
    kind: type[Planned], storage: Storage, request: Call, ask: Ask, batch: int | None, versions: Sequence[Spark]
) -> Planned:
    """Plan to set offsets, as ``offsets_set`` does, to the ends for which ``ask`` asks; ``kind`` is the plan's class.

    ``request`` asks for the same, and names no checkpoint.

    Raises NotACheckpoint, NotFound, StorageError, or UsageError where what is wanted is no offset of such a source.
    """
    inspection = inspect(read_checkpoint(storage, batches=0), versions)
    try:
        sources = _list_sources(inspection.checkpoint)
        new = ask(inspection.checkpoint, [source.view for source in sources])
        changes = _move_sources(sources, new, batch)
    except (NoWay, CannotEndThere) as error:
        instead = _lead_on(error, storage.uri) if inspection.sound else None  # where ``inspect`` has nothing to say
        return kind(inspection=inspection, needed=True, refused=str(error), instead=instead, asked=request)
    latest, committed = sources[0].latest.batch, sources[0].latest.committed
    plan = kind(inspection=inspection, needed=bool(changes), batch=latest, committed=committed, asked=request)
    if not changes:
        remarks = (text for end in new.values() for text in end.said)
        return replace(plan, why=f"batch {latest} already ends there", warnings=tuple(remarks))
    plan = replace(plan, steps=tuple(_write_ends(inspection.checkpoint, storage, changes)))
    plan = check_fix(plan, storage, ANY_START, versions)
    if plan.inspection_after is None:
        return plan
    back = any(moved.back for moved in changes)
    plan = replace(
        plan,
        moved=changes,
        replay=tuple(_read_again(inspection.checkpoint, changes)),
        starts=find_starts(inspection, plan.inspection_after),
        skips=_SKIPS[committed] if any(moved.ahead for moved in changes) else None,
        repeats=_REPEATS[committed] if back else None,
        recounts=committed and back and inspection.checkpoint.stateful is not False,
    )
    return replace(plan, warnings=tuple(_warn(plan)), any_sink=_describe_sinks(plan))


def _lead_on(error: Exception, uri: str) -> Advice:
    """Advise what helps where the offsets cannot be set."""
    if isinstance(error, BeforeBatch):
        return advise(run(call("rewind", uri, to_batch=Hole.N), words("Go back further, with the state.")))
    if isinstance(error, BatchPlanned):
        skip = run(call("skip", uri), words("If the batch always fails, skip it: the query loses its rows."))
        return advise(do(Do.START, words("Start the query until the batch is committed."), rows=NO_ROWS).or_(skip))
    return advise(run(call("offsets_show", uri), words("See how far the query has read each source.")))


def _move_sources(
    sources: Sequence[BatchSource], new: Mapping[int, RequestedEnd], batch: int | None
) -> tuple[Moved, ...]:
    """Move the sources that get another end. Raises NoWay, CannotEndThere, or UsageError."""
    if batch not in (None, sources[0].latest.batch):
        raise NoWay(f"the latest batch is {sources[0].latest.batch}, not {batch}: check the new plan first")
    changes = tuple(
        _move_source(sources[index], end)
        for index, end in sorted(new.items())
        if end.value != sources[index].view.offset or end.left_out
    )
    _check_readers(sources, changes)
    return changes


def _list_sources(checkpoint: Checkpoint) -> list[BatchSource]:
    """List every source in the latest batch. Raises NoWay where nothing can be said of that."""
    offsets, latest = checkpoint.offsets, checkpoint.offsets.latest
    if checkpoint.kind is Kind.CONTINUOUS:
        raise NoWay(OF_EPOCHS)
    if latest is None:
        raise NoWay("no batch was ever planned: the query begins where its reader options say")
    log = offsets.readable(latest)
    if log is None:
        entry = offsets.entries.get(latest)
        reason = entry.reason if isinstance(entry, Unreadable) else "it does not exist"
        raise NoWay(f"{OFFSETS}/{latest} cannot be read ({reason}): fix that first")
    if (checkpoint.commits.latest or -1) > latest:
        raise NoWay(f"commits/ is ahead of offsets/, which ends at batch {latest}: fix that first")
    before = offsets.readable(latest - 1)
    begins = source_ranges(before, log)
    newest = {source_log.source: source_log.log.latest for source_log in file_source_logs(checkpoint.listing, log)}
    committed = latest in checkpoint.commits
    sources = []
    for number, view in enumerate(source_views(log, rate_sources(checkpoint))):
        start = begins[number].start if before is not None else checkpoint.initial_offsets.get(view.index)
        known = before is not None or (latest == 0 and (start is not None or not view.kind.logs_start))
        reads, index = SourceRange(view.index, start, view.offset), view.index
        begin = reads.start_offset if kind_of(reads.start_offset) is view.kind else None
        end = LatestEnd(latest, committed, index, view.offset, view.record, begin, known, newest.get(index))
        sources.append(BatchSource(view, reads, end))
    if not sources:
        raise NoWay(f"{OFFSETS}/{latest} names no source")
    return sources


def _check_readers(sources: Sequence[BatchSource], changes: Sequence[Moved]) -> None:
    """Refuse two ends of one reader: a query that uses it twice has two lines for it, which always agree."""
    new = {moved.source.index: moved.new.value for moved in changes}
    for moved in changes:
        source = moved.source
        for other in sources:
            equal = (other.range.start, other.range.end) == (source.range.start, source.range.end)
            if other is not source and equal and new.get(other.index, other.view.offset) != moved.new.value:
                raise NoWay(BOOK.text("same_offsets", one=source.index, other=other.index))


def _write_ends(checkpoint: Checkpoint, storage: Storage, changes: Sequence[Moved]) -> Iterator[FileStep]:
    """Remove state of abandoned batches first, and change the offsets last."""
    latest, listing = changes[0].source.latest, checkpoint.listing
    batch, log = latest.batch, checkpoint.offsets.readable(latest.batch)
    assert log is not None
    yield from plan_unread_removals(listing, state_above(listing, batch + latest.committed))
    yield from plan_writing(storage, listing, f"{OFFSETS}/{batch}", format_offset_log(_replace_ends(log, changes)))


def _replace_ends(log: OffsetLog, changes: Sequence[Moved]) -> OffsetLog:
    old = ((in_order(log)[moved.source.index], moved.new) for moved in changes)
    new = {id(source): replace(source, text=end.text, value=end.value) for source, end in old}
    return replace(log, sources=tuple(new.get(id(source), source) for source in log.sources))


def _read_again(checkpoint: Checkpoint, changes: Sequence[Moved]) -> Iterator[Replay]:
    batch = changes[0].source.latest.batch
    if changes[0].source.latest.committed:
        again = tuple(repeated for moved in changes for repeated in moved.back)
        if again:
            yield Replay(batch + 1, again, finished=True)
        return
    log, before = checkpoint.offsets.readable(batch), checkpoint.offsets.readable(batch - 1)
    assert log is not None
    yield Replay(batch, source_ranges(before, _replace_ends(log, changes)), finished=False)


def _describe_sinks(plan: OffsetsPlan) -> AnySink | None:
    if not plan.committed:
        text = BOOK.text("planned_again", batch=plan.batch)
        return AnySink(text, Ids.REUSED, kinds=list_sinks(Ids.REUSED, Seen(plan.batch or 0, plan.batch)))
    if not any(moved.back for moved in plan.moved):
        return None
    text = words("Rows that are read again come in a new batch: {sinks}.", sinks=OnSinks(Ids.NEW))
    return AnySink(text, Ids.NEW, kinds=list_sinks(Ids.NEW))


def _warn(plan: OffsetsPlan) -> Iterator[Words]:
    checkpoint = plan.inspection.checkpoint
    yield BOOK.text("end_first") if checkpoint.stateful and not plan.committed else STOP_FIRST
    if plan.skipped:
        yield BOOK.text("skipped_rows")
    if plan.recounts:
        yield BOOK.text("counted_twice")
    if pattern(checkpoint) is Pattern.ASYNC_PROGRESS:
        yield BOOK.text("async_behind", batch=plan.batch)
    if plan.inspection.written_by.may_read_event_hubs and any(
        moved.source.view.kind.like_event_hubs for moved in plan.moved
    ):
        yield words("Offsets of Azure Event Hubs look like those of Kafka, but are sequence numbers.")
    yield from dict.fromkeys(text for moved in plan.moved for text in moved.warnings)
    if plan.inspection_after is not None:
        yield from warn_of_real_time(plan.inspection_after)
    before, after = (
        {rated.finding.diagnosis for rated in inspection.troubles} if inspection else set()
        for inspection in (plan.inspection, plan.inspection_after)
    )
    names = ", ".join(sorted(f"{diagnosis.code} {diagnosis.name}" for diagnosis in after - before))
    if names:
        yield BOOK.text("will_be_reported", names=names)


def choose_source(views: Sequence[SourceView], index: int | None) -> SourceView:
    """Choose the source that was named; the only one needs no name. Raises UsageError, NoWay for another type."""
    if index is None and len(views) > 1:
        raise UsageError.of("the query has {count} sources: name one with {--source}", count=len(views))
    view = next((view for view in views if view.index == (index or 0)), None)
    if view is None:
        raise UsageError(f"there is no source {index}; the query has {', '.join(str(view.index) for view in views)}")
    check_settable(view)
    return view
