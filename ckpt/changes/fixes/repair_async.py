"""``ckpt repair-async``: the fixes of a gap that asynchronous progress tracking leaves, and no others.

They write the missing offsets (fill), or go back to the newest two consecutive batches (rewind): see ``gaps``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from os import fspath
from typing import ClassVar, Unpack

from ckpt.advice import join, plain, words
from ckpt.changes.apply import ApplyOptions, ChangeResult, run_change
from ckpt.changes.check_fix import NO_LOST_BATCH, Drafter, plan_first
from ckpt.changes.fixes.gaps import draft_fill, draft_rewinds, has_gap
from ckpt.changes.fixes.repair import RepairPlan, plan_repairs
from ckpt.changes.plan import ChangePlan, NoWay, adapt_to_sink
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.errors import parse_choice, parse_choices
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.live.sink.reader import ask_sink
from ckpt.live.sink.records import SinkLog
from ckpt.model import Location
from ckpt.storage import Storage
from ckpt.versions import Spark


class Strategy(StrEnum):
    """How a synchronous start gets the two consecutive batches that it looks for."""

    FILL = "fill"  # write the missing one
    REWIND = "rewind"  # go back to the newest two there are
    AUTO = "auto"  # whichever reads less again


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncRepairPlan(ChangePlan):
    """A repair of a gap that stops a synchronous start."""

    command: ClassVar[str] = "repair-async"

    strategy: Strategy | None = None  # fill or rewind; None where there is no plan
    reads_after: int | None = None  # the batch at whose end the next synchronous start begins to read
    repairs: RepairPlan | None = None  # of ``ckpt repair``, where there is no plan


def repair_async(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    strategy: Strategy | str = Strategy.AUTO,
    spark: Sequence[Spark | str] = (),
    sink: str | None = None,
    **how: Unpack[ApplyOptions],
) -> ChangeResult[AsyncRepairPlan]:
    """Do what ``ckpt repair-async`` does; return the plan and its receipt. Without ``apply`` or ``undo`` it only plans.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        strategy: ``fill``, ``rewind`` or ``auto``, which picks the one that rereads less.
        spark: The Spark versions that the query may be started with, as ``"4.2"``; none named is all.
        sink: The query's sink, as for ``inspect``: the plan is then for that sink.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier repair; see ``ApplyOptions``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.repair_async("sample_checkpoints/async-kafka-4.2")
    >>> [step.path for step in plan.steps], receipt.applied
    (['offsets/30', 'offsets/.30.crc'], False)
    """
    uri, wanted = fspath(checkpoint), parse_choice(Strategy, strategy, "strategy")
    sparks = parse_choices(Spark, spark, "spark")

    def plan(storage: Storage) -> AsyncRepairPlan:
        log = ask_sink(sink, uri, storage_options or {})
        planned = adapt_to_sink(plan_repair(storage, wanted, sparks, log), log)
        certain = planned.skips is not None and planned.sink is not None and planned.sink.certain
        planned = planned.refusing(f"{planned.skips}: {planned.warnings[-1]}") if certain else planned
        if planned.refused is None:
            return planned
        return replace(planned, repairs=plan_repairs(storage, versions=sparks, sink=log))

    return run_change(AsyncRepairPlan, plan, uri, storage_options, sparks, **how)


def plan_repair(
    storage: Storage,
    strategy: Strategy = Strategy.AUTO,
    versions: Sequence[Spark] = (),
    sink: SinkLog | None = None,
) -> AsyncRepairPlan:
    """Plan the repair of a gap, as ``repair_async`` does. Raises NotACheckpoint, NotFound, StorageError."""
    inspection = inspect(read_checkpoint(storage, batches=0), versions, sink=sink)
    if not has_gap(inspection.checkpoint):
        why = f"no gap stops a synchronous start, so this command cannot help; ckpt found {inspection.trouble_names}"
        why = "a synchronous start finds every offset file that it looks for" if inspection.sound else why
        return AsyncRepairPlan(inspection=inspection, needed=False, why=why)
    plans: list[AsyncRepairPlan] = []
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
        return AsyncRepairPlan(inspection=inspection, needed=True, refused=reason)
    best = max(possible, key=lambda plan: (plan.skips is None, -1 if plan.reads_after is None else plan.reads_after))
    return replace(best, why="; ".join((best.why, *(f"{p.strategy} is not possible: {p.refused}" for p in refusals))))


def _plan_strategy(
    strategy: Strategy, inspection: Inspection, storage: Storage, versions: Sequence[Spark]
) -> AsyncRepairPlan:
    blank = AsyncRepairPlan(inspection=inspection, needed=True, strategy=strategy)
    try:
        planned = plan_first(_FIXES[strategy](storage, inspection), blank, storage, NO_LOST_BATCH, versions)
    except NoWay as error:
        return replace(blank, refused=str(error))
    if planned is None:
        return replace(blank, refused="there are no two consecutive batches to go back to")
    draft, plan = planned
    return replace(plan, reads_after=draft.reads_after)


_FIXES: Mapping[Strategy, Drafter] = {Strategy.FILL: draft_fill, Strategy.REWIND: draft_rewinds}
