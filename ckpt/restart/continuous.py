"""Rules of a start with a continuous trigger (``ContinuousExecution.getStartOffsets``), measured on 3.5 to 4.3.

It reads the newest commit and the offsets of that batch, which continuous processing and micro-batches write alike for
Kafka, deletes later offsets, and continues with the next epoch.
"""

from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, STATE
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import source_views
from ckpt.model import Kind, Unreadable
from ckpt.restart import diagnoses, messages
from ckpt.restart.findings import Finding, Forecast, Outcome
from ckpt.restart.start import Start

_WITHOUT = (SourceType.FILE, SourceType.RATE_MICRO_BATCH, SourceType.DELTA, SourceType.ICEBERG)
"""Sources that have no continuous reader; the rate source has one, with other offsets than in micro-batches."""


def refuse_continuous(start: Start) -> Forecast | None:
    """Refuse state and sources that a continuous trigger does not have, as far as the files tell."""
    if start.checkpoint.stateful:
        return _refuse(start, STATE, "continuous processing keeps no state")
    for view in source_views(start.end, ()) if start.end is not None else ():
        if view.type in _WITHOUT:
            return _refuse(start, OFFSETS, f"source {view.index} is {view.type}, which has no continuous reader")
    return None


def _refuse(start: Start, path: str, detail: str) -> Forecast:
    return start.ends(Outcome.REFUSED, Finding(diagnoses.modes.CONTINUOUS_REFUSED, path, detail))


def doubt_other_source(start: Start) -> Forecast | None:
    """Of the sources with a continuous reader, the change from micro-batches was tried with Kafka only."""
    views = source_views(start.end, ()) if start.end is not None else ()
    others = [view for view in views if view.type is not SourceType.KAFKA]
    if others and start.checkpoint.kind is not Kind.CONTINUOUS:
        detail = f"whether source {others[0].index}, {others[0].type}, continues after micro-batches was not tried"
        return start.stays_unknown(diagnoses.modes.CONTINUOUS_REFUSED, OFFSETS, detail)
    return None


def doubt_unreadable_plan(start: Start) -> Forecast | None:
    """Where planned offsets cannot be read, Spark waited without an epoch, and without an error."""
    newest = start.checkpoint.offsets.entries.get(start.latest) if start.latest is not None else None
    if isinstance(newest, Unreadable) and start.latest not in start.checkpoint.commits:
        path = f"{OFFSETS}/{start.latest}"
        return start.stays_unknown(diagnoses.logs.UNREADABLE_LOG, path, newest.reason)
    return None


def fail_without_offsets(start: Start) -> Forecast | None:
    """The newest commit needs the offsets of its batch."""
    if start.committed is None or start.committed in start.checkpoint.offsets:
        return None
    detail = f"{OFFSETS}/{start.committed} is missing"
    error = messages.NO_END_OFFSETS.format(start.committed)
    return start.fails(diagnoses.logs.COMMITS_AHEAD, f"{COMMITS}/{start.committed}", detail, error)


def continue_after(start: Start) -> Forecast:
    """Nothing blocks it."""
    if start.latest is None:
        return start.ends(Outcome.RESUMES if 0 in start.deleted else Outcome.STARTS_FRESH)
    return start.ends(Outcome.RESUMES)
