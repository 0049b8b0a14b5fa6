"""Write the offsets before a batch, which a synchronous start looks for, where they are missing or cannot be read.

Where the batch is committed a start only checks that they are there (``MicroBatchExecution.populateStartOffsets``), or
has a source of the old interface look up the range from them to the batch, whose rows nobody reads.
"""

from collections.abc import Iterator

from ckpt.changes.plan import NoWay
from ckpt.changes.steps import FileStep, plan_writing
from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.model import OffsetLog
from ckpt.storage import Storage


def find_origin(checkpoint: Checkpoint, latest: int, end: OffsetLog) -> int | None:
    """The newest earlier batch that is committed and readable, and has the same sources.

    Where the latest is committed, all earlier ones are done, whether their commit was logged or not.
    """
    offsets, commits = checkpoint.offsets, checkpoint.commits
    for batch_id in reversed(offsets.ids):
        log, done = offsets.readable(batch_id), batch_id in commits or latest in commits
        if batch_id < latest and done and log and len(log.sources) == len(end.sources):
            return batch_id
    return None


def write_predecessor(checkpoint: Checkpoint, storage: Storage, latest: int, origin: int) -> Iterator[FileStep]:
    """Write ``offsets/<latest - 1>`` as those of batch ``origin``, unless it is there. Raises NoWay, StorageError."""
    if not latest or checkpoint.offsets.readable(latest - 1):
        return
    path, listing = f"{OFFSETS}/{latest - 1}", checkpoint.listing
    if listing.has_folder(path) or path in listing.oddities:
        raise NoWay(f"{path} is not a file, and blocks one that must be written: move it away first")
    source = f"{OFFSETS}/{origin}"
    yield from plan_writing(storage, listing, path, storage.read(source), source)
