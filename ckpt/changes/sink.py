"""A plan for the one sink that was named (``sink=``): what it costs there, instead of what it may cost in any."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from ckpt.changes.plan import OTHERS_REPEAT, SINK_DROPS, ChangePlan, First
from ckpt.changes.steps import Changed, Step
from ckpt.checkpoint.checkpoint import FIRST_START, OFFSETS
from ckpt.formats.marks import build_first_start
from ckpt.inspection.checks.first_start import first_start
from ckpt.inspection.checks.sink import cure, outlook
from ckpt.inspection.checks.sink_outlook import SinkOutcome, SinkOutlook
from ckpt.inspection.inspection import inspect
from ckpt.live.sink.reader import sink_of
from ckpt.live.sink.records import SinkKind, SinkLog
from ckpt.restart.sinks import AboutSinks
from ckpt.storage import Storage
from ckpt.texts import span

Planned = TypeVar("Planned", bound=ChangePlan)
_NOOP = (First.NOOP, First.NOOP_IF_WRITTEN)


def with_sink(
    planner: Callable[[Storage], Planned], sink: str | None, uri: str, storage_options: Mapping[str, str] | None
) -> Callable[[Storage], Planned]:
    """A planner whose plans are for the sink at a URI, if one is named; the sink is read when it plans."""
    return lambda storage: add_mark(for_sink(planner(storage), sink_of(sink, uri, storage_options or {})), storage)


def for_sink(plan: Planned, log: SinkLog | None, *, other_range: bool = False) -> Planned:
    """A plan with what the sink will do once the steps are done; texts about sinks in general are left out.

    Args:
        plan: What was planned.
        log: What the sink remembers; None: the plan as it is.
        other_range: Whether the batch that runs again has other rows than when it was planned.

    """
    after = plan.inspection_after
    if log is None or after is None or not plan.steps:
        return plan
    seen = outlook(after.checkpoint, after.counted, log)
    if other_range and seen.outcome is SinkOutcome.PASSES_OVER and seen.next_batch is not None:
        batch = seen.next_batch
        said = f"it has batch {batch}, and drops the rows of its new range silently"
        seen = replace(seen, outcome=SinkOutcome.DROPS, dropped=(batch, batch), said=said)
    plan = replace(plan, sink=seen)
    if log.kind is SinkKind.KAFKA and plan.first not in _NOOP:
        skips = None if plan.skips == SINK_DROPS else plan.skips
        return replace(plan, warnings=_warnings(plan, seen), skips=skips, first=First.NOTHING)
    if not seen.certain:
        return replace(plan, warnings=(*plan.warnings, _sentence(plan, seen)))
    return replace(
        plan,
        warnings=_warnings(plan, seen),
        skips=_skips(plan, seen),
        repeats=None if plan.repeats == OTHERS_REPEAT else plan.repeats,
        first=_first(seen),
    )


def add_mark(plan: Planned, storage: Storage) -> Planned:
    """Mark in its first step that a plan needs one start into ``noop``, if it does. Raises StorageError."""
    after = plan.inspection_after
    mark = None if after is None else first_start(after.checkpoint)
    if plan.first is not First.NOOP or after is None or mark is None:
        return plan
    listing = plan.inspection.checkpoint.listing
    was = storage.read(FIRST_START) if listing.info(FIRST_START) is not None else None
    mark_step = Step(FIRST_START, was, build_first_start(mark), like=f"{OFFSETS}/{mark.batch}")
    steps = tuple(step for step in (mark_step, *plan.steps) if step.before != step.after)
    tree = Changed(storage, listing, steps).list_tree()
    versions = tuple(dict.fromkeys(f.spark for f in after.forecasts))
    left = inspect(replace(after.checkpoint, listing=tree, first_start=mark), versions)
    return replace(plan, steps=steps, inspection_after=left)


def _warnings(plan: ChangePlan, seen: SinkOutlook) -> tuple[str, ...]:
    return (*(text for text in plan.warnings if not isinstance(text, AboutSinks)), _sentence(plan, seen))


def _sentence(plan: ChangePlan, seen: SinkOutlook) -> str:
    text = f"The sink {seen.log.uri}: {seen.said}."
    if seen.outcome is SinkOutcome.DROPS:
        return f"{text} To lose none: {cure(plan.inspection.checkpoint, seen)}."
    lost = [one.diagnosis.remedy for one in seen.findings if seen.outcome is SinkOutcome.PASSES_OVER]
    return " ".join((text, *filter(None, lost)))


def _skips(plan: ChangePlan, seen: SinkOutlook) -> str | None:
    """Describe the rows that are left out, or dropped by this sink."""
    others = None if plan.skips == SINK_DROPS else plan.skips
    drops = f"the sink would drop new rows of {span('batch', *seen.dropped)}" if seen.dropped else None
    return "; ".join(filter(None, (others, drops))) or None


def _first(seen: SinkOutlook) -> First:
    """Choose the step before the usual start."""
    if seen.outcome is SinkOutcome.DROPS:
        return First.SINK
    return First.NOOP if seen.needs_noop else First.NOTHING
