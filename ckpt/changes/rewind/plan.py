"""``ckpt rewind``: a query stands again as it stood after one of its batches.

A start after batch N wants ``offsets/N`` and the one before it, ``commits/N`` and state version N + 1 of every store
(``MicroBatchExecution.populateStartOffsets``); in format 2 the commit names the unique ids of that version. If the
offsets of batch N + 1 are kept, that batch runs again from the end of N, and the offsets before N are not looked for.
Otherwise they are written where they are missing: a start after a committed batch reads no row from them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce
from typing import Annotated, ClassVar

from ckpt.advice import Hole, Words, advise, call, run, words
from ckpt.changes.book import BOOK
from ckpt.changes.check_fix import check_fix, must_run_first
from ckpt.changes.plan import (
    OF_EPOCHS,
    OTHERS_REPEAT,
    SINK_DROPS,
    STOP_FIRST,
    ChangePlan,
    First,
    NoWay,
    Replay,
    name_log_problem,
    name_lost_part,
)
from ckpt.changes.rewind.files_after import find_files_after
from ckpt.changes.steps import FileStep, plan_unread_removals, plan_writing, sidecar
from ckpt.checkpoint.checkpoint import OFFSETS, SOURCES, Checkpoint, Log
from ckpt.checkpoint.history import find_uncomputed
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.file_logs import file_source_logs
from ckpt.checkpoint.sources.kafka import is_kafka
from ckpt.checkpoint.sources.registry import offsets_of, source_ranges
from ckpt.checkpoint.state.chains import Context, context_of
from ckpt.checkpoint.state.folders import StorePartition, find_store_partitions
from ckpt.checkpoint.state.ranges import Ranges, contains, intersect, ranges_of
from ckpt.checkpoint.times import BatchOrTime, find_batch
from ckpt.errors import UsageError
from ckpt.formats.offsets import format_offset_log, plan_before
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.live.sink.versions import SinkVersion
from ckpt.model import CommitLog, Fault, Kind, OffsetLog, Unreadable
from ckpt.restart.sinks import REUSED, AnySink, Ids, InSink, Seen, list_sinks
from ckpt.storage import Storage
from ckpt.texts import instant, ranges


@dataclass(frozen=True, slots=True)
class Again:
    """The batches that run again after ``kept``, the last one that counts, and how sinks treat them."""

    kept: int
    newest: int  # that the logs have
    same: bool  # the batch after ``kept`` runs over its old range
    committed: bool  # that batch was committed, so that its sink has its rows, if it was computed
    stateful: bool
    computed: bool | None = True  # False: it seems never to have been; None: perhaps in part

    @property
    def first(self) -> First:
        """The step that comes before the usual start."""
        if self.loses:
            return First.SINK
        if not self.stateful or self.newest == self.kept:
            return First.NOTHING
        if self.computed is False:
            return First.NOTHING
        return First.NOOP if self.committed and self.computed else First.NOOP_IF_WRITTEN

    @property
    def loses(self) -> bool:
        """Tell whether ids are used again with other rows: a sink that remembers them drops those rows."""
        return self.newest > (self.kept + 1 if self.same else self.kept)

    @property
    def repeats(self) -> bool:
        """Tell whether rows are read again that an unchanged start would not read."""
        return self.loses or (self.newest > self.kept and self.committed)


def rewind_warnings(checkpoint: Checkpoint, again: Again, *, cut: bool) -> Iterator[Words]:
    """Return the warnings of a rewind; ``cut``: entries of file source logs go too."""
    yield BOOK.text("end_first") if checkpoint.stateful else STOP_FIRST
    if again.repeats:  # sources may have deleted rows since: Kafka by retention, Delta by log and vacuum, files by hand
        log = checkpoint.offsets.newest
        of_kafka = log is not None and any(map(is_kafka, offsets_of(log)))
        kept = words("The sources must still have all rows that are read again.")
        yield BOOK.text("must_be_in_kafka") if of_kafka else kept
    logs = file_source_logs(checkpoint.listing, checkpoint.offsets.newest)
    if again.loses and logs and not cut:
        yield BOOK.text("source_log_kept")


def _describe_sinks(checkpoint: Checkpoint, again: Again) -> AnySink | None:
    """Describe what sinks make of the batches that run again.

    That a sink which has a batch never computes its state was measured on Spark 4.2.0 with Delta 4.4.0;
    ``FileStreamSink.addBatch`` does likewise.
    """
    first, named = again.kept + 1, name_sink(checkpoint)
    as_usual = BOOK.text("rewound_never_computed", first=first) if again.computed is False else None
    if again.loses:
        kinds = list_sinks(Ids.REUSED, Seen(first, again.newest))
        text = BOOK.text("one_keeps_its_range", first=first) if again.same else REUSED
        return AnySink(text, Ids.REUSED, as_usual, kinds, named)
    text, kinds = BOOK.text("old_range", first=first), list_sinks(Ids.SAME)
    if as_usual is not None:
        text, kinds = BOOK.text("never_computed", first=first), show_batch(checkpoint, first, kinds)
        return AnySink(text, Ids.SAME, as_usual, kinds, named)
    if again.first is First.NOTHING:
        return AnySink(text, Ids.SAME, kinds=kinds, named=named) if again.repeats else None
    start = BOOK.text(f"rewound_{again.first if again.computed else 'in-part'}", first=first)
    kinds = kinds if again.first is First.NOOP else show_batch(checkpoint, first, kinds)
    return AnySink(text, Ids.SAME, start, kinds, named)


def show_batch(checkpoint: Checkpoint, batch: int, kinds: tuple[InSink, ...]) -> tuple[InSink, ...]:
    """Add where each kind of sink that remembers batches shows that it has one."""
    entry = checkpoint.offsets.readable(batch)
    planned = f" ({instant(entry.metadata.timestamp_ms)})" if entry is not None and entry.metadata is not None else ""
    parts = {"batch": str(batch), "query": checkpoint.query_id or "the query's id", "planned": planned}
    shown = ("delta", "iceberg", "file")
    return tuple(
        replace(each, says=BOOK.text(f"shown_by_{each.kind}", says=each.says, **parts)) if each.kind in shown else each
        for each in kinds
    )


def name_sink(checkpoint: Checkpoint) -> str:
    """Name the sink of the commit log; empty if that names none."""
    commit = checkpoint.commits.newest
    names = {(sink.provider or sink.name).rpartition(".")[2].rstrip("$") for sink in commit.sinks} if commit else set()
    return ", ".join(sorted(names))


class Replayed(StrEnum):
    """How the next start treats the batch after the rewind's target."""

    SAME = "same"  # runs it again over its old range
    NEW = "new"  # gives it a new range, with the data and limits of that time


def name_missing_part(checkpoint: Checkpoint, batch: int, replayed: Replayed) -> str | None:
    """Name what the logs lack for a query to stand as after ``batch``; None if nothing.

    The offsets before it are written, where a start looks for them and cannot read them (``write_predecessor``).
    """
    offsets, commits = checkpoint.offsets, checkpoint.commits
    if offsets.latest is not None and batch > offsets.latest:
        return f"batch {batch} was never planned: the latest is {offsets.latest}"
    wanted: list[tuple[Log[OffsetLog] | Log[CommitLog], int]] = [(offsets, batch), (commits, batch)]
    if batch < 0 and (uncomputed := find_uncomputed(checkpoint)) is not None and uncomputed.first == 0:
        wanted = []
    if keeps_planned(checkpoint, batch, replayed):
        wanted.append((offsets, batch + 1))
    elif isinstance(before := offsets.entries.get(batch - 1), Unreadable) and before.fault is Fault.TOO_LARGE:
        wanted.append((offsets, batch - 1))
    problems = (problem for log, i in wanted if (problem := name_log_problem(log, i)) is not None)
    return next(problems, None) or name_lost_part(checkpoint, max(i for log, i in wanted))


def keeps_planned(checkpoint: Checkpoint, batch: int, replayed: Replayed) -> bool:
    """Tell whether the offsets of the batch after ``batch`` stay."""
    latest = checkpoint.offsets.latest
    return replayed is Replayed.SAME and latest is not None and batch < latest


def list_possible_targets(checkpoint: Checkpoint, replayed: Replayed) -> Ranges:
    """The batches that can be gone back to; of state files only the names are looked at, unless every byte was read."""
    latest, commits = context_of(checkpoint.offsets, checkpoint.commits), checkpoint.commits
    stores = [store for store in find_store_partitions(checkpoint.listing, latest.provider) if store.names.all]
    for _, described in checkpoint.stores():
        expected = described.expected_partitions or 0  # a recorded number, perhaps a damaged one
        if sum(number < expected for number in {partition.partition for partition in described.partitions}) < expected:
            return ()
    names = [*stores[0].names.logs, *stores[0].names.snapshots] if stores else []
    in_format_2 = any(unique_id is not None for _, unique_id in names)
    possible = []
    for batch in commits.ids:
        commit = commits.readable(batch)
        ids = commit.state_unique_ids if commit and commit.state_unique_ids else {}
        context = replace(latest, needed_version=batch + 1, unique_ids=ids)
        is_there = name_missing_part(checkpoint, batch, replayed) is None and (ids or not in_format_2)
        if is_there and all(_can_load(store, context) for store in stores):
            possible.append(batch)
    deep = checkpoint.state is not None and checkpoint.state.every_byte is not None
    loadable = (store.readable_batches for _, store in checkpoint.stores() if deep)
    return reduce(intersect, loadable, ranges_of(possible))


def _can_load(store: StorePartition, context: Context) -> bool:
    """Tell whether a version of a store is there, as far as a start loads it."""
    count = context.shuffle_partitions
    if count is not None and store.partition >= count:
        return True
    target = context.target(store)
    if target is None:
        return False
    if target.unique_id is not None:
        this = (target.version, target.unique_id)
        return this in store.names.logs or this in store.names.snapshots
    return any(first <= target.version <= last for first, last in store.names.versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindPlan(ChangePlan):
    """The files that go so that the query stands as after a batch."""

    command: ClassVar[str] = "rewind"

    to_batch: Annotated[int | None, "the last batch that is kept; null after an undo"] = None
    replayed: Annotated[Replayed, "as `--replay`"] = Replayed.SAME
    possible: Ranges = ()  # batches that can be gone back to, judging by the names of state files
    again: Again | None = None  # what runs again; None where there is no plan
    point: Annotated[str | None, "with `--from`: the point that the checkpoint becomes; null: none is needed"] = None
    folder: str | None = None  # the folder of that point
    table: SinkVersion | None = None  # to which the sink goes back too; None: no version was named
    restores: Annotated[bool, "as `--restore-sink`, if needed"] = False


def plan_rewind(
    storage: Storage,
    to_batch: BatchOrTime | None,
    replayed: Replayed = Replayed.SAME,
    inspection: Inspection | None = None,
    others: Sequence[FileStep] = (),
) -> RewindPlan:
    """Plan a rewind, as ``rewind`` does; of state no more than a start loads is read.

    ``inspection`` is of the checkpoint with its complete logs, where it was read already; ``others`` are steps that
    belong to it. Raises NotACheckpoint, NotFound, StorageError, or UsageError where no batch is named.
    """
    inspection = inspection or inspect(read_checkpoint(storage, batches=0))
    checkpoint = inspection.checkpoint
    batches, to_batch = list_possible_targets(checkpoint, replayed), find_batch(checkpoint, to_batch)
    if to_batch is None:
        raise UsageError.of("name the last batch to keep with {--to-batch}: {choices}", choices=_spell_batches(batches))
    plan = RewindPlan(inspection=inspection, needed=True, to_batch=to_batch, replayed=replayed, possible=batches)
    if checkpoint.kind is Kind.CONTINUOUS:
        return replace(plan, possible=(), refused=OF_EPOCHS)
    problem = name_missing_part(checkpoint, to_batch, replayed)
    if problem is not None:
        from_new_batch = contains(list_possible_targets(checkpoint, Replayed.NEW), to_batch)
        refused = words("{problem}. Batches to go back to: {names}", problem=problem, names=_spell_batches(batches))
        also = words("; with {--replay=new} also {batch}", batch=to_batch) if from_new_batch else Words()
        return _refuse(plan, refused + also)
    kept = keeps_planned(checkpoint, to_batch, replayed)
    try:
        origin = find_origin(checkpoint, to_batch)
        written = () if kept else tuple(write_predecessor(checkpoint, storage, to_batch, origin))
    except NoWay as error:
        return replace(plan, refused=str(error))
    added = f"{OFFSETS}/{to_batch - 1}" if written else None
    gone = find_files_after(checkpoint, to_batch, keep_planned=kept)
    steps = (*others, *written, *plan_unread_removals(checkpoint.listing, gone))
    if not steps:
        why = f"there is nothing after batch {to_batch}" + (" to remove" if kept else "")
        return replace(plan, needed=False, why=why)
    committed = to_batch + 1 in checkpoint.commits
    newest = max(i for i in (checkpoint.offsets.latest, checkpoint.commits.latest, to_batch) if i is not None)
    again = Again(to_batch, newest, kept, committed, bool(checkpoint.stateful), _was_computed(checkpoint, to_batch + 1))
    why = _describe_steps(checkpoint, to_batch, same=kept)
    why += f"; {added} is written because a start looks for it; nothing is read from it" if added else ""
    plan = check_steps(replace(plan, steps=steps, why=why, again=again), storage, checkpoint, again)
    if plan.refused is None:
        return plan
    possible, names = "Batches to go back to, judging by names", _spell_batches(batches)
    refused = words("{why}. {possible}: {names}", why=plan.refused, possible=possible, names=names)
    return _refuse(plan, refused)


def _refuse(plan: RewindPlan, reason: Words) -> RewindPlan:
    """Refuse a batch, and lead to the others that are listed, unless ``inspect`` has more to say."""
    if not plan.possible or not plan.inspection.sound:
        return replace(plan, refused=reason)
    replay = Replayed.NEW.value if plan.replayed is Replayed.NEW else None
    uri = plan.inspection.checkpoint.uri
    other = call("rewind", uri, to_batch=Hole.N).but(replay=replay)
    return replace(plan, refused=reason, instead=advise(run(other, words("Name one of the batches listed."))))


def check_steps(plan: RewindPlan, storage: Storage, checkpoint: Checkpoint, again: Again) -> RewindPlan:
    """Add what the steps do to rows; refuse a plan with which no start runs. ``checkpoint`` also has later offsets."""
    cut = any(step.path.startswith(f"{SOURCES}/") for step in plan.steps)
    plan = replace(
        plan,
        replay=tuple(_describe_replays(checkpoint, again)),
        warnings=tuple(rewind_warnings(checkpoint, again, cut=cut)),
        any_sink=_describe_sinks(checkpoint, again),
        skips=SINK_DROPS if again.loses else None,
        repeats=OTHERS_REPEAT if again.repeats else None,
        first=again.first,
    )
    return check_fix(plan, storage, must_run_first(again.kept + 1))


def _was_computed(checkpoint: Checkpoint, batch: int) -> bool | None:
    """Tell whether a batch was computed; None: perhaps in part, or files of its state are lost."""
    uncomputed = find_uncomputed(checkpoint)
    if uncomputed is None or not uncomputed.first <= batch <= uncomputed.last:
        return True
    return None if uncomputed.anywhere else False


def find_origin(checkpoint: Checkpoint, latest: int) -> int | None:
    """The newest earlier batch that is committed and readable, and has the same sources.

    Where the latest is committed, all earlier ones are done, whether their commit was logged or not.
    """
    offsets, commits = checkpoint.offsets, checkpoint.commits
    end = offsets.readable(latest)
    for batch_id in reversed(offsets.ids):
        log, done = offsets.readable(batch_id), batch_id in commits or latest in commits
        if batch_id < latest and done and log and end and len(log.sources) == len(end.sources):
            return batch_id
    return None


def write_predecessor(checkpoint: Checkpoint, storage: Storage, latest: int, origin: int | None) -> Iterator[FileStep]:
    """Write ``offsets/<latest - 1>`` as those of batch ``origin``, or of the latest; nothing if it can be read.

    Where the latest is committed a start only checks that they are there (``populateStartOffsets``), or has a source of
    the old interface look up the range from them to it, whose rows nobody reads. Those of a latest whose checksum is of
    other bytes get an earlier time, or it would look overwritten by them (CKPT128). Raises NoWay, StorageError.
    """
    if not latest or checkpoint.offsets.readable(latest - 1):
        return
    path, listing = f"{OFFSETS}/{latest - 1}", checkpoint.listing
    if listing.has_folder(path) or path in listing.oddities:
        raise NoWay(f"{path} is not a file, and blocks one that must be written: move it away first")
    source = f"{OFFSETS}/{latest if origin is None else origin}"
    newest = checkpoint.offsets.readable(latest)
    if origin is not None or newest is None or sidecar(source) not in checkpoint.stale_sidecars:
        yield from plan_writing(storage, listing, path, storage.read(source), source)
        return
    for step in plan_writing(storage, listing, path, format_offset_log(plan_before(newest)), source):
        yield replace(step, source=None)


def _spell_batches(batches: Ranges) -> str:
    return ranges(batches, len(batches)) or "none"


def _describe_steps(checkpoint: Checkpoint, batch: int, *, same: bool) -> str:
    what = f"files of batches after {batch}"
    if checkpoint.stateful:
        what += f", and state after version {batch + 1} (the state after batch {batch})"
    return f"{what}; the offsets of batch {batch + 1} stay" if same else what


def _describe_replays(checkpoint: Checkpoint, again: Again) -> Iterator[Replay]:
    """Describe the ranges that are read again: by the batch that keeps its range, and by those after it."""
    offsets, first = checkpoint.offsets, again.kept + 1
    if again.same:
        ranges = source_ranges(offsets.readable(again.kept), offsets.readable(first))
        yield Replay(first, ranges, finished=again.committed or again.newest > first)
    last = first if again.same else again.kept  # that keeps its range
    if again.newest > last:
        yield Replay(last + 1, source_ranges(offsets.readable(last), offsets.readable(again.newest)), finished=True)
