"""``ckpt repair-async``: the fixes of a gap that asynchronous progress tracking leaves, and no others.

They write the missing offsets (fill), or go back to the newest two consecutive batches (rewind). L is the latest batch
with readable offsets. A synchronous start looks for the offsets of L-1 (Spark class ``MicroBatchExecution``,
``populateStartOffsets``): only whether they can be read where L is committed, and for where L begins where it is not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from os import fspath
from typing import TYPE_CHECKING, ClassVar, Unpack

from ckpt.advice import join, plain, words
from ckpt.changes.apply import ChangeResult, How, run_change
from ckpt.changes.check_fix import NO_LOST_BATCH, Cost, Draft, Drafter, find_starts, plan_first
from ckpt.changes.plan import STOP_FIRST, ChangePlan, NoWay, Replay, adapt_to_sink
from ckpt.changes.predecessor import find_origin, write_predecessor
from ckpt.changes.rewind.plan import name_sink
from ckpt.changes.steps import Step, plan_removals, sidecar
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.checkpoint.history import Pattern, pattern
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.registry import source_ranges
from ckpt.errors import parse_choice, parse_choices
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.live.sink.reader import ask_sink
from ckpt.live.sink.records import SinkLog
from ckpt.model import Kind, Location
from ckpt.restart.findings import Forecast
from ckpt.restart.remedies import pair_below
from ckpt.restart.sinks import REUSED, AnySink, Ids, Seen, list_sinks
from ckpt.storage import Storage
from ckpt.versions import Progress, Spark

if TYPE_CHECKING:
    from ckpt.changes.fixes.repair import WaysPlan


class Strategy(StrEnum):
    """How a synchronous start gets the two consecutive batches that it looks for."""

    FILL = "fill"  # write the missing one
    REWIND = "rewind"  # go back to the newest two there are
    AUTO = "auto"  # whichever reads less again


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlan(ChangePlan):
    """A repair of a gap that stops a synchronous start."""

    command: ClassVar[str] = "repair-async"

    strategy: Strategy | None = None  # fill or rewind; None where there is no plan
    reads_after: int | None = None  # the batch at whose end the next synchronous start begins to read
    repairs: "WaysPlan | None" = None  # of ``ckpt repair``, where there is no plan

    @property
    def starts_after(self) -> tuple[Forecast, ...]:
        """Synchronous starts after the repair, with the versions that somebody may try."""
        after = self.inspection_after
        starts = find_starts(self.inspection, after) if after else ()
        return tuple(f for f in starts if f.progress is Progress.SYNC)


def repair_async(
    checkpoint: Location,
    storage_options: Mapping[str, str] | None = None,
    *,
    strategy: Strategy | str = Strategy.AUTO,
    spark: Sequence[Spark | str] = (),
    sink: str | None = None,
    **how: Unpack[How],
) -> ChangeResult[RepairPlan]:
    """All that ``ckpt repair-async`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        strategy: ``fill``, ``rewind`` or ``auto``, which picks the one that reads less again.
        spark: The Spark versions that the query may be started with, as ``"4.2"``; none named is all.
        sink: The place that the query writes to, as ``inspect`` takes it: the plan is then for that sink.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier repair; see ``How``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.repair_async("sample_checkpoints/async-kafka-4.2")
    >>> [step.path for step in plan.steps], receipt.applied
    (['offsets/30', 'offsets/.30.crc'], False)

    """
    uri, wanted = fspath(checkpoint), parse_choice(Strategy, strategy, "strategy")
    sparks = parse_choices(Spark, spark, "spark")

    def plan(storage: Storage) -> RepairPlan:
        log = ask_sink(sink, uri, storage_options or {})
        planned = adapt_to_sink(plan_repair(storage, wanted, sparks, log), log)
        certain = planned.skips is not None and planned.sink is not None and planned.sink.certain
        planned = planned.refusing(f"{planned.skips}: {planned.warnings[-1]}") if certain else planned
        if planned.refused is None:
            return planned
        from ckpt.changes.fixes.repair import plan_repairs  # not at the top: it needs this module

        return replace(planned, repairs=plan_repairs(storage, versions=sparks, sink=log))

    return run_change(RepairPlan, plan, uri, storage_options, sparks, **how)


def plan_repair(
    storage: Storage,
    strategy: Strategy = Strategy.AUTO,
    versions: Sequence[Spark] = (),
    sink: SinkLog | None = None,
) -> RepairPlan:
    """Plan the repair of a gap, as ``repair_async`` does. Raises NotACheckpoint, NotFound, StorageError."""
    inspection = inspect(read_checkpoint(storage, batches=0), versions, sink=sink)
    if not has_gap(inspection.checkpoint):
        why = f"no gap stops a synchronous start, so this command cannot help; ckpt found {inspection.trouble_names}"
        why = "a synchronous start finds every offset file that it looks for" if inspection.sound else why
        return RepairPlan(inspection=inspection, needed=False, why=why)
    plans: list[RepairPlan] = []
    for name in _FIXES:
        if strategy in (name, Strategy.AUTO):
            plans.append(_plan_strategy(name, inspection, storage, versions))
            if plans[-1].steps and not plans[-1].replay:
                return plans[-1]  # nothing can read less
    possible = [plan for plan in plans if plan.refused is None]
    refusals = [plan for plan in plans if plan.refused is not None]
    if not possible:
        each = (words("{name}: {why}", name=str(plan.strategy), why=plain(plan.refused or "")) for plan in refusals)
        reason = join(each, "; ")
        return RepairPlan(inspection=inspection, needed=True, refused=reason)
    best = max(possible, key=lambda plan: (plan.skips is None, -1 if plan.reads_after is None else plan.reads_after))
    return replace(best, why="; ".join((best.why, *(f"{p.strategy} is not possible: {p.refused}" for p in refusals))))


def _plan_strategy(
    strategy: Strategy, inspection: Inspection, storage: Storage, versions: Sequence[Spark]
) -> RepairPlan:
    blank = RepairPlan(inspection=inspection, needed=True, strategy=strategy)
    try:
        planned = plan_first(_FIXES[strategy](storage, inspection), blank, storage, NO_LOST_BATCH, versions)
    except NoWay as error:
        return replace(blank, refused=str(error))
    if planned is None:
        return replace(blank, refused="there are no two consecutive batches to go back to")
    draft, plan = planned
    return replace(plan, reads_after=draft.reads_after)


def has_gap(checkpoint: Checkpoint) -> bool:
    """Tell whether a synchronous start looks for offsets that are not there, or not readable."""
    latest = checkpoint.offsets.latest
    if not latest or latest not in checkpoint.offsets or checkpoint.kind is not Kind.MICRO_BATCH:
        return False
    if checkpoint.offsets.readable(latest) is None:
        return not pair_below(checkpoint, latest)
    return checkpoint.offsets.readable(latest - 1) is None


def draft_fill(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Give the latest batch the predecessor that a synchronous start looks for.

    If that has to run, these are the offsets of the newest earlier batch that is committed and readable, so that no
    row can be skipped; if it is committed, of the newest that is readable: then nothing is read from them.
    Raises NoWay, or StorageError where a file cannot be read.
    """
    checkpoint = inspection.checkpoint
    if not has_gap(checkpoint):
        return
    offsets = checkpoint.offsets
    latest = _find_newest_readable(checkpoint)
    end = offsets.readable(latest)
    assert end is not None
    committed = latest in checkpoint.commits
    above = _has_batches_above(checkpoint, latest)
    if checkpoint.stateful and (above or not committed):
        raise NoWay(
            f"the query keeps state, and batch {latest} is not its last committed one: a run of it over other rows "
            "than before would count rows twice"
        )
    origin = find_origin(checkpoint, latest, end)
    if origin is None and not committed:
        raise NoWay(
            f"batch {latest} is not committed, and no earlier batch is both committed and readable, so its start "
            "is unknown"
        )
    begin = -1 if origin is None else origin
    between = [f"{OFFSETS}/{i}" for i in offsets.ids if begin < i < latest - 1 and not committed]
    steps = [*plan_removals(storage, checkpoint.listing, between), *_remove_above(checkpoint, storage, latest)]
    steps += write_predecessor(checkpoint, storage, latest, latest if origin is None else origin)
    replay, why = _explain_fill(checkpoint, latest, origin, above=above)
    reads_after = latest if committed else begin
    yield _build(checkpoint, why, steps, reads_after, latest, replay, reused_after=latest if above else None)


def draft_rewinds(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Go back to a pair of consecutive batches, newest pair first.

    Raises NoWay, or StorageError where a file cannot be read.
    """
    checkpoint = inspection.checkpoint
    if checkpoint.stateful:
        raise NoWay("the query keeps state, and state files of later batches would be loaded later without an error")
    offsets, logged = checkpoint.offsets, _find_newest_readable(checkpoint)
    end = None if _has_batches_above(checkpoint, logged) else offsets.readable(logged)
    for batch_id in reversed(offsets.ids):
        if not offsets.readable(batch_id) or (batch_id and not offsets.readable(batch_id - 1)):
            continue
        begin = batch_id if batch_id in checkpoint.commits else batch_id - 1
        first = batch_id + 1 if begin == batch_id else batch_id
        steps = list(_remove_above(checkpoint, storage, batch_id))
        replay = (Replay(first, source_ranges(offsets.readable(begin), end), finished=True),)
        pair = f"batches {batch_id - 1} and {batch_id} are" if batch_id else "batch 0 is"
        why = f"{pair} the newest to go back to"
        yield _build(checkpoint, why, steps, begin, logged, replay, reused_after=first - 1)


def _build(
    checkpoint: Checkpoint,
    why: str,
    steps: list[Step],
    reads_after: int,
    logged: int,
    replay: tuple[Replay, ...],
    reused_after: int | None,
) -> Draft:
    """Build the draft of a fix.

    ``logged`` is the newest batch whose offsets can be read now; ids above ``reused_after`` get other rows than before.
    """
    cost, warnings, sinks = Cost.UNFINISHED_AGAIN if replay else Cost.NOTHING, [STOP_FIRST], None
    by_design = pattern(checkpoint) is Pattern.ASYNC_PROGRESS
    if not checkpoint.stateful:
        which = "Rows" if by_design else "If the query ran with asynchronous progress tracking, rows"
        maybe = words(
            "{which} after the end of batch {logged} may be in the sink already, written by batches that asynchronous "
            "tracking had not logged. Any start reads and writes them again, under batch ids that were used before, "
            "and no log says how far they go.",
            which=which,
            logged=logged,
        )
        warnings.append(maybe)
    if any(again.finished for again in replay):
        loses = reused_after is not None and not by_design
        cost = Cost.MAY_LOSE if loses else Cost.FINISHED_AGAIN
        sinks = _describe_sinks(checkpoint, reused_after, by_design=by_design)
    return Draft(
        why,
        cost,
        tuple(steps),
        len(replay),
        replay,
        tuple(warnings),
        reads_after=reads_after,
        any_sink=sinks,
        proven=not replay and reused_after is None,
    )


def _describe_sinks(checkpoint: Checkpoint, reused_after: int | None, *, by_design: bool) -> AnySink:
    """Describe what sinks make of batches that run again: Spark allows asynchronous tracking for some sinks only."""
    seen = None
    if reused_after is not None and not by_design:
        newest = max(*checkpoint.offsets.ids[-1:], *checkpoint.commits.ids[-1:], reused_after)
        seen = Seen(reused_after + 1, newest)
    allowed = words(
        "Asynchronous tracking writes to Kafka, console, memory and noop only: they get rows again. Another sink that "
        "has these batch ids drops new rows under them."
    )
    return AnySink(
        allowed if by_design else REUSED, Ids.REUSED, kinds=list_sinks(Ids.REUSED, seen), named=name_sink(checkpoint)
    )


def _find_newest_readable(checkpoint: Checkpoint) -> int:
    for batch_id in reversed(checkpoint.offsets.ids):
        if checkpoint.offsets.readable(batch_id):
            return batch_id
    raise NoWay("no offset file can be read")


def _has_batches_above(checkpoint: Checkpoint, latest: int) -> bool:
    """Tell whether batches were planned or committed after one, so that their progress is unknown."""
    return any(ids and ids[-1] > latest for ids in (checkpoint.offsets.ids, checkpoint.commits.ids))


def _explain_fill(
    checkpoint: Checkpoint, latest: int, origin: int | None, *, above: bool
) -> tuple[tuple[Replay, ...], str]:
    """List what is read again, and say why that is the least there can be."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    replay = []
    if latest in commits:
        why = (
            f"batch {latest} is committed, so a start only checks that its predecessor exists, and reads "
            "nothing from it"
        )
    else:
        assert origin is not None
        finished = above or any(origin < i < latest for i in (*offsets.ids, *commits.ids))
        ranges = source_ranges(offsets.readable(origin), offsets.readable(latest))
        replay.append(Replay(latest, ranges, finished))
        why = (
            f"batch {latest} is not committed: it is run again from the end of batch {origin}, the last "
            "that is known to be done"
        )
    if above:
        replay.append(Replay(latest + 1, source_ranges(offsets.readable(latest), None), finished=True))
        why = f"batch {latest} is the newest whose offsets can be read; {why}"
    return tuple(replay), why


def _remove_above(checkpoint: Checkpoint, storage: Storage, batch_id: int) -> Iterator[Step]:
    """Remove everything of the logs that is in the way above a batch: newest first, the commit before the offsets.

    That includes checksum files without a file, which would stop Spark when it comes to write that file. What no start
    looks at while the latest batch is there, and would while its neighbours go, is removed before them, oldest first:
    batches planned after the last commit, which would be skipped, and commits without offsets.
    """
    listing, offsets, commits = checkpoint.listing, checkpoint.offsets, checkpoint.commits
    in_the_way: set[tuple[int, str]] = set()
    for log in (offsets, commits):
        hidden = {name[1:-4] for name in listing.in_folder(log.folder) if name[0] == "." and name.endswith(".crc")}
        ids = {*log.ids, *(int(name) for name in hidden if name.isascii() and name.isdigit())}
        in_the_way |= {(i, log.folder) for i in ids if i > batch_id}
    if batch_id not in commits and listing.info(sidecar(f"{COMMITS}/{batch_id}")):
        in_the_way.add((batch_id, COMMITS))
    aside = [(i, OFFSETS) for i in offsets.ids[:-1] if i > max((batch_id, *commits.ids[-1:]))]
    aside += [(i, COMMITS) for i in commits.ids if i > batch_id and i not in offsets]
    newest_first = sorted(in_the_way.difference(aside), key=lambda file: (-file[0], file[1] != COMMITS))
    return plan_removals(storage, listing, [f"{folder}/{above}" for above, folder in (*aside, *newest_first)])


_FIXES: Mapping[Strategy, Drafter] = {Strategy.FILL: draft_fill, Strategy.REWIND: draft_rewinds}
