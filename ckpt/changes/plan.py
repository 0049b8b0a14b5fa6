"""A planned change of one checkpoint, as a value: what a planner returns, also for one sink, and what is done."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, ClassVar, Self, TypeVar

from ckpt.advice import NO_ROWS, Advice, Known, RowCost, RowsEffect, Words, again, join, left_out, plain, words
from ckpt.changes.book import BOOK
from ckpt.changes.steps import FileStep, view_changed
from ckpt.checkpoint.checkpoint import FIRST_START, OFFSETS, STATE, Checkpoint, Log
from ckpt.checkpoint.history import find_renumbered_entry
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.registry import SourceRange
from ckpt.errors import one_line
from ckpt.formats.metadata import build_first_start
from ckpt.inspection.checks.sink import SinkOutcome, SinkOutlook, build_first_mark, describe_cure, foresee_sink
from ckpt.inspection.inspection import Inspection, gather_known, inspect
from ckpt.live.sink.records import SinkKind, SinkLog
from ckpt.model import CommitLog, OffsetLog, Unreadable
from ckpt.restart.findings import Asked, Forecast
from ckpt.restart.sinks import AnySink, Ids, InSink, effect
from ckpt.storage import Listing, Storage
from ckpt.texts import span
from ckpt.values import Value
from ckpt.versions import Spark

STOP_FIRST = words("Stop the query first: ckpt cannot see whether it is running (an idle query writes nothing).")


@dataclass(frozen=True, slots=True)
class ToAccept:
    """An effect of a plan on rows that the user must accept before it is applied."""

    rows: RowsEffect
    what: Words
    any_sink: bool = False  # in sinks of some kinds: once the sink is known, something else holds

    def __str__(self) -> str:
        """Return what it does to them."""
        return str(self.what)

    def __add__(self, other: "ToAccept | None") -> "ToAccept":
        """Put together what two plans, or two parts of one, do to rows."""
        return self if other is None else replace(other, what=join((self.what, other.what), "; "))


FINISHED_AGAIN = ToAccept(again(), words("rows of finished batches would be read again"))
OTHERS_REPEAT = ToAccept(again(), words("other sinks would get rows again"), any_sink=True)
SINK_REPEATS = ToAccept(again(), words("the sink would have rows twice"))
SINK_DROPS = ToAccept(effect(None, Ids.REUSED), words("a sink that remembers batch ids would drop rows"), any_sink=True)
NEVER_FINISHED = words(
    "ckpt was interrupted while it wrote this checkpoint, or changed its sources: {call:inspect} shows how to "
    "repair that"
)
"""Why nothing is done with such a checkpoint (``Checkpoint.unfinished``)."""
OF_EPOCHS = "continuous processing wrote it, and its offsets belong to epochs"
"""Why no plan is made for a checkpoint of ``Kind.CONTINUOUS``."""


class First(StrEnum):
    """A step that comes before the query is started as usual."""

    NOTHING = "nothing"
    SINK = "sink"  # a sink that remembers batch ids is told to forget some, or it drops rows
    NOOP = "noop"  # one start into the sink ``noop``: it computes state whose rows every sink has
    NOOP_IF_WRITTEN = "noop-if-written"  # the same, if the sink has the rows


class NoWay(Exception):
    """Raised where the requested change does not help with this checkpoint; the text says why, ``advice`` what does."""

    def __init__(self, text: str | Words, advice: Advice | None = None) -> None:
        super().__init__(text)
        self.words = plain(text)
        self.advice = advice

    def __str__(self) -> str:
        return str(self.words)


@dataclass(frozen=True, slots=True)
class Replay:
    """Rows that the next start reads though they may be in the sink already."""

    batch: Annotated[int, "the batch that reads them, or starts to"]
    sources: tuple[SourceRange, ...]  # the end of a range without one is unknown
    finished: Annotated[bool, "they include rows of batches that are or may be finished: `--accept-replay`"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan(Value):
    """The steps of a planned change and what they lead to; each command subclasses it with what it adds.

    A planner is a pure function from what was read to such a plan: it writes nothing.
    """

    command: ClassVar[str]  # that plans it, as it is typed after ``ckpt``
    needs_lock: ClassVar[bool] = False  # where the storage has no place for one, it is refused

    inspection: Inspection  # as it is
    needed: bool  # something is there that this command is for
    why: str = ""  # one line: why these steps, or why nothing is to be done
    steps: tuple[FileStep, ...] = ()  # empty where nothing is to be done, or can be
    inspection_after: Inspection | None = None  # with the steps
    around: tuple[str, Listing] | None = None  # folder, and its files, that the steps are in if not the checkpoint
    opened_as: str | None = None  # the URI under which Spark opens it afterwards, where that was asked for
    replay: tuple[Replay, ...] | None = None  # None: this change has nothing to do with what is read again
    warnings: tuple[Words, ...] = ()  # the first is to stop the query
    any_sink: AnySink | None = None  # what it does to rows in sinks; None where the sink is known, or gets no row again
    refused: str | Words | None = None  # why there is no plan, though one is needed
    instead: Advice | None = None  # what helps where there is none
    skips: ToAccept | None = None  # rows that are left out, or dropped by a sink: applied only with ``accept_skip``
    repeats: ToAccept | None = None  # rows that are read or written again: applied only with ``accept_replay``
    recounts: bool = False  # rows are read again whose effect stays in the state
    waits_for: Words | None = None  # what has to be done elsewhere before it is applied
    rows: RowCost = RowCost.UNKNOWN  # the effect of the steps on the rows of the query, as the fix declares it
    first: First = First.NOTHING
    sink: SinkOutlook | None = None  # what the sink that was named will do with the steps

    @property
    def name(self) -> str:
        """The call that plans it: ``repair_async``."""
        return self.command.replace(" ", "_").replace("-", "_")

    @property
    def notices(self) -> tuple[Words, ...]:
        """The warnings, with what is said of sinks after the first."""
        of_sinks = self.any_sink.texts(sink_known=self.sink is not None) if self.any_sink else ()
        texts = (*self.warnings[:1], *of_sinks, *self.warnings[1:])
        return tuple(text.fill(self._known) for text in texts)

    @property
    def in_sinks(self) -> tuple[InSink, ...]:
        """The effect on rows in each kind of sink, if the sink is unknown."""
        kinds = self.any_sink.kinds if self.any_sink else ()
        return tuple(replace(each, says=each.says.fill(self._known)) for each in kinds)

    @property
    def _known(self) -> Known:
        return gather_known(self.inspection.checkpoint, self.sink)

    @property
    def root(self) -> str:
        """The folder to which the paths of the steps are relative."""
        return self.inspection.checkpoint.uri if self.around is None else self.around[0]

    @property
    def listing(self) -> Listing:
        """The files of that folder, as they are."""
        return self.inspection.checkpoint.listing if self.around is None else self.around[1]

    @property
    def before(self) -> tuple[Forecast, ...]:
        """The forecasts as it is."""
        return self.inspection.forecasts

    @property
    def after(self) -> tuple[Forecast, ...]:
        """The forecasts with the steps, of the same versions and modes; none where nothing changes."""
        return self.inspection_after.forecasts if self.inspection_after else ()

    @property
    def verdict_after(self) -> str:
        """How synchronous starts go after the steps, as one sentence without a full stop; empty if nothing changes."""
        after = self.inspection_after
        if after is None:
            return ""
        versions = tuple(dict.fromkeys(f.spark for f in after.forecasts))
        return inspect(after.checkpoint, versions if len(versions) < len(Spark) else (), Asked.SYNC).verdict

    @property
    def sound(self) -> bool:
        """Tell whether the inspection afterwards has nothing but notes."""
        return self.inspection.sound

    @property
    def rows_effect(self) -> RowsEffect:
        """The effect on the rows of the query, once the plan is applied and the query started."""
        if self.skips is not None:
            return self.skips.rows
        return again() if self.replay or self.repeats is not None else NO_ROWS

    @property
    def unattended(self) -> bool:
        """True if a scheduler may apply it without a person: no row is touched, in no sink that was named either."""
        costs = (self.skips, self.repeats, self.replay or None)
        return self.rows is RowCost.NONE and costs == (None, None, None) and self.first is First.NOTHING

    def if_possible(self) -> Self:
        """The plan itself; refused of what ckpt never finished, and where it would write through a symbolic link."""
        if self.inspection.checkpoint.unfinished:
            return self.refusing(NEVER_FINISHED)
        links = map(self.listing.link_above, (step.path for step in self.steps))
        link = next(filter(None, links), None)
        if link is None:
            return self
        return self.refusing(BOOK.text("symbolic_link", link=one_line(link)))

    def refusing(self, reason: str | Words, instead: Advice | None = None) -> Self:
        """Return this plan without steps, with the reason, and what helps instead."""
        nothing = replace(self, why="", steps=(), inspection_after=None, opened_as=None, replay=None, warnings=())
        return replace(nothing, refused=reason, instead=instead, any_sink=None, skips=None, repeats=None)


Planned = TypeVar("Planned", bound=ChangePlan)


def name_log_problem(log: Log[OffsetLog] | Log[CommitLog], batch: int) -> str | None:
    """Why a log does not say what a batch was; None if it does."""
    if batch not in log:
        return f"{log.folder}/{batch} is missing"
    entry = log.entries.get(batch)
    return f"{log.folder}/{batch} cannot be read: {entry.reason}" if isinstance(entry, Unreadable) else None


def name_lost_part(checkpoint: Checkpoint, batch: int) -> str | None:
    """Why a query cannot stand as after a batch, by files that are lost; None if it can.

    Only later batches may show it: with these gone too, the checkpoint would look sound.
    """
    if checkpoint.stateful and not checkpoint.listing.has_folder(STATE):
        return f"{STATE}/ is missing, although the logs show that the query is stateful"
    entry = find_renumbered_entry(checkpoint, batch)
    if entry is None:
        return None
    return f"the log of a file source lost entry {entry}, which batch {batch} had read, and now has other files there"


def inspect_changed(
    storage: Storage,
    before: Inspection,
    steps: Iterable[FileStep],
    versions: Iterable[Spark] = (),
    uri: str | None = None,
    batches: int = 10,
) -> Inspection:
    """Inspect a checkpoint as some steps leave it, seen from ``uri`` where it will be opened elsewhere."""
    changed = view_changed(storage, before.checkpoint.listing, steps, uri)
    return inspect(read_checkpoint(changed, batches=batches), tuple(versions))


_NOOP = (First.NOOP, First.NOOP_IF_WRITTEN)


def adapt_to_sink(plan: Planned, log: SinkLog | None, *, other_range: bool = False) -> Planned:
    """A plan with what the sink will do once the steps are done; what is said of sinks in general is left out.

    ``log`` is what the sink remembers; None: the plan as it is. ``other_range``: the batch that runs again has other
    rows than when it was planned.
    """
    after = plan.inspection_after
    if log is None or after is None or not plan.steps:
        return plan
    sink = foresee_sink(after.checkpoint, after.counted, log)
    if other_range and sink.outcome in (SinkOutcome.PASSES_OVER, SinkOutcome.MAY_DROP) and sink.next_batch is not None:
        batch = sink.next_batch
        text = f"it has batch {batch}, and silently drops the rows of its new offsets"
        sink = replace(sink, outcome=SinkOutcome.DROPS, dropped=(batch, batch), said=text, forget_from=batch)
    plan = replace(plan, sink=sink)
    if log.keeps_no_ids:
        return _adapt_to_rows(plan, sink)
    others = None if plan.skips is not None and plan.skips.any_sink else plan.skips
    if sink.keeps_no_ids and plan.first not in _NOOP:
        return replace(_say_of_sink(plan, sink), skips=others, first=First.NOTHING)
    if not sink.certain:
        return replace(plan, warnings=(*plan.warnings, _describe_outcome(plan, sink)))
    repeats = None if plan.repeats is not None and plan.repeats.any_sink else plan.repeats
    first = First.NOOP if sink.needs_noop else First.NOTHING
    if sink.dropped is None:
        return replace(_say_of_sink(plan, sink), skips=others, repeats=repeats, first=first)
    would = "may drop" if sink.outcome is SinkOutcome.MAY_DROP else "would drop new"
    which = span("batch", *sink.dropped)
    drops = ToAccept(
        left_out(*sink.dropped, dropped_by=(log.kind,)),
        words("the sink {would} rows of {which}", would=would, which=which),
    )
    skips = drops if others is None else others + drops
    return replace(_say_of_sink(plan, sink), skips=skips, repeats=repeats, first=First.SINK)


def _adapt_to_rows(plan: Planned, sink: SinkOutlook) -> Planned:
    """Say of a plan what becomes of the rows that a sink without batch ids has, and that are written again."""
    doubles, again = sink.log.sink.doubles, sink.log.sink.again
    repeats = plan.repeats
    if repeats is not None and repeats.any_sink:
        repeats = SINK_REPEATS if doubles else None
    into_noop = plan.first is First.NOOP and doubles
    batches = [replayed.batch for replayed in plan.replay or ()]
    if into_noop and sink.next_batch is not None:
        sink = replace(sink, said=f"it has the rows of batch {sink.next_batch}, which runs again over its old offsets")
    elif batches and sink.log.kind == SinkKind.UPSERT:
        again = str(BOOK.text("recounted")) if plan.recounts else again
        sink = replace(sink, said=str(BOOK.text("upserts_again", first=min(batches), again=again)))
    elif batches and doubles:
        sink = replace(sink, said=f"batches from {min(batches)} on run again: {again}")
    unknown = plan.any_sink.first if plan.any_sink and plan.repeats and doubles else None  # whether it has the rows
    first = BOOK.text("noop_first", batch=sink.next_batch) if into_noop else unknown
    if_written = plan.first if plan.first is First.NOOP_IF_WRITTEN and unknown else First.NOTHING
    return replace(
        plan,
        sink=sink,
        any_sink=None,
        warnings=(*plan.warnings, _describe_outcome(plan, sink), *((first,) if first else ())),
        skips=None if plan.skips is not None and plan.skips.any_sink else plan.skips,
        repeats=repeats,
        first=First.NOOP if into_noop else if_written,
    )


def add_mark(plan: Planned, storage: Storage) -> Planned:
    """Mark in its first step that a plan needs one start into ``noop``, if it does. Raises StorageError."""
    after = plan.inspection_after
    mark = None if after is None else build_first_mark(after.checkpoint)
    if plan.first is not First.NOOP or after is None or mark is None:
        return plan
    listing = plan.inspection.checkpoint.listing
    was = storage.read(FIRST_START) if listing.info(FIRST_START) is not None else None
    mark_step = FileStep(FIRST_START, was, build_first_start(mark), like=f"{OFFSETS}/{mark.batch}")
    steps = tuple(step for step in (mark_step, *plan.steps) if step.before != step.after)
    tree = view_changed(storage, listing, steps).list_tree()
    versions = tuple(dict.fromkeys(f.spark for f in after.forecasts))
    left = inspect(replace(after.checkpoint, listing=tree, first_start=mark), versions)
    return replace(plan, steps=steps, inspection_after=left)


def _say_of_sink(plan: Planned, sink: SinkOutlook) -> Planned:
    """Say what the sink will do, and no more of others; rows in new batches are new to every sink."""
    general = plan.any_sink
    again = (general.said,) if general is not None and general.ids is Ids.NEW else ()
    return replace(plan, any_sink=None, warnings=(*plan.warnings, *again, _describe_outcome(plan, sink)))


def _describe_outcome(plan: ChangePlan, sink: SinkOutlook) -> Words:
    named = f"({sink.log.uri})" if sink.log.uri == sink.log.kind else sink.log.uri
    text = words("The sink {named}: {said}.", named=named, said=sink.said)
    if sink.forget_from is not None:
        cure = join(describe_cure(plan.inspection.checkpoint, sink).sentences())
        return words("{text} To lose none: {cure}", text=text, cure=cure)
    lost = (f.diagnosis.advice for f in sink.findings if sink.outcome is SinkOutcome.PASSES_OVER)
    return join((text, *(sentence for advice in lost if advice for sentence in advice.sentences())))
