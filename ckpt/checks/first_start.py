"""A batch that ckpt took back, and that has to run once into ``noop`` before the query is started as usual."""

from collections.abc import Iterator

from ckpt import diagnoses
from ckpt.checkpoint import FIRST_START, Checkpoint
from ckpt.checks.sink_outlook import SinkOutlook
from ckpt.findings import Finding
from ckpt.model import FirstStart

_ASK_THE_SINK = (
    "Find out first whether the sink has that batch: `ckpt inspect {checkpoint} --sink URI` says so of a Delta or "
    "Iceberg table and of the output of a file sink. If it has, start the query once with "
    '`.writeStream.format("noop").trigger(once=True)` in a new driver, and then as usual. If it has not, start it as '
    "usual at once: a start into noop would lose the rows of the batch."
)


def first_start(checkpoint: Checkpoint) -> FirstStart | None:
    """What a mark left in this checkpoint has to say: the batch that is planned and not committed, as planned."""
    latest = checkpoint.offsets.latest
    log = checkpoint.offsets.readable(latest)
    if latest is None or log is None or latest in checkpoint.commits:
        return None
    return FirstStart(latest, log.metadata.timestamp_ms if log.metadata else 0)


def into_noop(checkpoint: Checkpoint, sink: SinkOutlook | None) -> Iterator[Finding]:
    """The mark of such a batch, until it is committed or planned anew; a sink that was asked knows better."""
    mark, due = checkpoint.first_start, first_start(checkpoint)
    if mark is None or due is None or (sink is not None and sink.certain):
        return
    if not isinstance(mark, FirstStart):
        detail = f"batch {due.batch} runs next, and {FIRST_START} cannot be read: {mark.reason}"
        yield Finding(diagnoses.sinks.FIRST_INTO_NOOP, FIRST_START, detail, _ASK_THE_SINK)
    elif mark == due:
        yield Finding(diagnoses.sinks.FIRST_INTO_NOOP, FIRST_START, f"batch {due.batch} runs next, and sinks have it")
