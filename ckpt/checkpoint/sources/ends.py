"""The end of the latest batch of one source, and what another end does: rows that are skipped, or read again."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from ckpt.checkpoint.sources.requested import RequestedEnd
from ckpt.model import Json

Record = TypeVar("Record")
Span = tuple[Json, Json]  # two offsets as the log has them; None is the beginning of the source


class CannotEndThere(Exception):
    """A source cannot get the requested end; the text says why."""


@dataclass(frozen=True, slots=True)
class LatestEnd(Generic[Record]):
    """One source in the latest batch of a checkpoint."""

    batch: int
    committed: bool
    index: int  # of the source in the query
    value: Json  # ``offset`` as in the log
    offset: Record  # the end of the batch
    start: Record | None  # of the batch; None: the beginning of the source, or not known
    start_known: bool
    newest_entry: int | None = None  # of a file source: the newest in its log


@dataclass(frozen=True, slots=True)
class MovedEnd:
    """The consequences of a new end at the next start."""

    ahead: tuple[Span, ...] = ()  # from the old end to the new one, where that is later
    back: tuple[Span, ...] = ()  # from the new end to the old one, where that is earlier
    warnings: tuple[str, ...] = ()


def move_along(latest: LatestEnd[Record], new: RequestedEnd, old: int, to: int, *warnings: str) -> MovedEnd:
    """Move the end of a source whose offsets are in one order: ahead, rows are skipped; back, they are read again."""
    if to >= old:
        return MovedEnd(ahead=((latest.value, new.value),) if to > old else (), warnings=warnings)
    return MovedEnd(back=((new.value, latest.value),), warnings=warnings)
