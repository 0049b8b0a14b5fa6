"""A plan for the one sink that was named (``sink=``): what it costs there, instead of what it may cost in any."""

from dataclasses import replace

from ckpt.changes.plan import OTHERS_REPEAT, SINK_DROPS, ChangePlan, First, Planned
from ckpt.changes.steps import Changed, Step
from ckpt.checkpoint.checkpoint import FIRST_START, OFFSETS
from ckpt.formats.metadata import build_first_start
from ckpt.inspection.checks.sink import SinkOutcome, SinkOutlook, build_first_mark, describe_cure, foresee_sink
from ckpt.inspection.inspection import inspect
from ckpt.live.sink.records import SinkLog
from ckpt.restart.sinks import AboutSinks
from ckpt.storage import Storage
from ckpt.texts import span

_NOOP = (First.NOOP, First.NOOP_IF_WRITTEN)


def adapt_to_sink(plan: Planned, log: SinkLog | None, *, other_range: bool = False) -> Planned:
    """A plan with what the sink will do once the steps are done; texts about sinks in general are left out.

    ``log`` is what the sink remembers; None: the plan as it is. ``other_range``: the batch that runs again has other
    rows than when it was planned.
    """
    after = plan.inspection_after
    if log is None or after is None or not plan.steps:
        return plan
    sink = foresee_sink(after.checkpoint, after.counted, log)
    if other_range and sink.outcome is SinkOutcome.PASSES_OVER and sink.next_batch is not None:
        batch = sink.next_batch
        text = f"it has batch {batch}, and drops the rows of its new range silently"
        sink = replace(sink, outcome=SinkOutcome.DROPS, dropped=(batch, batch), said=text)
    plan = replace(plan, sink=sink)
    if log.keeps_no_ids and plan.first not in _NOOP:
        skips = None if plan.skips == SINK_DROPS else plan.skips
        return replace(plan, warnings=_warn_of_sink(plan, sink), skips=skips, first=First.NOTHING)
    if not sink.certain:
        return replace(plan, warnings=(*plan.warnings, _describe_outcome(plan, sink)))
    others = None if plan.skips == SINK_DROPS else plan.skips
    drops = f"the sink would drop new rows of {span('batch', *sink.dropped)}" if sink.dropped else None
    first = First.NOOP if sink.needs_noop else First.NOTHING
    return replace(
        plan,
        warnings=_warn_of_sink(plan, sink),
        skips="; ".join(filter(None, (others, drops))) or None,
        repeats=None if plan.repeats == OTHERS_REPEAT else plan.repeats,
        first=First.SINK if sink.outcome is SinkOutcome.DROPS else first,
    )


def add_mark(plan: Planned, storage: Storage) -> Planned:
    """Mark in its first step that a plan needs one start into ``noop``, if it does. Raises StorageError."""
    after = plan.inspection_after
    mark = None if after is None else build_first_mark(after.checkpoint)
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


def _warn_of_sink(plan: ChangePlan, sink: SinkOutlook) -> tuple[str, ...]:
    return (*(text for text in plan.warnings if not isinstance(text, AboutSinks)), _describe_outcome(plan, sink))


def _describe_outcome(plan: ChangePlan, sink: SinkOutlook) -> str:
    text = f"The sink {sink.log.uri}: {sink.said}."
    if sink.outcome is SinkOutcome.DROPS:
        return f"{text} To lose none: {describe_cure(plan.inspection.checkpoint, sink)}."
    lost = [finding.diagnosis.remedy for finding in sink.findings if sink.outcome is SinkOutcome.PASSES_OVER]
    return " ".join((text, *filter(None, lost)))
