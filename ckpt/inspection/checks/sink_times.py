"""Compares when a sink wrote a batch with when the checkpoint planned the batch of that id; pure.

A sink knows batches by their ids alone. If an older checkpoint was restored and started, its batches are other ones
under ids that the sink has. The sink writes a batch after Spark has planned it (``batchTimestampMs``, which
``MicroBatchExecution.constructNextBatch`` sets, and which stays the same when the batch runs again), so an entry that
is older than the plan is another batch.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.live.sink.records import SinkKind, SinkLog
from ckpt.storage.locations import is_same_kind
from ckpt.texts import instant

CLOCKS_APART_MS = 60_000
"""How far the clocks of two machines may be apart: with NTP it is less than a second, without it easily more."""

_SECOND_MS = 1000  # some storages know the time of a file to the second only (S3)


class Match(StrEnum):
    """The relation of a batch in a sink to the batch that the checkpoint planned under its id."""

    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"  # a time is missing, or they are so close that two clocks may explain it


@dataclass(frozen=True, slots=True)
class DroppedBatches:
    """Committed batches whose rows the sink has dropped, because it had other batches of these ids."""

    first: int
    last: int
    certain: bool  # False: two clocks that are not the same may explain it
    since_before: bool  # the batches before the first one were not read: some of them may be dropped too
    past: bool  # none is among the newest, which are judged


def match_batch(checkpoint: Checkpoint, log: SinkLog, batch: int) -> Match:
    """Tell whether the batch that the sink has under an id is the one that the checkpoint planned."""
    late_ms = _measure_lateness_ms(checkpoint, log, batch)
    if late_ms is None:
        return Match.UNKNOWN
    if late_ms <= 0:
        return Match.SAME
    return Match.OTHER if late_ms > CLOCKS_APART_MS else Match.UNKNOWN


def find_dropped(checkpoint: Checkpoint, log: SinkLog) -> DroppedBatches | None:
    """Find the newest committed batches that were planned after the sink had written batches of their ids.

    Where the sink's times are those of another clock than the checkpoint's, such as of an object store, only a
    difference that no clock explains counts.
    """
    one_clock = log.kind != SinkKind.FILE or is_same_kind(log.uri, checkpoint.uri)
    lateness = {
        batch: late_ms
        for batch in checkpoint.offsets.ids
        if batch in checkpoint.commits and (late_ms := _measure_lateness_ms(checkpoint, log, batch)) is not None
    }
    limit_ms = 0 if one_clock else CLOCKS_APART_MS
    late = [batch for batch, late_ms in lateness.items() if late_ms > limit_ms]
    if not late:
        return None
    read = sorted(lateness)
    run = sorted(takewhile(lambda batch: batch in late, reversed(read[: read.index(late[-1]) + 1])))
    before = checkpoint.offsets.before(run[0])
    return DroppedBatches(
        run[0],
        run[-1],
        certain=max(lateness[batch] for batch in run) > CLOCKS_APART_MS,
        since_before=before is not None and before not in checkpoint.offsets.entries,
        past=checkpoint.is_past(run[-1]),
    )


def describe_times(checkpoint: Checkpoint, log: SinkLog, batch: int) -> str:
    """Say when the sink wrote a batch and when the checkpoint planned the one of that id, as a part of a sentence."""
    written_ms, planned_ms = log.written_by(checkpoint.query_id, batch), checkpoint.planned_ms(batch)
    if written_ms is None:
        return "the sink does not record when it wrote its own"
    wrote = f"the sink wrote its own at {instant(written_ms)}"
    if planned_ms <= 0:
        return f"{wrote}, but the offsets do not record when this one was planned"
    gap_ms = planned_ms - written_ms
    if gap_ms < CLOCKS_APART_MS:
        return f"{wrote}, {gap_ms / _SECOND_MS:,.1f} s before this one was planned"
    return f"{wrote}, before this one was planned at {instant(planned_ms)}"


def _measure_lateness_ms(checkpoint: Checkpoint, log: SinkLog, batch: int) -> int | None:
    """Measure how long after the sink's entry of its id a batch was planned; 0 or less: not after it."""
    planned_ms, written_ms = checkpoint.planned_ms(batch), log.written_by(checkpoint.query_id, batch)
    if planned_ms <= 0 or written_ms is None:
        return None
    info = checkpoint.listing.info(f"{OFFSETS}/{batch}")
    stored_ms = info.mtime_ms if info is not None and info.mtime_ms is not None else planned_ms
    if abs(stored_ms - planned_ms) < CLOCKS_APART_MS:  # otherwise the file was copied since
        planned_ms = min(planned_ms, stored_ms)  # by the clock of the storage, which may be that of the sink too
    latest_ms = written_ms + (_SECOND_MS - 1 if written_ms % _SECOND_MS == 0 else 0)
    return planned_ms - latest_ms
