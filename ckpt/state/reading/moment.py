"""The moment that exported state belongs to: one batch, and what the logs say of it."""

from dataclasses import dataclass

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.errors import CkptError
from ckpt.model import Json, QueryMetadata, Unreadable


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """Up to where the state accounts for one source: its offset at the end of the batch."""

    index: int
    name: str | None  # offset log v2 names its sources
    offset: Json  # as in the offset log; None if the source had none yet


@dataclass(frozen=True, slots=True)
class Moment:
    """A committed batch: the state after it accounts for exactly the rows up to ``sources``. Times are ms."""

    query_id: str | None
    batch: int
    state_version: int  # of the state stores: the state of batch B is version B + 1
    planned_ms: int | None  # when the batch was planned
    watermark_ms: int | None  # under which the batch ran, and so evicted state
    next_watermark_ms: int | None  # after the batch, for the next one
    sources: tuple[SourceEnd, ...]


def moment_of(checkpoint: Checkpoint, batch: int) -> Moment:
    """Read what the logs record of a batch. Raises CkptError where its offsets cannot be read."""
    entry = checkpoint.offsets.entries.get(batch)
    if entry is None or isinstance(entry, Unreadable):
        why = "there are none" if entry is None else entry.reason
        raise CkptError(
            f"{checkpoint.uri}: the offsets of batch {batch} (offsets/{batch}) cannot be read ({why}), and Spark reads "
            f"no state without them; see ckpt inspect"
        )
    commit = checkpoint.commits.readable(batch)
    metadata = entry.metadata
    return Moment(
        query_id=checkpoint.metadata.query_id if isinstance(checkpoint.metadata, QueryMetadata) else None,
        batch=batch,
        state_version=batch + 1,
        planned_ms=metadata.timestamp_ms if metadata else None,
        watermark_ms=metadata.watermark_ms if metadata else None,
        next_watermark_ms=commit.next_watermark_ms if commit else None,
        sources=tuple(SourceEnd(i, source.name, source.value) for i, source in enumerate(entry.sources)),
    )
