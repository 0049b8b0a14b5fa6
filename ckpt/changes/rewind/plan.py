"""``ckpt rewind``: a query stands again as it stood after one of its batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from os import fspath
from typing import ClassVar, Unpack

from ckpt.changes.check_fix import check_fix, must_run_first
from ckpt.changes.plan import OTHERS_REPEAT, SINK_DROPS, ChangePlan, Replay
from ckpt.changes.rewind.files_after import find_files_after
from ckpt.changes.rewind.targets import Replayed, keeps_planned, list_possible_targets, name_missing_part
from ckpt.changes.rewind.warnings import Again, rewind_warnings
from ckpt.changes.run import ChangeResult, How, run_change
from ckpt.changes.sink import plan_with_sink
from ckpt.changes.steps import plan_unread_removals
from ckpt.checkpoint.checkpoint import SOURCES, Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.ranges import source_ranges
from ckpt.checkpoint.state.ranges import Ranges
from ckpt.errors import UsageError, parse_choice
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import Kind, Location
from ckpt.storage import Storage
from ckpt.texts import ranges

__all__ = ["Replayed", "RewindPlan", "plan_rewind", "rewind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindPlan(ChangePlan):
    """The files that go so that the query stands as after a batch."""

    command: ClassVar[str] = "rewind"

    to_batch: int | None = None  # None after an undo
    replayed: Replayed = Replayed.SAME
    possible: Ranges = ()  # batches that can be gone back to, judging by the names of state files
    again: Again | None = None  # what runs again; None where there is no plan


def rewind(
    checkpoint: Location,
    storage_options: Mapping[str, str] | None = None,
    *,
    to_batch: int | None = None,
    replay: Replayed | str = Replayed.SAME,
    sink: str | None = None,
    **how: Unpack[How],
) -> ChangeResult[RewindPlan]:
    """All that ``ckpt rewind`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        to_batch: The last batch that counts; required unless an earlier rewind is undone.
        replay: Whether the batch after it runs again over its old range (``same``), or is planned anew (``new``).
        sink: The place that the query writes to, as ``inspect`` takes it: the plan is then for that sink.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier rewind; see ``How``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.rewind("sample_checkpoints/aggregation-hdfs-4.2", to_batch=8)
    >>> plan.possible, plan.after[0].batch_id, receipt.applied
    (((0, 9),), 9, False)

    """
    uri = fspath(checkpoint)
    planner = partial(plan_rewind, to_batch=to_batch, replayed=parse_choice(Replayed, replay, "replay"))
    return run_change(RewindPlan, plan_with_sink(planner, sink, uri, storage_options), uri, storage_options, **how)


def plan_rewind(
    storage: Storage, to_batch: int | None, replayed: Replayed = Replayed.SAME, inspection: Inspection | None = None
) -> RewindPlan:
    """Plan what ``ckpt rewind`` would remove; nothing is written.

    Args:
        storage: The checkpoint; its complete offset and commit logs are read, of state no more than a start loads.
        to_batch: The last batch that counts.
        replayed: What becomes of the batch after it.
        inspection: Of the checkpoint with its complete logs, where it was read already.

    Raises:
        NotACheckpoint, NotFound, StorageError: It cannot be read.
        UsageError: No batch is named.

    """
    inspection = inspection or inspect(read_checkpoint(storage, batches=0))
    checkpoint = inspection.checkpoint
    batches = list_possible_targets(checkpoint, replayed)
    if to_batch is None:
        raise UsageError(f"name the last batch that counts with `to_batch`: {_spell_batches(batches)}")
    plan = RewindPlan(inspection=inspection, needed=True, to_batch=to_batch, replayed=replayed, possible=batches)
    problem = _refuse_rewind(checkpoint, to_batch, replayed)
    if problem is not None:
        return replace(plan, refused=f"{problem}. Batches to go back to: {_spell_batches(batches)}")
    kept = keeps_planned(checkpoint, to_batch, replayed)
    steps = tuple(plan_unread_removals(checkpoint.listing, find_files_after(checkpoint, to_batch, keep_planned=kept)))
    if not steps:
        why = f"there is nothing of a batch after {to_batch}" + (" that has to go" if kept else "")
        return replace(plan, needed=False, why=why)
    again = _find_batches_again(checkpoint, to_batch, same=kept)
    cut = any(step.path.startswith(f"{SOURCES}/") for step in steps)
    plan = replace(
        plan,
        steps=steps,
        why=_explain_nothing_to_do(checkpoint, to_batch, same=kept),
        again=again,
        replay=tuple(_describe_replays(checkpoint, again)),
        warnings=tuple(rewind_warnings(checkpoint, again, cut=cut)),
        skips=SINK_DROPS if again.loses else None,
        repeats=OTHERS_REPEAT if again.repeats else None,
        first=again.first,
    )
    plan = check_fix(plan, storage, must_run_first(to_batch + 1))
    return plan if plan.refused is None else replace(plan, refused=f"{plan.refused}; {_names_only(batches)}")


def _refuse_rewind(checkpoint: Checkpoint, batch: int, replayed: Replayed) -> str | None:
    if checkpoint.kind is Kind.CONTINUOUS:
        return "it was written by continuous processing, whose offsets are those of epochs"
    return name_missing_part(checkpoint, batch, replayed)


def _spell_batches(batches: Ranges) -> str:
    return ranges(batches, len(batches)) or "none"


def _names_only(batches: Ranges) -> str:
    return f"judging by names, batches to go back to are {_spell_batches(batches)}"


def _find_batches_again(checkpoint: Checkpoint, batch: int, *, same: bool) -> Again:
    newest = max((i for i in (checkpoint.offsets.latest, checkpoint.commits.latest) if i is not None), default=batch)
    return Again(
        batch, max(newest, batch), same, committed=batch + 1 in checkpoint.commits, stateful=bool(checkpoint.stateful)
    )


def _explain_nothing_to_do(checkpoint: Checkpoint, batch: int, *, same: bool) -> str:
    what = f"files of batches after {batch}"
    if checkpoint.stateful:
        what += f", and of state after version {batch + 1}, which is the state after batch {batch}"
    return f"{what}; the offsets of batch {batch + 1} stay" if same else what


def _describe_replays(checkpoint: Checkpoint, again: Again) -> Iterator[Replay]:
    """Describe the ranges that are read again: by the batch that keeps its range, and by those after it."""
    offsets, first = checkpoint.offsets, again.kept + 1
    newest = next((i for i in reversed(offsets.ids) if offsets.readable(i)), again.kept)
    end = offsets.readable(newest) if newest == again.newest else None
    if again.same:
        ranges = source_ranges(offsets.readable(again.kept), offsets.readable(first))
        yield Replay(first, ranges, finished=again.committed or again.newest > first)
        if again.newest > first:
            yield Replay(
                first + 1, source_ranges(offsets.readable(first), end if newest > first else None), finished=True
            )
    elif again.newest > again.kept:
        yield Replay(
            first, source_ranges(offsets.readable(again.kept), end if newest > again.kept else None), finished=True
        )
