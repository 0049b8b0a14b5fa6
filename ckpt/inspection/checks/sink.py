"""Compares the next start's batches with those that the sink has (``ckpt.live.sink``).

Delta skips a batch if ``txnVersion(query id) >= batchId`` (``DeltaSink.addBatch``), the file sink if ``batchId <=
getLatestBatchId()`` (``FileStreamSink.addBatch``), Iceberg if the newest ancestor snapshot of the query has that batch
or a later one (``SparkWrite``). None looks at the rows. Iceberg alone computes the batch first, so its state is there.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, NamedTuple

from ckpt.advice import Advice, Code, Do, Words, advise, do, join, words
from ckpt.checkpoint.checkpoint import FIRST_START, METADATA, Checkpoint
from ckpt.checkpoint.history import name_lagging_mode
from ckpt.checkpoint.state.ranges import ranges_of
from ckpt.formats.names import COMPACT, compactible_id
from ckpt.formats.sidecars import sidecar
from ckpt.inspection.checks.sink_times import Match, describe_times, find_dropped, match_batch
from ckpt.live.sink.records import FILE_LOG, SinkKind, SinkLog, SinkWriter
from ckpt.model import PlannedBatch, Unreadable
from ckpt.restart import diagnoses
from ckpt.restart.book import BOOK
from ckpt.restart.findings import Finding, Forecast
from ckpt.restart.sinks import WITH_TXN_APP_ID, Seen, Sink
from ckpt.storage.locations import local_path
from ckpt.texts import batch_ranges, plural_of, quote_path, span
from ckpt.versions import Progress

Batches = tuple[int, int]  # the first and the last of a row of batches


class SinkOutcome(StrEnum):
    """The outcome of the next start's batches in a sink."""

    CONTINUES = "continues"  # its first batch follows the newest one of the sink, and is written
    PASSES_OVER = "passes-over"  # its first batch runs again and is in the sink already; the next one is written
    DROPS = "drops"  # rows that the sink has not seen are dropped, because it knows their batch ids
    MAY_DROP = "may-drop"  # the same, or it passes over: whether it has this batch or another of its id is unknown
    LACKS = "lacks"  # it is written, but batches before it are not in the sink
    WRITES_AGAIN = "writes-again"  # it is in the sink, and is written again
    ACCEPTS = "accepts"  # it keeps no batch ids, so it writes each row of each batch that runs
    UNKNOWN_QUERY = "unknown-query"  # it is written; the sink has no batch of this query
    UNKNOWN = "unknown"
    UNREACHED = "unreached"  # it was to be read, and could not be


_UNCERTAIN = (SinkOutcome.WRITES_AGAIN, SinkOutcome.UNKNOWN_QUERY, SinkOutcome.UNKNOWN, SinkOutcome.UNREACHED)


@dataclass(frozen=True, slots=True)
class SinkOutlook:
    """A sink compared with a checkpoint."""

    log: SinkLog
    outcome: Annotated[SinkOutcome, "the effect on the batches of the next start ([sinks](sink.md))"]
    said: Annotated[str, "one sentence for people; its words are not fixed"]
    next_batch: Annotated[int | None, "the batch that the next start runs first; null if that is unknown"] = None
    last_batch: Annotated[int | None, "the newest batch in the sink: in a table, of this query"] = None
    dropped: Annotated[Batches | None, "`[from, to]`: batches whose new rows will be dropped"] = None
    lacks: Annotated[Batches | None, "`[from, to]`: batches that are committed but not in the sink"] = None
    forget_from: int | None = None  # the first batch that the sink has to forget so that it drops none
    query_id: Annotated[str | None, "the id that a lost `metadata` had, if only one query has written to the table"] = (
        None
    )
    id_file: str | None = None  # that proves that id
    needs_noop: bool = False  # one start into ``noop`` has to come first, or the query fails
    keeps_no_ids: bool = False  # no query ever wrote to it by batch id, so it drops none
    by_code: bool = False  # it holds if foreachBatch of the query writes there with a txnAppId
    findings: tuple[Finding, ...] = ()

    @property
    def kind(self) -> str | None:
        """The kind of the sink, where that is certain."""
        return self.log.kind if self.certain and not self.by_code else None

    @property
    def unread_batch(self) -> int | None:
        """The batch that runs again and that the sink passes over before a task reads it, as Delta and files do."""
        passes = self.outcome is SinkOutcome.PASSES_OVER and not self.needs_noop
        return self.next_batch if passes and not self.log.sink.computes_first else None

    @property
    def certain(self) -> bool:
        """True if the outcome is certain enough to say nothing of other sinks."""
        return self.outcome not in _UNCERTAIN


_LOST_ID = (diagnoses.logs.MISSING_METADATA, diagnoses.logs.UNREADABLE_METADATA, diagnoses.logs.NEW_QUERY_ID)


class _Start(NamedTuple):
    """The batch that the next start runs first."""

    batch: int
    again: bool  # it was planned before


def foresee_sink(checkpoint: Checkpoint, forecasts: Sequence[Forecast], log: SinkLog) -> SinkOutlook:
    """Compare what a sink remembers with the starts that somebody may try; pure."""
    if log.unknown is not None:
        outcome = SinkOutcome.UNREACHED if log.unreached else SinkOutcome.UNKNOWN
        return SinkOutlook(log, outcome, log.unknown, findings=tuple(_find_gone(checkpoint, log)))
    start = _find_start(forecasts, (Progress.SYNC,))
    if log.keeps_no_ids:
        return _foresee_rows(checkpoint, log, start or _find_start(forecasts, Progress))
    if (code := _find_code(checkpoint, log)) is not None:
        known = replace(log, rules=WITH_TXN_APP_ID, writers=(replace(code, app_id=checkpoint.query_id or ""),))
        return _name_code(foresee_sink(checkpoint, forecasts, known), log, code)
    if log.sink.is_by_query and checkpoint.query_id is None and checkpoint.offsets.latest is not None:
        return _guess_query(checkpoint, log)
    writer = log.writer(checkpoint.query_id)
    last = writer.last_batch if writer else log.last_batch
    if start is None:
        has = f"its last batch is {last}" if last is not None else "it has no batch of this query"
        sentence = f"{has}; no forecast start runs a batch, so the checkpoint must be repaired first"
        return _add_dropped(checkpoint, SinkOutlook(log, SinkOutcome.UNKNOWN, sentence, last_batch=last))
    outlook = _compare_batches(checkpoint, log, start, last, writer)
    if writer is None or not writer.expired:
        outlook = _add_gaps(checkpoint, _add_dropped(checkpoint, outlook), writer)
    return _add_broken_log(checkpoint, outlook)


def _foresee_rows(checkpoint: Checkpoint, log: SinkLog, start: _Start | None) -> SinkOutlook:
    """Foresee a start with a sink that keeps no batch ids: it is said what becomes of rows that come again."""
    again, outlook = log.sink.again or "", SinkOutlook(log, SinkOutcome.ACCEPTS, "", start.batch if start else None)
    if log.kind == SinkKind.NOOP:
        return replace(outlook, said=again)
    if start is None:
        return replace(outlook, said=f"no forecast start runs a batch; rows that are read again are written: {again}")
    if start.again:
        return replace(outlook, said=f"batch {start.batch} runs again, and is written again: {again}")
    if name_lagging_mode(checkpoint) is not None:
        earlier = f"rows after the offsets of batch {checkpoint.offsets.latest} may be in it already"
        return replace(outlook, said=f"batch {start.batch} is written; {earlier}, and repeat: {again}")
    older = "if this checkpoint is an older copy, which such a sink cannot show"
    return replace(outlook, said=f"batch {start.batch} is new, and is written; {older}, {again}")


def _find_gone(checkpoint: Checkpoint, log: SinkLog) -> Iterator[Finding]:
    """Find that nothing is at the place of the sink, or only data files, though batches are committed."""
    if not checkpoint.commits.ids:
        return
    has = f"the checkpoint has committed batches up to {checkpoint.commits.ids[-1]}"
    if log.gone:
        yield Finding(diagnoses.sinks.SINK_LACKS, "", f"{log.uri} is empty, and {has}", BOOK.advise("sink_gone"))
    if log.unlogged is not None:
        yield Finding(diagnoses.sinks.SINK_LOG_SEEMS_LOST, "", f"{log.uri} has {log.unlogged}, and {has}")


def _add_broken_log(checkpoint: Checkpoint, outlook: SinkOutlook) -> SinkOutlook:
    log = outlook.log
    broken = [(name, f"lacks {name}") for name in (log.hole,) if name is not None]
    if log.damaged is not None:
        broken.append((log.damaged[0], f"has {log.damaged[0]}, which cannot be read: {log.damaged[1]}"))
    if not broken:
        return outlook
    which = " and ".join(trouble for _, trouble in broken)
    detail = f"{log.sink.unbroken_log} of {log.uri} {which}"
    consequence = f"its log {which}, so readers fail, and so does the next batch that compacts it"
    first = min((name for name, _ in broken), key=lambda name: compactible_id(name) or 0)
    advice = _fill_skipped(checkpoint, log) or _write_again(checkpoint, log, first)
    findings = (*outlook.findings, Finding(diagnoses.others.SINK_LOG_HOLE, "", detail, advice))
    return replace(outlook, said=f"{outlook.said}; but {consequence}", findings=findings)


def _write_again(checkpoint: Checkpoint, log: SinkLog, name: str) -> Advice | None:
    """Build the advice for a broken log of a file sink whose entries from ``name`` on can be written again."""
    kept = (compactible_id(name) or 0) - 1
    last = -1 if log.last_batch is None else log.last_batch
    names = None if log.file_log is None else map(log.file_log.name_of, range(kept + 1, last + 1))
    compacted = names is None or any(name.endswith(COMPACT) for name in names)
    if compacted or kept not in checkpoint.commits or kept not in checkpoint.offsets:
        return None
    which = span("batch", kept + 1, last)
    named = {"log": log.sink.unbroken_log, "entry": name, "first": kept + 1, "kept": kept, "which": which}
    return BOOK.advise("sink_log_broken", **named)


def _add_gaps(checkpoint: Checkpoint, outlook: SinkOutlook, writer: SinkWriter | None) -> SinkOutlook:
    """Add the committed batches that a table does not have, though it has later ones."""
    gaps = writer.gaps if writer is not None else ()
    missing = [batch for low, high in gaps for batch in checkpoint.commits.ids if low <= batch <= high]
    missing = [batch for batch in missing if not checkpoint.is_skipped(batch)]
    if not missing or outlook.forget_from is not None:
        return outlook
    which = batch_ranges(ranges_of(missing))
    outlook = replace(outlook, forget_from=missing[0])
    check = words("Check whether their rows are in the table. If not, do this: it writes them and all later rows.")
    others = [finding for finding in outlook.findings if finding.diagnosis is diagnoses.sinks.SINK_LACKS]
    detail = f"{outlook.log.uri} lacks the committed {which}, but has batch {outlook.last_batch}"
    detail = "; ".join((detail, *(finding.detail for finding in others)))
    cure = describe_cure(checkpoint, outlook).lead(check)
    finding = Finding(diagnoses.sinks.SINK_LACKS, "", detail, cure, minor=checkpoint.is_past(missing[-1]))
    return replace(
        outlook,
        outcome=SinkOutcome.LACKS if outlook.outcome is SinkOutcome.CONTINUES else outlook.outcome,
        said=f"{outlook.said}; {which} {'is' if len(missing) == 1 else 'are'} not in it",
        lacks=outlook.lacks or (missing[0], missing[-1]),
        findings=(*(f for f in outlook.findings if f not in others), finding),
    )


def _find_code(checkpoint: Checkpoint, log: SinkLog) -> SinkWriter | None:
    """Find the txnAppId with which foreachBatch of the query writes: one that wrote a batch between two plans."""
    query_id = checkpoint.query_id
    if query_id is None or not log.sink.is_by_query or log.writer(query_id) is not None:
        return None
    codes = [code for code in log.writers if not code.may_be_query and _fits_plans(checkpoint, code)]
    return codes[0] if len(codes) == 1 else None


def _fits_plans(checkpoint: Checkpoint, code: SinkWriter) -> bool:
    """Tell whether a batch was written after it was planned and before the next one was."""
    plans = {batch: max(checkpoint.planned_ms(batch), 0) for batch in checkpoint.offsets.ids}
    spans = ((plans[batch], plans.get(batch + 1), code.written_ms.get(batch)) for batch in plans)
    return any(before and after and written and before <= written <= after for before, after, written in spans)


def _name_code(outlook: SinkOutlook, log: SinkLog, code: SinkWriter) -> SinkOutlook:
    """Add to what was foreseen that it holds if the query writes with a txnAppId."""
    if_so = f"if the query writes with the txnAppId {code.app_id}"
    do_this = words("If the query writes with the txnAppId {app_id}, do this.", app_id=code.app_id)
    findings = []
    for finding in outlook.findings:
        advice = finding.advice or finding.diagnosis.advice
        findings.append(finding if advice is None else replace(finding, advice=advice.lead(do_this)))
    return replace(outlook, log=log, said=f"{if_so}: {outlook.said}", by_code=True, findings=tuple(findings))


def _find_start(forecasts: Sequence[Forecast], modes: Iterable[Progress]) -> _Start | None:
    """Find the earliest batch that a start runs first: a synchronous one, where sinks remember batch ids."""
    running = [forecast for forecast in forecasts if forecast.outcome.runs and forecast.progress in tuple(modes)]
    starts = (_Start(forecast.batch_id or 0, bool(forecast.reexecutes)) for forecast in running)
    return min(starts, key=lambda start: (start.batch, not start.again), default=None)


def _guess_query(checkpoint: Checkpoint, log: SinkLog) -> SinkOutlook:
    """Without the id it is unknown which transactions are those of the query, unless there is one candidate only."""
    writer = log.find_query(checkpoint)
    lost = "the checkpoint has no query id, by which the table recognizes its batches"
    proof = None if checkpoint.metadata_checksums is None else sidecar(METADATA)
    if writer is None:
        count = len(log.writers)
        none = "none is certain to be this query" if proof is None else f"none is this query, as {proof} shows"
        who = "nobody" if count == 0 else f"{count} {plural_of(count, 'writer')}, but {none}"
        return SinkOutlook(log, SinkOutcome.UNKNOWN, f"{lost}; its transactions come from {who}")
    alone = "only one query has written to it" if proof is None else f"this is the one that {proof} proves"
    sentence = f"{lost}; {alone}: {writer.app_id}, last with batch {writer.last_batch}"
    outlook = SinkOutlook(log, SinkOutcome.UNKNOWN, sentence, last_batch=writer.last_batch, query_id=writer.app_id)
    return replace(outlook, id_file=proof)


def add_query_id(finding: Finding, outlook: SinkOutlook | None) -> Finding:
    """Add to a finding about a lost query id the id that the sink has."""
    if outlook is None or outlook.query_id is None or finding.diagnosis not in _LOST_ID:
        return finding
    name = "sink_query_id" if outlook.id_file is None else "sink_proven_id"
    known = BOOK.advise(name, query=outlook.query_id, last=str(outlook.last_batch), file=outlook.id_file)
    return replace(finding, advice=known)


def _compare_batches(
    checkpoint: Checkpoint, log: SinkLog, start: _Start, last: int | None, writer: SinkWriter | None
) -> SinkOutlook:
    batch = start.batch
    if last is None and (batch == 0 or log.sink.is_by_query):
        return _foresee_first(checkpoint, log, start)
    newest = -1 if last is None else last
    outlook = SinkOutlook(log, SinkOutcome.CONTINUES, "", batch, last)
    if writer is not None and writer.expired and newest >= batch:
        sentence = f"it has {span('batch', batch, newest)}, but has forgotten that: repeated batches are written again"
        detail = f"{log.uri} had batch {newest} of this query, but keeps transactions for {log.retention} only"
        findings = (Finding(diagnoses.sinks.SINK_FORGOT, "", detail),)
        return replace(outlook, outcome=SinkOutcome.WRITES_AGAIN, said=sentence, findings=findings)
    gone = writer.taken_back if writer is not None else None
    passed_over = start.again and (gone is None or not gone[0] <= batch <= gone[1])
    match = match_batch(checkpoint, log, batch) if passed_over and newest >= batch else Match.SAME
    if newest > batch or (newest == batch and (not passed_over or match is Match.OTHER)):
        return _foresee_drops(checkpoint, outlook, batch + (passed_over and match is not Match.OTHER), newest)
    if newest == batch:
        return (_foresee_pass if match is Match.SAME else _foresee_doubt)(checkpoint, outlook)
    if newest < batch - 1:
        return _foresee_lack(checkpoint, outlook, newest + 1)
    outlook = replace(outlook, said=f"its last batch is {newest}, so batch {batch} is written")
    return outlook if gone is None or gone[0] >= batch else _foresee_restored(checkpoint, outlook, gone)


def _foresee_first(checkpoint: Checkpoint, log: SinkLog, start: _Start) -> SinkOutlook:
    sentence = f"it has no batch of this query, so batch {start.batch} is written"
    others = ""
    if log.writers:
        more = f" and {len(log.writers) - 1} more" if log.writers[1:] else ""
        others = f"; it has batches of {log.writers[0].app_id} up to {log.writers[0].last_batch}{more}"
    by_code = next((each for each in log.writers if not each.may_be_query and each.last_batch >= start.batch), None)
    if by_code is not None and log.sink.is_by_query:
        others += f"; code in foreachBatch with the txnAppId {by_code.app_id} drops batches up to {by_code.last_batch}"
    if start.batch == 0:
        return SinkOutlook(log, SinkOutcome.CONTINUES, sentence + others, start.batch)
    detail = f"{log.uri} has no {log.sink.record} of this query, and batch {start.batch} runs next{others}"
    if log.cut:
        detail += "; its first snapshots have expired, and with them its record of their batches"
    # a Delta table that is older than the newest batch, and has no transactions, though none would have expired
    older = log.created_ms is not None and log.created_ms < checkpoint.planned_ms(checkpoint.offsets.latest)
    without_ids = older and not log.writers and log.retention is None
    if without_ids:
        detail += "; no query ever wrote to it by batch id, as is usual in foreachBatch, such as with MERGE"
    usual = without_ids and not start.again  # a batch that runs again would be in the table twice
    findings = (Finding(diagnoses.sinks.SINK_WITHOUT_QUERY, "", detail, minor=usual),)
    outcome = SinkOutcome.UNKNOWN_QUERY
    return SinkOutlook(log, outcome, sentence, start.batch, keeps_no_ids=without_ids, findings=findings)


def _foresee_restored(checkpoint: Checkpoint, outlook: SinkOutlook, gone: Batches) -> SinkOutlook:
    """Foresee a start with a table that knows batches of which it no longer has the rows."""
    last = min(gone[1], (outlook.next_batch or 0) - 1)
    which = span("batch", gone[0], last)
    detail = f"{outlook.log.uri} was restored: the rows of {which} were removed"
    advice, writer = None, outlook.log.writer(checkpoint.query_id)
    if writer is not None and writer.kept is None and gone[0] > 0:
        advice = BOOK.advise("sink_restored_unsaid", which=which)
    elif writer is not None and gone[0] > 0:
        version = str(outlook.log.version if writer.last_batch <= gone[1] else writer.restored_to)
        advice = BOOK.advise("sink_restored", version=version, sink=outlook.log.uri, which=which)
    return replace(
        outlook,
        outcome=SinkOutcome.LACKS,
        said=f"{outlook.said}; a RESTORE removed the rows of {which}",
        lacks=(gone[0], last),
        findings=(Finding(diagnoses.sinks.SINK_RESTORED, "", detail, advice),),
    )


def _foresee_drops(checkpoint: Checkpoint, outlook: SinkOutlook, first: int, newest: int) -> SinkOutlook:
    lost, batch = span("batch", first, newest), outlook.next_batch or 0
    before = f"batch {batch}, which runs again, is skipped; " if first > batch else ""
    why = _find_lost_state(checkpoint, batch, outlook.log.sink)
    dropped = f"new rows of {lost} will be silently dropped"
    if why is not None:
        failing = batch if checkpoint.state is not None and checkpoint.state.format_version > 1 else batch + 1
        dropped = f"rows of {lost} will not be written, and batch {failing} fails because it lacks the state of {batch}"
    detail = f"{outlook.log.uri} has batch {newest}, and batch {batch} runs next: {dropped}"
    if first == batch and batch in checkpoint.offsets:
        detail += f"; this batch {batch} is a different one: {describe_times(checkpoint, outlook.log, batch)}"
    sentence = f"its last batch is {newest}: {before}{dropped}"
    outlook = replace(outlook, outcome=SinkOutcome.DROPS, said=sentence, dropped=(first, newest), forget_from=batch)
    return replace(outlook, findings=(_build_drop(checkpoint, outlook, detail),))


def _foresee_doubt(checkpoint: Checkpoint, outlook: SinkOutlook) -> SinkOutlook:
    """Foresee a start with a sink that has a batch of this id, perhaps another one."""
    batch = outlook.next_batch or 0
    times = describe_times(checkpoint, outlook.log, batch)
    which = f"it is unknown whether its batch {batch} is the one that runs again: {times}"
    sentence = f"{which}; if it is a different one, rows of batch {batch} will be dropped"
    outlook = replace(outlook, outcome=SinkOutcome.MAY_DROP, said=sentence, dropped=(batch, batch), forget_from=batch)
    return replace(outlook, findings=(_build_drop(checkpoint, outlook, f"{outlook.log.uri}: {sentence}"),))


def _add_dropped(checkpoint: Checkpoint, outlook: SinkOutlook) -> SinkOutlook:
    """Add the committed batches whose rows the sink has dropped, because it had other batches of these ids."""
    dropped = find_dropped(checkpoint, outlook.log)
    if dropped is None:
        return outlook
    which = span("batch", dropped.first, dropped.last)
    rows = f"the rows of {which} {'were' if dropped.certain else 'may have been'} dropped, though committed here"
    also = f", perhaps also of batches before {dropped.first}" if dropped.since_before else ""
    times = describe_times(checkpoint, outlook.log, dropped.last)
    passes = outlook.outcome in (SinkOutcome.CONTINUES, SinkOutcome.PASSES_OVER)
    outlook = replace(
        outlook,
        outcome=SinkOutcome.LACKS if passes and dropped.certain else outlook.outcome,
        said=f"{outlook.said}; {rows}{also}",
        lacks=outlook.lacks or ((dropped.first, dropped.last) if dropped.certain else None),
        forget_from=dropped.first,
    )
    earlier = [f.detail for f in outlook.findings if f.diagnosis is diagnoses.sinks.SINK_WILL_DROP]
    others = (f for f in outlook.findings if f.diagnosis is not diagnoses.sinks.SINK_WILL_DROP)
    detail = f"{outlook.log.uri}: {rows}{also}; its batch {dropped.last} is a different one: {times}"
    drop = _build_drop(checkpoint, outlook, "; ".join((*earlier, detail)))
    return replace(outlook, findings=(replace(drop, minor=dropped.past and outlook.dropped is None), *others))


def _build_drop(checkpoint: Checkpoint, outlook: SinkOutlook, detail: str) -> Finding:
    """Build the finding of rows that a sink drops or has dropped, with the cure for this sink."""
    last, log = outlook.last_batch, outlook.log
    continued = last is not None and last in checkpoint.offsets and match_batch(checkpoint, log, last) is Match.SAME
    cure = describe_cure(checkpoint, outlook)
    if outlook.outcome is SinkOutcome.MAY_DROP:
        cure = cure.lead(words("This is right whichever batch the sink has."))
    if continued:
        cure = cure.lead(words("Do not start the query."))
    else:
        cure = BOOK.advise("sink_drops") + cure.lead(words("If it is gone:"))
    return Finding(diagnoses.sinks.SINK_WILL_DROP, "", detail, cure)


def describe_cure(checkpoint: Checkpoint, outlook: SinkOutlook) -> Advice:
    """Advise how to make a sink accept the rows that it drops."""
    following, sink = outlook.next_batch, outlook.log.sink
    first = (following or 0) if outlook.forget_from is None else outlook.forget_from
    writer = outlook.log.writer(checkpoint.query_id)
    snapshot = writer.before.get(first) if writer is not None else None  # of an Iceberg table, before that batch's
    remembered = Seen(first, outlook.last_batch, checkpoint.query_id, snapshot)
    is_there = following is not None and first >= following
    if first <= 0 or sink.taken_back is None or (snapshot is None and sink.record == "snapshot"):
        if is_there and sink.drops_new_query:
            return advise(do(Do.CHANGE, sink.new_checkpoint(remembered)))
        return BOOK.advise("sink_new_place" if is_there else "sink_start_over")
    cure = advise(sink.taken_back(remembered))
    if is_there or (sink.record == "transaction" and sink.is_by_query):  # it goes back by itself
        return cure
    return BOOK.advise("sink_go_back", kept=remembered.kept) + cure


def _foresee_pass(checkpoint: Checkpoint, outlook: SinkOutlook) -> SinkOutlook:
    batch = outlook.next_batch or 0
    sentence = f"it already has batch {batch}: the batch runs again and is skipped, and batch {batch + 1} is written"
    lost = _find_lost_state(checkpoint, batch, outlook.log.sink)
    diagnosis, why = diagnoses.sinks.SINK_HAS_NEXT, "which is not committed here"
    if lost is not None:
        diagnosis, why = diagnoses.sinks.SINK_PASSES_OVER_STATE, f"and {lost}"
        sentence = f"it already has batch {batch}: the batch runs again and is skipped, and the query fails"
    findings = (Finding(diagnosis, "", f"{outlook.log.uri} has batch {batch}, {why}"),)
    outcome, needs_noop = SinkOutcome.PASSES_OVER, lost is not None
    return replace(outlook, outcome=outcome, said=sentence, findings=findings, needs_noop=needs_noop)


def _find_lost_state(checkpoint: Checkpoint, batch: int, sink: Sink) -> str | None:
    """Say why a start that passes over a batch has no state of it afterwards; None where it has, or needs none."""
    state = checkpoint.state
    if state is None or not state.operators or sink.computes_first:
        return None
    if state.format_version > 1:
        return f"the state has checkpoint format {state.format_version}"
    if sink.fails_with_state:
        return "Spark 4.2 and later fail a stateful batch that foreachBatch skips"
    newest = (partition.newest_version for _, store in checkpoint.stores() for partition in store.partitions)
    if all(version is not None and version > batch for version in newest):
        return None
    return f"version {batch + 1} of the state (after batch {batch}) is missing in some partitions"


def _foresee_lack(checkpoint: Checkpoint, outlook: SinkOutlook, first: int) -> SinkOutlook:
    batch, log = outlook.next_batch or 0, outlook.log
    missing = span("batch", first, batch - 1)
    has = f"its last batch is {first - 1}" if first else "it has no batch"
    skipped = all(map(checkpoint.is_skipped, range(first, batch)))
    if skipped and not log.sink.unbroken_log:
        return replace(outlook, said=f"{has}, so batch {batch} is written; a skip left out {missing}")
    diagnosis = diagnoses.sinks.SINK_LOG_WILL_BREAK if log.sink.unbroken_log else diagnoses.sinks.SINK_LACKS
    lacking = "sink_log_lacks" if log.sink.unbroken_log else "sink_lacks"
    named = {"kept": first - 1, "log": log.sink.unbroken_log}
    advice = BOOK.advise(lacking if first else f"{lacking}_all", **named)
    detail = f"{log.uri} lacks {missing}, {'left out by a skip' if skipped else 'though committed here'}"
    return replace(
        outlook,
        outcome=SinkOutcome.LACKS,
        said=f"{has}, so batch {batch} is written; {missing} {'is' if first == batch - 1 else 'are'} not in it",
        lacks=(first, batch - 1),
        findings=(Finding(diagnosis, "", detail, _fill_skipped(checkpoint, log) or advice),),
    )


def _fill_skipped(checkpoint: Checkpoint, log: SinkLog) -> Advice | None:
    """Build the advice for a file sink whose log lacks batches that were skipped, and no others."""
    if log.file_log is None or log.file_log.interval <= 0:
        return None
    latest, after = checkpoint.offsets.latest, -1 if log.last_batch is None else log.last_batch
    missing = [batch for low, high in log.file_log.missing for batch in range(low, high + 1)]
    missing += [batch for batch in checkpoint.commits.ids if latest is not None and after < batch <= latest]
    lacking = [batch for batch in missing if batch >= log.file_log.first_needed]
    if not lacking or not all(map(checkpoint.is_skipped, lacking)):
        return None
    return BOOK.advise("sink_skipped", fills=join([_describe_fill(log, batch) for batch in lacking], ", and then "))


def _describe_fill(log: SinkLog, batch: int) -> Words:
    """Say how an entry without a file gets into the log of a file sink: a sentence without its full stop.

    A plain entry is a version line and nothing else. One that is due as a compacted file has the lines of all entries
    since the compacted file before it, as ``CompactibleFileStreamLog.compact`` writes them.
    """
    assert log.file_log is not None
    name = log.file_log.name_of(batch)
    folder, local = f"{log.uri.rstrip('/')}/{FILE_LOG}", local_path(log.uri)
    merged = [log.file_log.name_of(entry) for entry in range(log.file_log.first_needed, batch)]
    inside = "that contains only the line v1"
    write = f"printf v1 > {quote_path(f'{local}/{FILE_LOG}/{name}')}"
    if name.endswith(COMPACT):
        inside = f"that contains v1 and then every line but the first of {merged[0]} to {merged[-1]}, in this order"
        files = " ".join(merged)
        write = f"cd {quote_path(f'{local}/{FILE_LOG}')} && (echo v1; awk 'FNR > 1' {files}) > {name}"
    if local is None:
        return words("put a file {name} {inside} into {folder}", name=name, inside=inside, folder=folder)
    parts = {"name": name, "inside": inside, "log": FILE_LOG}
    return words("put a file {name} {inside} into its {log}: {write}", **parts, write=Code(write))


def build_first_mark(checkpoint: Checkpoint) -> PlannedBatch | None:
    """Build the mark that fits this checkpoint: the batch that is planned and not committed; None: there is none."""
    latest = checkpoint.offsets.latest
    if latest is None or checkpoint.offsets.newest is None or latest in checkpoint.commits:
        return None
    return PlannedBatch(latest, checkpoint.planned_ms(latest))


def find_noop_start(checkpoint: Checkpoint, sink: SinkOutlook | None) -> Iterator[Finding]:
    """Find the mark of a batch that has to run into ``noop``, unless a sink that was asked knows better."""
    mark, due = checkpoint.first_start, build_first_mark(checkpoint)
    if due is None or (sink is not None and sink.certain and not sink.log.sink.doubles):
        return
    if isinstance(mark, Unreadable):
        detail = f"batch {due.batch} runs next, but {FIRST_START} cannot be read: {mark.reason}"
        yield Finding(diagnoses.sinks.FIRST_START_UNREADABLE, FIRST_START, detail)
    elif mark == due:
        yield Finding(diagnoses.sinks.FIRST_INTO_NOOP, FIRST_START, f"batch {due.batch} runs next, and sinks have it")


def find_shared_table(checkpoint: Checkpoint, sink: SinkLog | None) -> Iterator[Finding]:
    """Find that several flows write one table: a warning where that is one of files, a note where nobody looked."""
    flow = checkpoint.flow
    if flow is None or not flow.siblings or (sink is not None and sink.kind != SinkKind.FILE):
        return
    names = ", ".join((flow.flow.name, *flow.siblings))
    detail = f"{flow.flow.table} has the flows {names}"
    yield Finding(diagnoses.modes.SHARED_TABLE, "", detail, minor=sink is None)
