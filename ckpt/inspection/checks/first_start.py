"""A batch that ckpt took back, and that has to run once into ``noop`` before the query is started as usual."""

from collections.abc import Iterator

from ckpt.checkpoint.checkpoint import FIRST_START, Checkpoint
from ckpt.inspection.checks.sink_outlook import SinkOutlook
from ckpt.model import FirstStart, Unreadable
from ckpt.restart import diagnoses
from ckpt.restart.findings import Finding


def build_first_mark(checkpoint: Checkpoint) -> FirstStart | None:
    """Build the mark that fits this checkpoint: the batch that is planned and not committed; None: there is none."""
    latest = checkpoint.offsets.latest
    log = checkpoint.offsets.readable(latest)
    if latest is None or log is None or latest in checkpoint.commits:
        return None
    return FirstStart(latest, log.metadata.timestamp_ms if log.metadata else 0)


def is_in_sinks(checkpoint: Checkpoint) -> bool:
    """Tell whether a mark says that sinks have the batch that is planned and not committed."""
    due = build_first_mark(checkpoint)
    return due is not None and checkpoint.first_start == due


def find_noop_start(checkpoint: Checkpoint, sink: SinkOutlook | None) -> Iterator[Finding]:
    """Find the mark of a batch that has to run into ``noop``, unless a sink that was asked knows better."""
    mark, due = checkpoint.first_start, build_first_mark(checkpoint)
    if due is None or (sink is not None and sink.certain):
        return
    if isinstance(mark, Unreadable):
        detail = f"batch {due.batch} runs next, and {FIRST_START} cannot be read: {mark.reason}"
        yield Finding(diagnoses.sinks.FIRST_START_UNREADABLE, FIRST_START, detail)
    elif mark == due:
        yield Finding(diagnoses.sinks.FIRST_INTO_NOOP, FIRST_START, f"batch {due.batch} runs next, and sinks have it")
