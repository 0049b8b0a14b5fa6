"""The newest offsets of a stateless query that reads one folder of files, as they were: its source log tells.

``FileStreamSource.fetchMaxOffset`` adds one entry to ``sources/0`` when there are new files, just before Spark writes
the offsets of the batch that reads them, and without state no batch runs without new files. So each batch ends one
entry after the one before it, as those that can be read show.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ckpt.changes.plan import NoWay
from ckpt.changes.steps import Step, writing
from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.checkpoint.sources.file_logs import file_source_logs, files_between
from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.registry import decode
from ckpt.model import OffsetLog
from ckpt.storage import Storage

_MOST = 1_000  # batches, a file each


@dataclass(frozen=True, slots=True)
class OffsetsAgain:
    """Which files of the offset log are written."""

    origin: int  # the newest batch whose offsets are there
    entry: int  # of the source log, where it ends
    batches: range  # after it, each of which ends one entry later


def offsets_again(checkpoint: Checkpoint, storage: Storage) -> OffsetsAgain | None:
    """How; None where no newest offsets are lost, or the query has another source or state.

    Raises NoWay where they are not established, StorageError.
    """
    offsets, commits = checkpoint.offsets, checkpoint.commits
    top = max((*offsets.ids[-1:], *commits.ids[-1:]), default=-1)
    ends = [(i, end) for i in offsets.ids if (end := _end(offsets.readable(i))) is not None]
    if checkpoint.stateful or not ends or ends[-1][0] == top or top - ends[-1][0] > _MOST:
        return None
    origin, entry = ends[-1]
    known = offsets.readable(origin)
    if origin not in commits or known is None or known.version != 1:
        return None
    if any(later[1] - earlier[1] != later[0] - earlier[0] for earlier, later in pairwise(ends)):
        raise NoWay("batches of this query do not end one entry of its source log after the other")
    (log,) = file_source_logs(checkpoint.listing, known)
    last = max(entry + top - origin, *log.entries)  # of an entry without a batch one was planned, which a sink may have
    if files_between(storage, log.folder, entry, last) is None:
        raise NoWay(f"{log.folder} lacks entries {entry + 1} to {last}, or they cannot be read")
    return OffsetsAgain(origin, entry, range(origin + 1, origin + 1 + last - entry))


def _end(log: OffsetLog | None) -> int | None:
    """The entry at which a batch of one file source ends."""
    end = decode(log.sources[0].value) if log is not None and len(log.sources) == 1 else None
    return end.log_offset if isinstance(end, FileOffset) else None


def steps(way: OffsetsAgain, checkpoint: Checkpoint, storage: Storage) -> Iterator[Step]:
    """What is written, oldest first: the file of ``origin``, with another entry. Raises StorageError."""
    source = f"{OFFSETS}/{way.origin}"
    head = storage.read(source).rstrip(b"\n").rpartition(b"\n")[0]
    for entry, batch in enumerate(way.batches, way.entry + 1):
        data = head + b"\n" + json.dumps({"logOffset": entry}, separators=(",", ":")).encode()
        yield from writing(storage, checkpoint.listing, f"{OFFSETS}/{batch}", data, source)
