"""Write the newest commit, or the newest offsets, as they were: nothing is left to run again.

A commit that is empty or cut is written where its hidden checksum file proves what it said. Spark writes ``commits/L``
when batch L is done. It says what the commit before it says, but for the watermark, which is that of ``offsets/L+1``,
or has not moved, and in state format 2 the ids of state version L + 1, which are in the names of its files. The
checksums in ``.L.crc``, which Hadoop keeps on local paths, confirm it.

Offsets are written for a stateless query that reads one folder of files, as its source log shows them.
``FileStreamSource.fetchMaxOffset`` adds one entry to ``sources/0`` when there are new files, just before Spark writes
the offsets of the batch that reads them, and without state no batch runs without new files. So each batch ends one
entry after the one before it, as those that can be read show.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from ckpt.changes.book import BOOK
from ckpt.changes.check_fix import Cost, Draft
from ckpt.changes.plan import STOP_FIRST, NoWay, Replay
from ckpt.changes.skip.plan import UniqueIds, rename_ids
from ckpt.changes.steps import FileStep, plan_writing, sidecar
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Checkpoint
from ckpt.checkpoint.sources.file_logs import file_source_logs, files_between
from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.registry import SourceRange, offset_of
from ckpt.checkpoint.state.chains import context_of
from ckpt.checkpoint.state.folders import StorePartition, find_store_partitions
from ckpt.formats.commits import format_commit_log
from ckpt.formats.sidecars import HadoopChecksums, parse_hadoop_sidecar
from ckpt.inspection.inspection import Inspection
from ckpt.model import CommitLog, OffsetLog, Unreadable
from ckpt.storage import Storage


def draft_commit(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Write the newest commit, if it cannot be read. Raises NoWay, StorageError."""
    known = find_commit(inspection.checkpoint, storage)
    if known is not None:
        path = f"{COMMITS}/{known[0]}"
        steps = tuple(plan_writing(storage, inspection.checkpoint.listing, path, known[1]))
        yield Draft(f"{path} is written with the content that its checksums prove", Cost.NOTHING, steps, proven=True)


def find_commit(checkpoint: Checkpoint, storage: Storage) -> tuple[int, bytes] | None:
    """The batch of the newest commit, and the bytes of its file; None where it can be read.

    Raises NoWay where they are not established, StorageError.
    """
    latest = checkpoint.commits.latest
    if latest is None or not isinstance(checkpoint.commits.entries.get(latest), Unreadable):
        return None
    path, before = f"{COMMITS}/{latest}", checkpoint.commits.readable(latest - 1)
    if before is None:
        raise NoWay(f"{COMMITS}/{latest - 1}, which {path} repeats, is missing or cannot be read")
    if checkpoint.listing.info(sidecar(path)) is None:
        raise NoWay(f"{sidecar(path)}, which would prove the content of {path}, is missing")
    checksums = parse_hadoop_sidecar(sidecar(path), storage.read(sidecar(path)))
    ids = before.state_unique_ids and _order_next_ids(checkpoint, before.state_unique_ids, latest)
    for watermark in _possible_watermarks(checkpoint, latest, before):
        data = format_commit_log(replace(before, next_watermark_ms=watermark, state_unique_ids=ids))
        if isinstance(checksums, HadoopChecksums) and checksums.match(data):
            return latest, data
    raise NoWay(BOOK.text("other_watermark", sidecar=sidecar(path), commit=path))


def _possible_watermarks(checkpoint: Checkpoint, latest: int, before: CommitLog) -> Iterator[int | None]:
    """Yield what the watermark after the batch may have been."""
    for batch in (latest + 1, latest):
        log = checkpoint.offsets.readable(batch)
        if log is not None and log.metadata is not None:
            yield log.metadata.watermark_ms
    yield before.next_watermark_ms


def _order_next_ids(checkpoint: Checkpoint, ids: UniqueIds, latest: int) -> UniqueIds:
    """The ids of the version that batch ``latest`` wrote, each in the place of the one before. Raises NoWay."""
    provider = context_of(checkpoint.offsets, checkpoint.commits).provider
    following: dict[str, str] = {}
    for store in find_store_partitions(checkpoint.listing, provider):
        written = _find_ids(store, latest + 1)
        if len(written) != 1:
            raise NoWay(f"{store.folder} has {len(written)} files of version {latest + 1}, but the commit named one")
        following |= dict.fromkeys(_find_ids(store, latest), *written)
    return rename_ids(
        ids, following, (f"the state file with the id {{}}, which {COMMITS}/{latest - 1} names, is missing")
    )


def _find_ids(store: StorePartition, version: int) -> set[str]:
    return {i for v, i in (*store.names.logs, *store.names.snapshots) if v == version and i is not None}


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
        raise NoWay("batches of this query do not each end one entry later in its source log")
    (log,) = file_source_logs(checkpoint.listing, known)
    # of an entry without a batch one was planned, which a sink may have
    end = max((entry + top - origin, *log.entries))
    if files_between(storage, log.folder, entry, end) is None:
        raise NoWay(f"{log.folder} lacks entries {entry + 1} to {end}, or they cannot be read")
    source = f"{OFFSETS}/{origin}"
    head = storage.read(source).rstrip(b"\n").rpartition(b"\n")[0]
    first, last = origin + 1, origin + end - entry
    steps: list[FileStep] = []
    for batch in range(first, last + 1):
        written = json.dumps({"logOffset": entry + batch - origin}, separators=(",", ":")).encode()
        steps += plan_writing(storage, checkpoint.listing, f"{OFFSETS}/{batch}", head + b"\n" + written, source)
    paths = f"{OFFSETS}/{first}" if first == last else f"{OFFSETS}/{first} to {OFFSETS}/{last}"
    does = f"{paths} are written from the log of the file source: each batch of this query reads one entry"
    draft = Draft(does, Cost.NOTHING, tuple(steps))
    if last not in commits:
        files = SourceRange(0, {"logOffset": end - 1}, {"logOffset": end})
        old = BOOK.text("old_files", last=last, origin=origin)
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
