"""Findings in the offset and commit logs that no start trips over."""

from collections.abc import Iterator
from itertools import pairwise

from ckpt import findings
from ckpt.checkpoint import Checkpoint
from ckpt.findings import Finding
from ckpt.history import Pattern, pattern, unplanned
from ckpt.model import OffsetLog


def unreadable_files(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Files that cannot be read and that no start reads (the forecast speaks of the others)."""
    latest = checkpoint.offsets.latest
    read_by_a_start = {
        "offsets": {latest, checkpoint.offsets.before(latest) if latest else None},
        "commits": {checkpoint.commits.latest},
    }
    for log in (checkpoint.offsets, checkpoint.commits):
        for batch_id in log.unreadable:
            if batch_id not in read_by_a_start[log.folder]:
                entry = log.entries[batch_id]
                reason = getattr(entry, "reason", "")
                yield Finding(findings.UNREADABLE_LOG_IGNORED, f"{log.folder}/{batch_id}", reason)


def ignored_gaps(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Gaps below what a start looks at."""
    latest = checkpoint.offsets.latest
    needed = {latest, latest - 1} if latest else set()
    for log in (checkpoint.offsets, checkpoint.commits):
        spans = [(a, b) for a, b in log.missing if not (log is checkpoint.offsets and b in needed and a == b)]
        if spans:
            count = sum(b - a + 1 for a, b in spans)
            first = f"{spans[0][0]}" if spans[0][0] == spans[0][1] else f"{spans[0][0]} to {spans[0][1]}"
            detail = f"{count} batches between {log.ids[0]} and {log.latest} have no file, the first of them {first}"
            yield Finding(findings.GAP_IGNORED, log.folder, detail)
    stray = [i for i in unplanned(checkpoint) if latest is not None and i < latest]
    if stray:
        detail = f"{len(stray)} committed batches have no offsets, the first of them {stray[0]}"
        yield Finding(findings.GAP_IGNORED, "offsets", detail)


def two_writers(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Batches planned in the order of their ids are planned at rising times, and a watermark never falls."""
    entries = sorted(checkpoint.offsets.entries.items())
    told = [(i, e.metadata) for i, e in entries if isinstance(e, OffsetLog) and e.metadata]
    for (earlier, before), (later, after) in pairwise(told):
        if after.watermark_ms < before.watermark_ms:
            detail = f"the watermark of batch {later} lies before that of batch {earlier}"
        elif after.timestamp_ms < before.timestamp_ms:
            detail = f"batch {later} was planned at an earlier time than batch {earlier}"
        else:
            continue
        yield Finding(findings.TWO_WRITERS, f"offsets/{later}", detail)
        return


def log_lags_behind(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Asynchronous tracking plans and runs batches that it does not log."""
    if pattern(checkpoint) is Pattern.ASYNC_PROGRESS:
        detail = f"rows after the offsets of batch {checkpoint.offsets.latest} may have been written already"
        yield Finding(findings.LOG_LAGS_BEHIND, f"offsets/{checkpoint.offsets.latest}", detail)


CHECKS = (unreadable_files, ignored_gaps, two_writers, log_lags_behind)
