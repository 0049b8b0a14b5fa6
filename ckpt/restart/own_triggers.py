"""Rules of a start with a trigger of its own: real-time mode, and continuous processing.

Real-time mode (``RealTimeTrigger``): 4.1 and 4.2 without state, 4.3 also with it. A start deletes what is planned and
not committed, once it has read both logs, and plans that batch again from the end of the newest commit. From there on
it goes by the rules of a synchronous start, on 4.3 by those of an asynchronous one.

With a continuous trigger (``ContinuousExecution.getStartOffsets``, measured on 3.5 to 4.3) a start reads the newest
commit and the offsets of that batch, which continuous processing and micro-batches write alike for Kafka, deletes later
offsets, and continues with the next epoch.
"""

from dataclasses import replace

from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, STATE
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.registry import source_views
from ckpt.formats.operators import AGGREGATIONS, IN_PYTHON, OperatorName
from ckpt.model import Kind, Unreadable
from ckpt.restart import diagnoses, messages
from ckpt.restart.findings import Finding, Forecast, Outcome
from ckpt.restart.logs import latest_commit
from ckpt.restart.start import Start
from ckpt.versions import Progress

REFUSED_SOURCES = frozenset({SourceType.FILE, SourceType.RATE, SourceType.RATE_MICRO_BATCH})
OPERATORS = AGGREGATIONS | {OperatorName.DEDUPLICATION, OperatorName.TRANSFORM}
"""The stateful operators in the allow-list of 4.3 (``RealTimeModeAllowlist``): transformWithState in Python is not."""


def refuse_real_time(start: Start) -> Forecast | None:
    """Refuse versions, sources and operators that real-time mode does not have, as far as the files tell."""
    if not start.rules.real_time:
        return _refuse(start, "", f"Spark {start.spark} has no real-time mode")
    views = source_views(start.end, ()) if start.end is not None else ()
    for view in views:
        if view.type in REFUSED_SOURCES:
            detail = f"source {view.index} is {view.type}, but real-time mode reads only Kafka"
            return _refuse(start, OFFSETS, detail, messages.REAL_TIME_SOURCE)
    others = [view for view in views if view.type is not SourceType.KAFKA]
    if others:
        detail = f"real-time mode was not tried with source {others[0].index}, {others[0].type}"
        return start.stays_unknown(diagnoses.modes.REAL_TIME_REFUSED, OFFSETS, detail)
    if start.checkpoint.stateful and not start.rules.real_time_state:
        return _refuse(start, STATE, f"real-time mode of Spark {start.spark} does not support state")
    for operator in start.checkpoint.operators:
        if operator.name is not None and operator.name not in OPERATORS:
            detail = f"operator {operator.id} is {operator.name}, which real-time mode does not support"
            says = messages.REAL_TIME_IN_PYTHON if operator.name in IN_PYTHON else messages.REAL_TIME_OPERATOR
            return _refuse(start, f"{STATE}/{operator.id}", detail, says)
    return None


def _refuse(start: Start, path: str, detail: str, error: str | None = None) -> Forecast:
    of_real_time = start.progress is Progress.REALTIME
    diagnosis = diagnoses.modes.REAL_TIME_REFUSED if of_real_time else diagnoses.modes.CONTINUOUS_REFUSED
    return start.ends(Outcome.REFUSED, Finding(diagnosis, path, detail), error=error)


def delete_planned(start: Start) -> Start:
    """Return the start after it has deleted the offsets above the newest commit."""
    committed, offsets = -1 if start.committed is None else start.committed, start.checkpoint.offsets
    deleted = tuple(batch for batch in offsets.ids if batch > committed)
    if not deleted:
        return start
    names = offsets.names._replace(ids=tuple(batch for batch in offsets.ids if batch <= committed))
    entries = {batch: entry for batch, entry in offsets.entries.items() if batch <= committed}
    left = replace(start.checkpoint, offsets=replace(offsets, names=names, entries=entries))
    return replace(start, checkpoint=left, deleted=deleted)


def commit_alone(start: Start) -> Forecast | None:
    """Without offsets the newest commit is read, and can fail the start, before commits are found to be left."""
    return latest_commit(start) if start.latest is None else None


def begin_without_offsets(start: Start) -> Forecast | None:
    """Without offsets batch 0 is planned; that there is state of a first batch is no trouble, unlike commits."""
    if start.latest is not None or start.committed is not None:
        return None
    return start.ends(Outcome.RESUMES if 0 in start.deleted else Outcome.STARTS_FRESH)


def refuse_format_1(start: Start) -> Forecast | None:
    """Refuse commits of version 1, also without state: Spark 4.3."""
    commit = start.checkpoint.commits.newest
    if not start.rules.real_time_state or commit is None or commit.version != 1:
        return None
    detail = "its version line is v1, but real-time mode continues only after v2"
    if start.deleted:
        detail += f"; the start deletes {OFFSETS}/{start.deleted[0]}, which is not committed, before it fails"
    path = f"{COMMITS}/{start.committed}"
    return start.fails(diagnoses.modes.REAL_TIME_FORMAT, path, detail, messages.REAL_TIME_FORMAT_1)


def fail_without_end(start: Start) -> Forecast | None:
    """The offsets end before the commits: the source is asked for the end of a batch that is not planned."""
    if start.committed is None or start.latest is None or start.latest >= start.committed:
        return None
    detail = f"commits/ ends at batch {start.committed}, offsets/ at batch {start.latest}"
    path = f"{COMMITS}/{start.committed}"
    return start.fails(diagnoses.logs.COMMITS_AHEAD, path, detail, messages.REAL_TIME_NO_END)


def doubt_deleted_state(start: Start) -> Forecast | None:
    """The state that was looked at is that of the latest batch, not of the batch that is planned again."""
    if len(start.deleted) > 1 and start.checkpoint.stateful:
        detail = f"batches {start.deleted[0]} to {start.deleted[-1]} are deleted, but state of batch {start.deleted[0]}"
        return start.stays_unknown(diagnoses.modes.PLANNED_DELETED, STATE, f"{detail} is loaded")
    return None


def find_deleted(start: Start) -> Finding | None:
    """Say what becomes of a planned batch."""
    if not start.deleted:
        return None
    begins = "the beginning of the sources" if start.latest is None else f"the end of batch {start.latest}"
    detail = f"it is not committed: the start deletes it, and plans batch {start.first_batch} from {begins}"
    return Finding(diagnoses.modes.PLANNED_DELETED, f"{OFFSETS}/{start.deleted[0]}", detail)


_WITHOUT = (SourceType.FILE, SourceType.RATE_MICRO_BATCH, SourceType.DELTA, SourceType.ICEBERG)
"""Sources that have no continuous reader; the rate source has one, with other offsets than in micro-batches."""


def refuse_continuous(start: Start) -> Forecast | None:
    """Refuse state and sources that a continuous trigger does not have, as far as the files tell."""
    if start.checkpoint.stateful:
        return _refuse(start, STATE, "continuous processing has no state")
    for view in source_views(start.end, ()) if start.end is not None else ():
        if view.type in _WITHOUT:
            return _refuse(start, OFFSETS, f"source {view.index} is {view.type}, which has no continuous reader")
    return None


def doubt_other_source(start: Start) -> Forecast | None:
    """Of the sources with a continuous reader, the change from micro-batches was tried with Kafka only."""
    views = source_views(start.end, ()) if start.end is not None else ()
    others = [view for view in views if view.type is not SourceType.KAFKA]
    if others and start.checkpoint.kind is not Kind.CONTINUOUS:
        detail = (
            f"continuous processing after micro-batches was not tried with source {others[0].index}, {others[0].type}"
        )
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
    return start.ends(Outcome.RESUMES)
