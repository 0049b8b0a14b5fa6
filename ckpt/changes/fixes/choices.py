"""The fixes of a checkpoint that will not restart, each drafted on its own; ``fixes.repair`` compares them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from functools import partial
from itertools import islice

from ckpt.changes.async_gap.plan import Strategy
from ckpt.changes.async_gap.planner import plan_repair
from ckpt.changes.check_fix import END_FIRST, MOST_TRIES
from ckpt.changes.fixes import offsets_again, read_again
from ckpt.changes.fixes.commit_again import commit_again
from ckpt.changes.fixes.tidy import Tidied
from ckpt.changes.plan import STOP_FIRST, First, NoWay, Replay
from ckpt.changes.rewind.plan import Replayed, RewindPlan, plan_rewind
from ckpt.changes.rewind.warnings import has_batch
from ckpt.changes.steps import Step, writing
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.inspection.inspection import Inspection
from ckpt.restart.forecast import SourceRange, source_ranges
from ckpt.restart.sinks import DROPS_OR_REPEATS, AboutSinks
from ckpt.storage import Storage
from ckpt.texts import span
from ckpt.versions import Spark


class WayName(StrEnum):
    """The fixes, those first that cost less where they cost alike."""

    TIDY = "tidy"  # remove or write again what blocks a start; no batch runs again
    FILL = "fill"  # write the offsets that asynchronous progress tracking left out, as `repair-async` does
    WRITE_COMMIT = "write-commit"  # write the newest commit as it was, where its checksums prove that
    WRITE_OFFSETS = "write-offsets"  # write the newest offsets as they were, where the log of a file source tells them
    RUN_AGAIN = "run-again"  # go back, and run the next batch again over its range
    READ_AGAIN = "read-again"  # a stateless query reads the rows of its newest batches again, in a new batch
    PLAN_AGAIN = "plan-again"  # go back, and plan the next batch anew


class Cost(IntEnum):
    """What a way does to rows."""

    NOTHING = 0  # none is read again
    UNFINISHED_AGAIN = 1  # those of a batch that was not finished are read again
    FINISHED_AGAIN = 2  # those of finished batches are read again
    MAY_LOSE = 3  # a sink that remembers batch ids drops some


@dataclass(frozen=True, slots=True)
class FixDraft:
    """One way, not yet checked."""

    name: WayName
    does: str  # one line
    cost: Cost
    steps: tuple[Step, ...]
    batches: int = 0  # how many run again, or are read again
    replay: tuple[Replay, ...] = ()
    warnings: tuple[str, ...] = (STOP_FIRST,)
    first: First = First.NOTHING


def tidying(checkpoint: Checkpoint, tidied: Sequence[Tidied]) -> FixDraft | None:
    """What costs no batch; None if there is nothing of it."""
    if not tidied:
        return None
    steps = tuple(step for one in tidied for step in one.steps)
    does = "; ".join(f"{one.what} ({len(one.steps)} {'file' if len(one.steps) == 1 else 'files'})" for one in tidied)
    if not any(one.of_later_batches for one in tidied):
        return FixDraft(WayName.TIDY, does, Cost.NOTHING, steps)
    latest = checkpoint.offsets.latest
    assert latest is not None  # or nothing would be later
    ranges = source_ranges(checkpoint.offsets.readable(latest), None)
    seen = AboutSinks(f"Batches after {latest} ran, and their ids are used again: {DROPS_OR_REPEATS}.")
    copied = (
        f"If a copy of the checkpoint has the offsets and commits of batches after {latest}, put these back instead: "
        "then no row is read again."
    )
    replay = Replay(latest + 1, ranges, finished=True)
    return FixDraft(WayName.TIDY, does, Cost.MAY_LOSE, steps, 1, (replay,), (END_FIRST, seen, copied), First.SINK)


Drafter = Callable[[Storage, Inspection, Sequence[Spark]], FixDraft | None]
"""Drafts a way for what was read; None where it is not for such a checkpoint. Raises NoWay, StorageError."""


def _fill(storage: Storage, found: Inspection, versions: Sequence[Spark]) -> FixDraft | None:
    plan = plan_repair(storage, Strategy.FILL, versions)
    if not plan.needed:
        return None
    if plan.refused is not None:
        raise NoWay(plan.refused.removeprefix(f"{Strategy.FILL}: "))
    replay = plan.replay or ()
    cost = Cost.FINISHED_AGAIN if any(one.finished for one in replay) else Cost.UNFINISHED_AGAIN
    return FixDraft(
        WayName.FILL, plan.why, cost if replay else Cost.NOTHING, plan.steps, len(replay), replay, plan.warnings
    )


def _write_commit(storage: Storage, found: Inspection, versions: Sequence[Spark]) -> FixDraft | None:
    known = commit_again(found.checkpoint, storage)
    if known is None:
        return None
    batch, data = known
    path = f"{COMMITS}/{batch}"
    steps = tuple(writing(storage, found.checkpoint.listing, path, data))
    return FixDraft(WayName.WRITE_COMMIT, f"{path} is written as its checksums say that it was", Cost.NOTHING, steps)


def _write_offsets(storage: Storage, found: Inspection, versions: Sequence[Spark]) -> FixDraft | None:
    checkpoint = found.checkpoint
    way = offsets_again.offsets_again(checkpoint, storage)
    if way is None:
        return None
    first, last, end = way.batches[0], way.batches[-1], way.entry + len(way.batches)
    which = f"{OFFSETS}/{first}" if first == last else f"{OFFSETS}/{first} to {OFFSETS}/{last}"
    draft = FixDraft(
        WayName.WRITE_OFFSETS,
        f"{which} as the log of the file source tells: each batch of this query reads one entry",
        Cost.NOTHING,
        tuple(offsets_again.steps(way, checkpoint, storage)),
    )
    if last in checkpoint.commits:
        return draft
    files = SourceRange(0, {"logOffset": end - 1}, {"logOffset": end})
    at = f"Batch {last} runs again over its old files, and `current_timestamp()` in it is that of batch {way.origin}."
    return replace(
        draft,
        cost=Cost.UNFINISHED_AGAIN,
        batches=1,
        replay=(Replay(last, (files,), finished=False),),
        warnings=(STOP_FIRST, at),
    )


def _read_again(storage: Storage, found: Inspection, versions: Sequence[Spark]) -> FixDraft | None:
    checkpoint = found.checkpoint
    if checkpoint.stateful:
        return None
    way = read_again.read_again(checkpoint)
    if way is None:
        raise NoWay("none of the newest finished batches has offsets that can be read")
    offsets, commits = checkpoint.offsets, checkpoint.commits
    newest = offsets.readable(way.batches[-1])
    finished = len(way.batches) > 1 or way.batches[0] in commits  # a batch is planned when the one before is finished
    again = span("batch", way.batches[0], way.batches[-1])
    return FixDraft(
        WayName.READ_AGAIN,
        f"{again} {'becomes' if len(way.batches) == 1 else 'become'} empty, and the rows after batch {way.origin} are "
        f"read again in batch {way.new}",
        Cost.FINISHED_AGAIN if finished else Cost.UNFINISHED_AGAIN,
        tuple(read_again.steps(way, checkpoint, storage)),
        len(way.batches),
        (Replay(way.new, source_ranges(offsets.readable(way.origin), newest), finished=finished),),
        (
            STOP_FIRST,
            f"No sink loses a row. Rows of {again} that are in the sink already are written again, by any sink. It has "
            f"batch {way.batches[-1]}: {has_batch(checkpoint, way.batches[-1])}.",
        ),
    )


def _back(replayed: Replayed, storage: Storage, found: Inspection, versions: Sequence[Spark]) -> FixDraft | None:
    """Go back by as few batches as there is a start after."""
    reason = "there is no batch to go back to"
    for batch in islice(_newest_first(found.checkpoint), MOST_TRIES):
        plan = plan_rewind(storage, batch, replayed, found)
        if plan.steps and plan.refused is None:
            same = plan.again is not None and plan.again.same
            return _as_draft(plan, replayed) if same is (replayed is Replayed.SAME) else None
        reason = plan.refused or plan.why
    raise NoWay(reason)


def _newest_first(checkpoint: Checkpoint) -> Iterator[int]:
    """The committed batches that were planned."""
    return (i for i in reversed(checkpoint.commits.ids) if i in checkpoint.offsets)


def _as_draft(plan: RewindPlan, replayed: Replayed) -> FixDraft:
    again = plan.again
    assert again is not None
    how = "runs again over its range" if again.same else "is planned anew"
    cost = Cost.UNFINISHED_AGAIN
    if again.repeats:
        cost = Cost.MAY_LOSE if again.loses else Cost.FINISHED_AGAIN
    return FixDraft(
        WayName.RUN_AGAIN if replayed is Replayed.SAME else WayName.PLAN_AGAIN,
        f"back to batch {again.kept}: batch {again.kept + 1} {how}",
        cost,
        plan.steps,
        again.newest - again.kept,
        plan.replay or (),
        plan.warnings,
        plan.first,
    )


DRAFTERS: dict[WayName, Drafter] = {
    WayName.FILL: _fill,
    WayName.WRITE_COMMIT: _write_commit,
    WayName.WRITE_OFFSETS: _write_offsets,
    WayName.RUN_AGAIN: partial(_back, Replayed.SAME),
    WayName.READ_AGAIN: _read_again,
    WayName.PLAN_AGAIN: partial(_back, Replayed.NEW),
}
"""Every way but to tidy up, which comes before them."""
