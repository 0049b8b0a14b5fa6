"""Let a stateless query read again what may be missing, under batch ids that no sink has seen.

All batches after the newest finished one get its offsets, so they are empty, and all that comes after it is read by a
batch that is new. Nothing is lost in any sink, as it would be in one that remembers batch ids if the batch number went
back (measured on 3.5.9 to 4.3.0 with a file sink, on 4.2.0 with Delta).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.changes.steps import Step, writing
from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.model import Unreadable
from ckpt.storage import Storage

_MOST = 1_000  # batches that are emptied, a file each


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """Which batches become empty."""

    origin: int  # the newest finished batch whose offsets can be read: where the query resumes
    batches: range  # that get its offsets

    @property
    def new(self) -> int:
        """The batch that reads their rows."""
        return self.batches.stop


def read_again(checkpoint: Checkpoint) -> ReadAgain | None:
    """How; None for a query that keeps state, and where none of the newest finished batches can be read."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    top = max((*offsets.ids[-1:], *commits.ids[-1:]), default=-1)
    if checkpoint.stateful or not commits.ids:
        return None
    finished = (i for i in reversed(offsets.ids) if i <= commits.ids[-1] and i < top)
    origin = next((i for i in finished if not isinstance(offsets.entries.get(i), Unreadable)), None)
    return None if origin is None or top - origin > _MOST else ReadAgain(origin, range(origin + 1, top + 1))


def steps(way: ReadAgain, checkpoint: Checkpoint, storage: Storage) -> Iterator[Step]:
    """What is written, oldest first. Raises StorageError."""
    source = f"{OFFSETS}/{way.origin}"
    data = storage.read(source)
    for batch in way.batches:
        yield from writing(storage, checkpoint.listing, f"{OFFSETS}/{batch}", data, source)
