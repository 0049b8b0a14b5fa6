"""Write the newest offsets of a stateless query that reads one folder of files, as its source log shows them.

``FileStreamSource.fetchMaxOffset`` adds one entry to ``sources/0`` when there are new files, just before Spark writes
the offsets of the batch that reads them, and without state no batch runs without new files. So each batch ends one
entry after the one before it, as those that can be read show.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from ckpt.changes.draft import Cost, Draft
from ckpt.changes.plan import STOP_FIRST, NoWay, Replay
from ckpt.changes.steps import Step, plan_writing
from ckpt.checkpoint.checkpoint import OFFSETS
from ckpt.checkpoint.sources.file_logs import file_source_logs, files_between
from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.ranges import SourceRange
from ckpt.checkpoint.sources.registry import offset_of
from ckpt.inspection.inspection import Inspection
from ckpt.model import OffsetLog
from ckpt.storage import Storage

_MOST = 1_000  # batches, a file each


def draft_offsets(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Write the offsets after the newest that are there; nothing where the query has another source or state.

    Raises NoWay where the offsets are not established, StorageError.
    """
    checkpoint = inspection.checkpoint
    offsets, commits = checkpoint.offsets, checkpoint.commits
    top = max((*offsets.ids[-1:], *commits.ids[-1:]), default=-1)
    ends = [(i, end) for i in offsets.ids if (end := _find_entry(offsets.readable(i))) is not None]
    if checkpoint.stateful or not ends or ends[-1][0] == top or top - ends[-1][0] > _MOST:
        return
    origin, entry = ends[-1]
    known = offsets.readable(origin)
    if origin not in commits or known is None or known.version != 1:
        return
    if any(later[1] - earlier[1] != later[0] - earlier[0] for earlier, later in pairwise(ends)):
        raise NoWay("batches of this query do not end one entry of its source log after the other")
    (log,) = file_source_logs(checkpoint.listing, known)
    # of an entry without a batch one was planned, which a sink may have
    end = max((entry + top - origin, *log.entries))
    if files_between(storage, log.folder, entry, end) is None:
        raise NoWay(f"{log.folder} lacks entries {entry + 1} to {end}, or they cannot be read")
    source = f"{OFFSETS}/{origin}"
    head = storage.read(source).rstrip(b"\n").rpartition(b"\n")[0]
    first, last = origin + 1, origin + end - entry
    steps: list[Step] = []
    for batch in range(first, last + 1):
        written = json.dumps({"logOffset": entry + batch - origin}, separators=(",", ":")).encode()
        steps += plan_writing(storage, checkpoint.listing, f"{OFFSETS}/{batch}", head + b"\n" + written, source)
    paths = f"{OFFSETS}/{first}" if first == last else f"{OFFSETS}/{first} to {OFFSETS}/{last}"
    does = f"{paths} as the log of the file source tells: each batch of this query reads one entry"
    draft = Draft(does, Cost.NOTHING, tuple(steps))
    if last not in commits:
        files = SourceRange(0, {"logOffset": end - 1}, {"logOffset": end})
        old = f"Batch {last} runs again over its old files, and `current_timestamp()` in it is that of batch {origin}."
        draft = replace(
            draft,
            cost=Cost.UNFINISHED_AGAIN,
            batches=1,
            replay=(Replay(last, (files,), finished=False),),
            warnings=(STOP_FIRST, old),
        )
    yield draft


def _find_entry(log: OffsetLog | None) -> int | None:
    """The entry at which a batch of one file source ends."""
    end = offset_of(log, 0) if log is not None and len(log.sources) == 1 else None
    return end.log_offset if isinstance(end, FileOffset) else None
