"""From a checkpoint to a plan: whether there is a gap, which ways lead out, and what Spark does after each.

The forecast after a plan is the forecast of ``ckpt inspect``, asked of the checkpoint as the plan would leave it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from ckpt.changes.async_gap.drafts import GapDraft, fills, rewinds
from ckpt.changes.async_gap.plan import RepairPlan, Strategy
from ckpt.changes.check_fix import MOST_TRIES
from ckpt.changes.plan import FINISHED_AGAIN, STOP_FIRST, NoWay, inspect_changed
from ckpt.changes.rewind.warnings import named_sinks
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.history import Pattern, pattern
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.inspection.verdict import spell
from ckpt.model import Kind
from ckpt.restart.forecast import Forecast
from ckpt.restart.remedies import pair_below
from ckpt.restart.sinks import DROPS_OR_REPEATS, AboutSinks
from ckpt.storage import Storage
from ckpt.versions import Spark

_DRAFTS: Mapping[Strategy, Callable[[Checkpoint, Storage], Iterator[GapDraft]]] = {
    Strategy.FILL: fills,
    Strategy.REWIND: rewinds,
}
_SINKS = f"What the sink does with batches that run again: {DROPS_OR_REPEATS}; upserts by key are safe."


def plan_repair(storage: Storage, strategy: Strategy = Strategy.AUTO, versions: Sequence[Spark] = ()) -> RepairPlan:
    """What ``ckpt repair-async`` would do; nothing is written.

    Args:
        storage: The checkpoint; its complete offset and commit logs are read.
        strategy: Which strategy; ``auto`` picks the one that reads less again.
        versions: The Spark versions that the query may be started with; none named is all.

    Raises:
        NotACheckpoint, NotFound, StorageError: It cannot be read.

    """
    found = inspect(read_checkpoint(storage, batches=0), versions)
    if not _has_gap(found.checkpoint):
        return RepairPlan(inspection=found, needed=False, why=_no_gap(found))
    plans: list[RepairPlan] = []
    for way in _DRAFTS:
        if strategy in (way, Strategy.AUTO):
            plans.append(_first_that_runs(way, found, storage, versions))
            if plans[-1].steps and not plans[-1].replay:
                return plans[-1]  # nothing can read less
    possible = [plan for plan in plans if plan.refused is None]
    if not possible:
        return RepairPlan(inspection=found, needed=True, refused="; ".join(f"{p.strategy}: {p.refused}" for p in plans))
    best = max(possible, key=lambda plan: -1 if plan.reads_after is None else plan.reads_after)
    no_way = "; ".join(f"{plan.strategy} is not possible: {plan.refused}" for plan in plans if plan.refused is not None)
    return replace(best, why=f"{best.why}; {no_way}") if no_way else best


def _has_gap(checkpoint: Checkpoint) -> bool:
    """Whether a synchronous start looks for offsets that are not there, or not readable."""
    latest = checkpoint.offsets.latest
    if not latest or latest not in checkpoint.offsets or checkpoint.kind is not Kind.MICRO_BATCH:
        return False
    if checkpoint.offsets.readable(latest) is None:
        return not pair_below(checkpoint, latest)
    return checkpoint.offsets.readable(latest - 1) is None


def _no_gap(found: Inspection) -> str:
    if found.sound:
        return "a synchronous start finds every offset file that it looks for"
    return f"no gap stops a synchronous start, so this command cannot help; ckpt found {found.trouble_names}"


def _first_that_runs(way: Strategy, found: Inspection, storage: Storage, versions: Sequence[Spark]) -> RepairPlan:
    """The plan of a strategy, or its refusal."""
    reason = "there are no two consecutive batches to go back to"
    try:
        for draft in islice(_DRAFTS[way](found.checkpoint, storage), MOST_TRIES):
            plan = _checked(draft, found, storage, versions)
            if plan.refused is None:
                return plan
            reason = plan.refused
    except NoWay as error:
        reason = str(error)
    return RepairPlan(inspection=found, needed=True, strategy=way, refused=reason)


def _checked(draft: GapDraft, found: Inspection, storage: Storage, versions: Sequence[Spark]) -> RepairPlan:
    """A draft checked against what Spark would do after it."""
    finished = any(one.finished for one in draft.replay)
    plan = RepairPlan(
        inspection=found,
        needed=True,
        strategy=draft.strategy,
        why=draft.why,
        steps=draft.steps,
        reads_after=draft.reads_after,
        inspection_after=inspect_changed(storage, found, draft.steps, versions),
        replay=draft.replay,
        repeats=FINISHED_AGAIN if finished else None,
    )
    starts = plan.starts_after
    failing = [f for f in starts if not f.outcome.runs]
    if len(failing) == len(starts) or any(f.lost for f in starts):
        return RepairPlan(inspection=found, needed=True, strategy=draft.strategy, refused=_in_vain(starts))
    return replace(plan, warnings=tuple(_warnings(found.checkpoint, draft.logged, failing, finished=finished)))


def _in_vain(starts: Sequence[Forecast]) -> str:
    """Why a draft is no solution: the next start fails, or skips batches."""
    one = next(f for f in starts if f.lost or not f.outcome.runs)
    codes = ", ".join(dict.fromkeys(finding.diagnosis.code for finding in one.because))
    if one.lost:
        return f"batches from {one.lost[0]} on would never be run ({codes})"
    said = f' with "{one.error}"' if one.error else ""
    return f"the start would still fail{said} ({codes}): see ckpt inspect, and fix that first"


def _warnings(checkpoint: Checkpoint, logged: int, failing: Sequence[Forecast], *, finished: bool) -> Iterator[str]:
    """Warn of what a plan leads to.

    Args:
        checkpoint: As it is.
        logged: The newest batch whose offsets can be read now.
        failing: Forecasts of starts that still fail after the plan.
        finished: Whether the plan reads rows of finished batches again.

    """
    yield STOP_FIRST
    if not checkpoint.stateful:
        yield _unlogged(checkpoint, logged)
    if finished:
        yield AboutSinks(_SINKS + named_sinks(checkpoint))
    for error in dict.fromkeys(f.error for f in failing):
        versions = spell([f.spark for f in failing if f.error == error])
        yield f'Spark {versions} still will not start: "{error}".'


def _unlogged(checkpoint: Checkpoint, logged: int) -> str:
    by_design = pattern(checkpoint) is Pattern.ASYNC_PROGRESS
    when = "" if by_design else "If the query ran with asynchronous progress tracking: "
    return (
        f"{when}{'r' if when else 'R'}ows after the end of batch {logged} may be in the sink already, written by "
        "batches that asynchronous tracking had not logged. Any start reads and writes them again, under batch ids "
        "that were used before, and no log says how far they go."
    )
