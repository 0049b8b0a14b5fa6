"""The rules of a restart, in the order in which Spark comes to them.

They follow ``MicroBatchExecution.populateStartOffsets`` and what it calls; the first rule that has something to say
decides. ``docs/restart.md`` explains them in the same order, and ``tests/oracle`` holds Spark's own answers.
"""

from ckpt import findings
from ckpt.checkpoint import COMMITS, METADATA, OFFSETS, STATE, Checkpoint
from ckpt.findings import Finding
from ckpt.model import CommitLog, Fault, Json, Kind, OffsetLog, Unreadable
from ckpt.restart import words
from ckpt.restart.forecast import Forecast, Outcome, SourceRange
from ckpt.restart.start import Start
from ckpt.restart.state_errors import load_failure
from ckpt.restart.versions import Progress, Spark


def forecast(checkpoint: Checkpoint, spark: Spark, progress: Progress) -> Forecast:
    """What the next start does: a pure function of what was read."""
    start = Start(checkpoint, spark, progress)
    for rule in _RULES:
        answer = rule(start)
        if answer is not None:
            return answer
    return start.ends(Outcome.UNKNOWN)


def _no_micro_batches(start: Start) -> Forecast | None:
    """A continuous-processing checkpoint follows other rules, which ckpt does not know."""
    if start.checkpoint.kind is not Kind.CONTINUOUS:
        return None
    found = Finding(findings.CONTINUOUS, OFFSETS, "offsets as continuous processing writes them")
    return start.ends(Outcome.UNKNOWN, found)


def _query_metadata(start: Start) -> Forecast | None:
    """``StreamExecution`` reads the query id first (``StreamMetadata.read``)."""
    metadata = start.checkpoint.metadata
    if isinstance(metadata, Unreadable):
        return start.fails(
            findings.UNREADABLE_METADATA, METADATA, metadata.reason, words.metadata_words(metadata)
        )
    used = start.latest is not None or start.committed is not None
    if metadata is None and used and start.rules.needs_metadata:
        detail = "the file is not there, though batches were planned"
        return start.fails(
            findings.MISSING_METADATA, METADATA, detail, "STREAMING_CHECKPOINT_MISSING_METADATA_FILE"
        )
    return None


def _nothing_planned(start: Start) -> Forecast | None:
    """Without offsets Spark takes the query for a new one."""
    if start.latest is not None:
        return None
    checkpoint = start.checkpoint
    words = start.rules.new_query_needs_empty
    left = [f for f in (OFFSETS, STATE, COMMITS) if words.has_visible_entry(checkpoint.listing, f)]
    if left and words:
        detail = f"offsets/ names no batch, and {' and '.join(f + '/' for f in left)} is not empty"
        return start.fails(findings.COMMITS_WITHOUT_OFFSETS, left[0], detail, words)
    if start.committed is not None:
        detail = f"offsets/ names no batch, and commits/ ends at batch {start.committed}"
        found = Finding(findings.COMMITS_WITHOUT_OFFSETS, COMMITS, detail)
        if 0 in checkpoint.commits:
            return start.ends(
                Outcome.FAILS_AT_COMMIT, found, batch_id=0, reexecutes=False, error=words.CONCURRENT_UPDATE
            )
        return start.ends(Outcome.STARTS_FRESH, found, batch_id=0, reexecutes=False)
    return _blocked(start, 0, fresh=True) or start.ends(Outcome.STARTS_FRESH, batch_id=0, reexecutes=False)


def _latest_offsets(start: Start) -> Forecast | None:
    """``OffsetSeqLog.getLatest``."""
    assert start.latest is not None
    return _offset_file(start, start.latest)


def _offset_file(start: Start, batch_id: int) -> Forecast | None:
    """A start that reads ``offsets/<batch_id>`` and cannot."""
    entry = start.checkpoint.offsets.entries.get(batch_id)
    return _log_file(start, entry, f"{OFFSETS}/{batch_id}", start.rules.newest_offset_log)


def _log_file(
    start: Start, entry: OffsetLog | CommitLog | Unreadable | None, path: str, newest: int
) -> Forecast | None:
    if isinstance(entry, Unreadable) and entry.fault is not Fault.NEWER_VERSION:
        return start.fails(
            findings.UNREADABLE_LOG, path, entry.reason, words.unreadable_words(entry, path)
        )
    version = entry.version if entry is not None else None
    if version is not None and version > newest:
        detail = f"its version line is v{version}, and Spark {start.spark} reads at most v{newest}"
        return start.fails(findings.NEWER_LOG_VERSION, path, detail, words.NEWER_VERSION)
    return None


def _predecessor(start: Start) -> Forecast | None:
    """The offsets that the latest batch begins at (``validateOffsetLogAndGetPrevOffset``)."""
    latest, found = start.latest, start.predecessor
    assert latest is not None
    if found is not None:
        return _offset_file(start, found) or _same_sources(start, found, latest)
    if latest == 0 or start.progress is Progress.ASYNC:
        return None
    looked_up_by_repartition_check = start.rules.checks_repartition and (
        start.committed is not None and start.committed < latest
    )
    error = words.previous_not_found(latest - 1) if looked_up_by_repartition_check else words.does_not_exist(latest - 1)
    stateful = start.checkpoint.stateful
    diagnosis = findings.LOST_PREDECESSOR if stateful else findings.MISSING_PREDECESSOR
    nearest = start.checkpoint.offsets.before(latest)
    there = "no earlier batch is there" if nearest is None else f"the nearest earlier batch is {nearest}"
    detail = f"a synchronous start looks for the offsets of batch {latest - 1}; {there}"
    return start.fails(diagnosis, f"{OFFSETS}/{latest - 1}", detail, error)


def _same_sources(start: Start, earlier: int, latest: int) -> Forecast | None:
    """``OffsetSeq.toStreamProgress`` wants as many sources as the query has, in both files."""
    before, after = (start.checkpoint.offsets.readable(i) for i in (earlier, latest))
    if before is None or after is None or len(before.sources) == len(after.sources):
        return None
    detail = f"batch {earlier} has {len(before.sources)} sources, batch {latest} has {len(after.sources)}"
    return start.fails(findings.SOURCES_DIFFER, f"{OFFSETS}/{latest}", detail, words.SOURCES_DIFFER)


def _unfinished_repartition(start: Start) -> Forecast | None:
    """``checkUnfinishedRepartitionBatch``: Spark 4.2 and later, unless tracking is asynchronous."""
    latest = start.latest
    if not (start.rules.checks_repartition and start.progress is Progress.SYNC and latest):
        return None
    if start.committed is None or start.committed >= latest:
        return None
    before, after = (start.checkpoint.offsets.readable(i) for i in (latest - 1, latest))
    if before is None or after is None:
        return None
    path = f"{OFFSETS}/{latest}"
    partitions = [log.metadata.conf.get(SHUFFLE_PARTITIONS) if log.metadata else None for log in (before, after)]
    if None in partitions:
        detail = "it does not record the number of shuffle partitions, which the check for an unfinished repartition needs"
        return start.fails(findings.UNFINISHED_REPARTITION, path, detail, None)
    if partitions[0] == partitions[1]:
        return None
    detail = f"{partitions[1]} shuffle partitions, where batch {latest - 1} has {partitions[0]}"
    return start.fails(findings.UNFINISHED_REPARTITION, path, detail, "STREAMING_UNFINISHED_REPARTITION_DETECTED")


def _latest_commit(start: Start) -> Forecast | None:
    """``CommitLog.getLatest``."""
    if start.committed is None:
        return None
    entry = start.checkpoint.commits.entries.get(start.committed)
    return _log_file(start, entry, f"{COMMITS}/{start.committed}", start.rules.newest_commit_log)


def _first_batch(start: Start) -> Forecast | None:
    """The log is in order: a batch is run."""
    assert start.latest is not None
    end = start.checkpoint.offsets.readable(start.latest)
    begin = start.checkpoint.offsets.readable(start.predecessor)
    if end is None:
        return None
    if start.resumes:
        batch_id, ranges = start.latest + 1, _ranges(end, None)
    else:
        batch_id, ranges = start.latest, _ranges(begin, end)
    refused = _asynchronous_with_state(start, batch_id, ranges)
    return refused or _state(start, batch_id, ranges) or _blocked(start, batch_id, ranges) or _runs(start, batch_id, ranges)


def _ranges(begin: OffsetLog | None, end: OffsetLog | None) -> tuple[SourceRange, ...]:
    sides = [log.sources if log else () for log in (begin, end)]
    count = max(map(len, sides))
    values = [[source.value for source in side] + [None] * (count - len(side)) for side in sides]
    return tuple(SourceRange(i, a, b) for i, (a, b) in enumerate(zip(*values, strict=True)))


def _asynchronous_with_state(start: Start, batch_id: int, ranges: tuple[SourceRange, ...]) -> Forecast | None:
    """``AsyncProgressTrackingMicroBatchExecution.markMicroBatchExecutionStart`` looks for stateful operators."""
    if start.progress is Progress.SYNC or not start.checkpoint.stateful:
        return None
    found = Finding(findings.ASYNC_REFUSES_STATE, STATE, "the checkpoint has state")
    return start.ends(Outcome.REFUSED, found, error=words.ASYNC_REFUSES_STATE)


def _state(start: Start, batch_id: int, ranges: tuple[SourceRange, ...]) -> Forecast | None:
    """Batch B loads state version B of every store in every partition."""
    state = start.checkpoint.state
    failing = [
        (damage, failure)
        for damage in (state.damages if state else ())
        if (failure := load_failure(damage, state.provider, start.spark)) is not None
    ]
    if not failing:
        return None
    because = tuple(Finding(_STATE_DIAGNOSES[d.kind], d.path, d.detail) for d, _ in failing)
    return start.ends(
        Outcome.FAILS_IN_BATCH,
        *because,
        batch_id=batch_id,
        reexecutes=not start.resumes,
        sources=ranges,
        error=failing[0][1],
    )


def _blocked(start: Start, batch_id: int, ranges: tuple[SourceRange, ...] = ()) -> Forecast | None:
    """Something lies where the batch is to be written: first its offsets (if it is new), then its commit."""
    new = not start.resumes or start.latest is None
    return None


def _runs(start: Start, batch_id: int, ranges: tuple[SourceRange, ...]) -> Forecast | None:
    return None
