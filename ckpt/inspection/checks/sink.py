"""Compares the next start's batches with those that the sink has (``ckpt.live.sink``).

Delta skips a batch if ``txnVersion(query id) >= batchId`` (``DeltaSink.addBatch``), the file sink if ``batchId <=
getLatestBatchId()`` (``FileStreamSink.addBatch``), Iceberg if the newest ancestor snapshot of the query has that batch
or a later one (``SparkWrite``). None looks at the rows. Iceberg alone computes the batch first, so its state is there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.inspection.checks.sink_outlook import Batches, SinkOutcome, SinkOutlook
from ckpt.live.sink.records import SinkLog, SinkWriter
from ckpt.restart import diagnoses
from ckpt.restart.findings import Finding
from ckpt.restart.forecast import Forecast
from ckpt.restart.sinks import Sink
from ckpt.texts import quoted_path, span
from ckpt.versions import Progress


@dataclass(frozen=True, slots=True)
class _Start:
    """The batch that the next start runs first."""

    batch: int
    again: bool  # it was planned before


def outlook(checkpoint: Checkpoint, forecasts: Sequence[Forecast], log: SinkLog) -> SinkOutlook:
    """Compare a sink with the next start; pure.

    Args:
        checkpoint: Whose start it is.
        forecasts: Of the starts that somebody may try.
        log: What the sink remembers.

    """
    if log.unknown is not None:
        return SinkOutlook(log, SinkOutcome.UNREACHED if log.unreached else SinkOutcome.UNKNOWN, log.unknown)
    start = _start(forecasts)
    nameless = log.sink.is_by_query and checkpoint.query_id is None
    if nameless and checkpoint.offsets.latest is not None:
        return _nameless(log)
    writer = log.writer(checkpoint.query_id)
    last = writer.last_batch if writer else log.last_batch
    if start is None:
        has = f"it has batch {last} last" if last is not None else "it has no batch of this query"
        said = f"{has}; no start that is forecast runs a batch, so the checkpoint has to be repaired first"
        return SinkOutlook(log, SinkOutcome.UNKNOWN, said, last_batch=last)
    found = _compared(checkpoint, log, start, last, writer)
    return found if log.hole is None else _with_hole(found, log.hole)


def _start(forecasts: Sequence[Forecast]) -> _Start | None:
    """The earliest batch that a start runs first: synchronous, because these sinks know no other."""
    running = [one for one in forecasts if one.outcome.runs and one.progress is Progress.SYNC]
    starts = [_Start(one.batch_id or 0, bool(one.reexecutes)) for one in running]
    return min(starts, key=lambda one: (one.batch, not one.again), default=None)


def _with_hole(found: SinkOutlook, name: str) -> SinkOutlook:
    """A file sink whose log lacks a file."""
    finding = Finding(diagnoses.others.SINK_LOG_HOLE, "", f"{found.log.uri} lacks _spark_metadata/{name}")
    said = f"{found.said}; but its log lacks {name}, so readers fail, and so does the batch that compacts it next"
    return replace(found, said=said, findings=(*found.findings, finding))


def _nameless(log: SinkLog) -> SinkOutlook:
    """Without the id it is unknown which transactions are those of the query, unless there is one candidate only."""
    one = log.only_query
    lost = "the checkpoint has no query id, by which the table knows its batches"
    if one is None:
        count = len(log.writers)
        who = "nobody" if count == 0 else f"{count} writers, of which none is certain to be this query"
        return SinkOutlook(log, SinkOutcome.UNKNOWN, f"{lost}; its transactions are those of {who}")
    said = f"{lost}; one query alone has written to it: {one.app_id}, batch {one.last_batch} last"
    return SinkOutlook(log, SinkOutcome.UNKNOWN, said, last_batch=one.last_batch, query_id=one.app_id)


def with_query_id(found: Finding, seen: SinkOutlook | None) -> Finding:
    """A finding about a lost query id with the id that the sink has."""
    if (
        seen is None
        or seen.query_id is None
        or found.diagnosis
        not in (
            diagnoses.logs.MISSING_METADATA,
            diagnoses.logs.UNREADABLE_METADATA,
            diagnoses.logs.NEW_QUERY_ID,
        )
    ):
        return found
    remedy = (
        f"`ckpt repair {{checkpoint}} --query-id {seen.query_id}` writes it again: no other query has written to the "
        f"sink. The sink has its batches up to {seen.last_batch} and drops rows under these ids: if the newest offsets "
        "of the checkpoint are of an earlier batch, do not start the query."
    )
    return replace(found, remedy=remedy)


def _compared(
    checkpoint: Checkpoint, log: SinkLog, start: _Start, last: int | None, writer: SinkWriter | None
) -> SinkOutlook:
    batch = start.batch
    if last is None and (batch == 0 or log.sink.is_by_query):
        return _never_seen(log, start)
    newest = -1 if last is None else last
    seen = SinkOutlook(log, SinkOutcome.CONTINUES, "", batch, last)
    if writer is not None and writer.expired and newest >= batch:
        said = f"it has {span('batch', batch, newest)}, but has forgotten so: what runs again is written again"
        detail = f"{log.uri} had batch {newest} of this query; its transactions count for {log.retention}"
        return replace(
            seen,
            outcome=SinkOutcome.WRITES_AGAIN,
            said=said,
            findings=(Finding(diagnoses.sinks.SINK_FORGOT, "", detail),),
        )
    gone = writer.taken_back if writer is not None else None
    passed_over = start.again and (gone is None or not gone[0] <= batch <= gone[1])
    if newest >= batch + passed_over:
        return _drops(checkpoint, seen, batch + passed_over, newest)
    if newest == batch:
        return _passes_over(checkpoint, seen)
    if newest < batch - 1:
        return _lacks(seen, newest + 1)
    seen = replace(seen, said=f"it has batch {newest} last, so batch {batch} is written")
    return seen if gone is None or gone[0] >= batch else _restored(checkpoint, seen, gone)


def _never_seen(log: SinkLog, start: _Start) -> SinkOutlook:
    """A sink without a batch of this query."""
    seen = SinkOutlook(log, SinkOutcome.CONTINUES, f"it has no batch of this query, so batch {start.batch} is written")
    seen = replace(seen, next_batch=start.batch)
    if start.batch == 0:
        return replace(seen, said=seen.said + _of_others(log))
    detail = f"{log.uri} has no {log.sink.record} of this query, and batch {start.batch} runs next{_of_others(log)}"
    if log.cut:
        detail += "; its first snapshots have expired, and with them what it knew of their batches"
    return replace(
        seen, outcome=SinkOutcome.UNKNOWN_QUERY, findings=(Finding(diagnoses.sinks.SINK_WITHOUT_QUERY, "", detail),)
    )


def _of_others(log: SinkLog) -> str:
    """Who else has written to a table."""
    if not log.writers:
        return ""
    one, *others = log.writers
    more = f" and {len(others)} more" if others else ""
    return f"; it has batches of {one.app_id} up to {one.last_batch}{more}"


def _restored(checkpoint: Checkpoint, seen: SinkOutlook, gone: Batches) -> SinkOutlook:
    """A table that knows batches of which it no longer has the rows."""
    last = min(gone[1], (seen.next_batch or 0) - 1)
    which = span("batch", gone[0], last)
    detail = f"{seen.log.uri} was restored: the rows of {which} were taken back"
    remedy = None
    if gone[0] > 0:
        copied = f"`ckpt copy {quoted_path(checkpoint.uri)} NEW --batch {gone[0] - 1} --new-id`"
        remedy = f"If the rows of {which} are wanted, {copied}, and start the query from there: it writes them again."
    return replace(
        seen,
        outcome=SinkOutcome.LACKS,
        said=f"{seen.said}; the rows of {which} were taken back by a RESTORE",
        lacks=(gone[0], last),
        findings=(Finding(diagnoses.sinks.SINK_RESTORED, "", detail, remedy),),
    )


def _drops(checkpoint: Checkpoint, seen: SinkOutlook, first: int, newest: int) -> SinkOutlook:
    lost, batch = span("batch", first, newest), seen.next_batch or 0
    before = f"batch {batch}, which runs again, is passed over; " if first > batch else ""
    said = f"it has batch {newest} last: {before}new rows of {lost} will be dropped silently"
    finding = Finding(
        diagnoses.sinks.SINK_WILL_DROP,
        "",
        f"{seen.log.uri} has batch {newest}, and batch {batch} runs next: {lost} will be dropped silently",
        _forget(checkpoint, seen),
    )
    return replace(seen, outcome=SinkOutcome.DROPS, said=said, dropped=(first, newest), findings=(finding,))


def _forget(checkpoint: Checkpoint, seen: SinkOutlook) -> str:
    lead = "Do not start the query. If the newer checkpoint still exists, put it back."
    return f"{lead} Otherwise {cure(checkpoint, seen)}."


def cure(checkpoint: Checkpoint, seen: SinkOutlook) -> str:
    """Say how to make a sink accept the rows that it drops: a sentence without its capital and full stop."""
    batch = seen.next_batch or 0
    place = quoted_path(checkpoint.uri)
    last, query = seen.last_batch, checkpoint.query_id
    snapshot = _before(checkpoint, seen)
    possible = batch > 0 and (snapshot is not None or not seen.log.sink.needs_snapshot)
    words = _words(seen.log.sink, possible=possible)
    return words.format(checkpoint=place, kept=batch - 1, next=batch, last=last, query=query, snapshot=snapshot)


def _before(checkpoint: Checkpoint, seen: SinkOutlook) -> int | None:
    """The snapshot of an Iceberg table before that of the next batch, if both are there."""
    writer = seen.log.writer(checkpoint.query_id)
    return writer.before.get(seen.next_batch or 0) if writer is not None else None


def _words(kind: Sink, *, possible: bool) -> str:
    """How the sink is made to accept a batch id that it has seen; where that is not possible, it is another place."""
    if possible and kind.taken_back is not None:
        return kind.taken_back
    return kind.new_checkpoint if kind.drops_new_query else "write to a new table, or start with a new checkpoint"


def _passes_over(checkpoint: Checkpoint, seen: SinkOutlook) -> SinkOutlook:
    batch = seen.next_batch or 0
    said = f"it has batch {batch} already: run again, that is passed over, and batch {batch + 1} is written"
    lost = None if seen.log.sink.computes_first else _state_lost(checkpoint, batch)
    if lost is not None:
        finding = Finding(diagnoses.sinks.SINK_PASSES_OVER_STATE, "", f"{seen.log.uri} has batch {batch}, and {lost}")
        said = f"it has batch {batch} already: run again, that is passed over, and the query fails"
    else:
        finding = Finding(
            diagnoses.sinks.SINK_HAS_NEXT, "", f"{seen.log.uri} has batch {batch}, which is not committed here"
        )
    return replace(seen, outcome=SinkOutcome.PASSES_OVER, said=said, findings=(finding,), needs_noop=lost is not None)


def _state_lost(checkpoint: Checkpoint, batch: int) -> str | None:
    """Why a start that passes over a batch has no state of it afterwards; None where it has, or needs none."""
    state = checkpoint.state
    if state is None or not state.operators:
        return None
    if state.format_version > 1:
        return f"the state has checkpoint format {state.format_version}"
    partitions = [one for operator in state.operators for store in operator.stores for one in store.partitions]
    if all(one.newest_version is not None and one.newest_version > batch for one in partitions):
        return None
    return f"version {batch + 1} of the state, which is that after batch {batch}, is not there in every partition"


def _lacks(seen: SinkOutlook, first: int) -> SinkOutlook:
    batch, log = seen.next_batch or 0, seen.log
    missing = span("batch", first, batch - 1)
    has = f"it has batch {first - 1} last" if first else "it has no batch"
    remedy = None
    if first:
        remedy = f"`ckpt rewind {{checkpoint}} --to-batch {first - 1} --replay new` writes them again, if the sources "
        remedy += "still have the rows."
    diagnosis = diagnoses.sinks.SINK_LOG_WILL_BREAK if log.sink.unbroken_log else diagnoses.sinks.SINK_LACKS
    if remedy is not None and log.sink.unbroken_log is None:
        remedy = f"Check whether their rows are in the table. If they are not, {remedy}"
    elif remedy is not None:
        remedy = f"Put {log.sink.unbroken_log} back from a copy. Or {remedy}"
    detail = f"{log.uri} has no {missing}, though committed here"
    return replace(
        seen,
        outcome=SinkOutcome.LACKS,
        said=f"{has}, so batch {batch} is written; {missing} {'is' if first == batch - 1 else 'are'} not in it",
        lacks=(first, batch - 1),
        findings=(Finding(diagnosis, "", detail, remedy),),
    )


def findings_of(seen: SinkOutlook | None) -> Iterator[Finding]:
    """List the findings of the sink, if one was asked about."""
    if seen is not None:
        yield from seen.findings
