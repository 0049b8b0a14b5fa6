"""What somebody has to know before a new query takes over, in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ckpt.checkpoint import Checkpoint
from ckpt.handoff.starts import Begin, SourceStart
from ckpt.history import Pattern, pattern
from ckpt.model import QueryMetadata


@dataclass(frozen=True, slots=True)
class SinkMeaning:
    """What a new checkpoint, whose batches count from 0 again, means to one kind of sink."""

    kind: str
    meaning: str


def sinks(checkpoint: Checkpoint, batch: int) -> tuple[SinkMeaning, ...]:
    """Every kind there is: offsets and commits do not say which one the query had, but for commit log v3."""
    query = checkpoint.metadata.query_id if isinstance(checkpoint.metadata, QueryMetadata) else None
    written = f"appId {query or 'that is the id of the old query'} and version {batch + 1}"
    last = max((batch, *checkpoint.offsets.ids[-1:], *checkpoint.commits.ids[-1:]))
    return (
        SinkMeaning(
            "delta",
            "a new query has an id of its own, and the table takes its batches from 0 on. In foreachBatch with a fixed "
            "txnAppId choose another one: under the old one batches are skipped without a word. Whether a batch of the "
            f"old query was written: the table's log has a txn with {written} or higher",
        ),
        SinkMeaning(
            "file",
            "take a new output folder, and let readers read both: _spark_metadata of the old one has seen batches up "
            f"to {last}, and skips those of the new query under the same ids without a word",
        ),
        SinkMeaning("kafka", "it knows nothing of batches: what is read again is written again"),
        SinkMeaning(
            "foreach, foreachBatch",
            "batch ids begin at 0 again: what tells repeated batches apart by their id must be told of the new query",
        ),
    )


def doubts(
    checkpoint: Checkpoint, batch: int, starts: Sequence[SourceStart], *, newest_readable: bool
) -> Iterator[str]:
    """Why some rows may be read twice by a new query that reads on behind a batch.

    ``newest_readable`` says whether the state of the newest committed batch can be loaded in all partitions.
    """
    commits, latest = checkpoint.commits, checkpoint.offsets.latest
    newest = commits.ids[-1]
    if newest > batch:
        why = "" if newest_readable else ", but its state cannot be loaded (ckpt inspect says why; mend that first)"
        yield (
            f"Batch {newest} is committed{why}: what the old query read after batch {batch} is in the sink, and is "
            "read again."
        )
    if latest is not None and latest > max(batch, newest):
        yield (
            f"Batch {latest} was planned and not committed: its rows may be in the sink, and are read again. "
            "Start the old query once more, so that it commits the batch, and hand over then."
        )
    if pattern(checkpoint) is Pattern.ASYNC_PROGRESS:
        yield (
            f"The log is that of asynchronous progress tracking: rows after batch {batch} may be in the sink, written "
            "by batches that were not logged, and are read again."
        )
    for start in starts:
        if start.begin is Begin.FROM_ZERO:
            yield f"Source {start.view.index} ({start.view.type}) begins again; it cannot go on where it stood."


def warnings(checkpoint: Checkpoint, batch: int, *, state_readable: bool) -> Iterator[str]:
    """What else to say of handing over behind a batch."""
    yield "Stop the old query first, and give the new one a checkpoint of its own."
    if checkpoint.state is not None and not state_readable:
        yield f"The state of batch {batch} can no longer be loaded from here: this only helps if it was taken before."
    if checkpoint.stateful:
        yield (
            f"The new query needs the state of batch {batch} too: ckpt export-state --batch {batch} gives it as data. "
            "Nothing but the sources is handed over here."
        )
    commit = checkpoint.commits.readable(batch)
    names = sorted({sink.provider or sink.name for sink in commit.sinks}) if commit else []
    if names:
        yield f"The commit log names this sink: {', '.join(names)}."
