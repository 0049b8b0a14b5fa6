"""Doubts and warnings about a new query that takes over, in words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.history import Pattern, pattern
from ckpt.checkpoint.sources.starts import Begin
from ckpt.inspection.inspection import RatedFinding
from ckpt.migrate.handoff.starts import SourceStart
from ckpt.model import QueryMetadata
from ckpt.restart.diagnoses.others import OFFSETS_WENT_BACK
from ckpt.restart.sinks import SINKS


@dataclass(frozen=True, slots=True)
class SinkMeaning:
    """The meaning of a new checkpoint, whose batches count from 0 again, to one kind of sink."""

    kind: str
    meaning: str


def describe_sinks(checkpoint: Checkpoint, batch: int) -> tuple[SinkMeaning, ...]:
    """Describe every kind of sink: offsets and commits do not say which one the query had, but for commit log v3."""
    query = checkpoint.metadata.query_id if isinstance(checkpoint.metadata, QueryMetadata) else None
    old = query or "that is the id of the old query"
    last = max((batch, *checkpoint.offsets.ids[-1:], *checkpoint.commits.ids[-1:]))
    return tuple(
        SinkMeaning(sink.kind, sink.new_checkpoint.format(query=old, next=batch + 1, last=last)) for sink in SINKS
    )


def list_doubts(
    checkpoint: Checkpoint, batch: int, starts: Sequence[SourceStart], *, newest_readable: bool
) -> Iterator[str]:
    """Say why a new query that continues after a batch may read some rows twice.

    ``newest_readable`` says whether the state of the newest committed batch can be loaded in all partitions.
    """
    commits, latest = checkpoint.commits, checkpoint.offsets.latest
    newest = commits.ids[-1]
    if newest > batch:
        why = "" if newest_readable else ", but its state cannot be loaded (ckpt inspect says why; fix that first)"
        yield (
            f"Batch {newest} is committed{why}: what the old query read after batch {batch} is in the sink, and is "
            "read again."
        )
    earliest = [start for start in starts if start.begin is Begin.EARLIEST]
    if latest is not None and latest > max(batch, newest):
        yield f"Batch {latest} was planned and not committed" + (
            ", and ends before it starts: do not start the old query again, because once it commits this batch it "
            "skips every row below its end."
            if earliest
            else ": its rows may be in the sink, and are read again. Start the old query once more, so that it "
            "commits the batch, and then run this again."
        )
    for start in earliest:
        yield (
            f"The offsets of source {start.view.index} ({start.view.type}) went back after batch {batch}: a topic was "
            "recreated, and is read from its earliest rows, so that none is lost. If rows were taken from its end "
            "instead, those that are left are read again."
        )
    if pattern(checkpoint) is Pattern.ASYNC_PROGRESS:
        yield (
            f"The log was written with asynchronous progress tracking: rows after batch {batch} may be in the "
            "sink, written by batches that were not logged, and are read again."
        )
    for start in starts:
        if start.begin is Begin.FROM_ZERO:
            yield (
                f"Source {start.view.index} ({start.view.type}) starts over from the beginning; it cannot "
                "continue where the old query stopped."
            )


def warn(checkpoint: Checkpoint, batch: int, *, state_readable: bool) -> Iterator[str]:
    """Give other warnings about continuing after a batch."""
    yield "Stop the old query first, and give the new one its own checkpoint."
    if checkpoint.state is not None and not state_readable:
        yield f"The state of batch {batch} can no longer be loaded: this only helps if you exported it before."
    if checkpoint.stateful:
        yield (
            f"The new query needs the state of batch {batch} too: ckpt export-state --batch {batch} exports it. "
            "This handoff covers only the sources."
        )
    commit = checkpoint.commits.readable(batch)
    names = sorted({sink.provider or sink.name for sink in commit.sinks}) if commit else []
    if names:
        yield f"The commit log names this sink: {', '.join(names)}."


def warn_of_lost_rows(findings: Iterable[RatedFinding], batch: int) -> Iterator[str]:
    """Say where the old query had skipped rows before the chosen batch."""
    for rated in findings:
        back = rated.finding.diagnosis is OFFSETS_WENT_BACK and rated.remedy
        if back and int(rated.finding.path.rpartition("/")[2]) <= batch:
            yield f"The old query went back: {rated.finding.detail}. {rated.remedy}"
