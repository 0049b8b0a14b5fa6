"""Write the newest commit, empty or cut, as it was, where its hidden checksum file proves what it said.

Spark writes ``commits/L`` when batch L is done, so nothing is left to run. It says what the commit before it says, but
for the watermark, which is that of ``offsets/L+1``, or has not moved, and in state format 2 the ids of state version
L + 1, which are in the names of its files. The checksums in ``.L.crc``, which Hadoop keeps on local paths, confirm it.
"""

from collections.abc import Iterator
from dataclasses import replace

from ckpt.changes.check_fix import Cost, Draft
from ckpt.changes.plan import NoWay
from ckpt.changes.skip.empty_version import UniqueIds, rename_ids
from ckpt.changes.steps import plan_writing, sidecar
from ckpt.checkpoint.checkpoint import COMMITS, Checkpoint
from ckpt.checkpoint.state.context import context_of
from ckpt.checkpoint.state.folders import StorePartition, find_store_partitions
from ckpt.formats.commits import format_commit_log
from ckpt.formats.sidecars import HadoopChecksums, parse_hadoop_sidecar
from ckpt.inspection.inspection import Inspection
from ckpt.model import CommitLog, Unreadable
from ckpt.storage import Storage


def draft_commit(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Write the newest commit, if it cannot be read. Raises NoWay, StorageError."""
    known = find_commit(inspection.checkpoint, storage)
    if known is not None:
        path = f"{COMMITS}/{known[0]}"
        steps = tuple(plan_writing(storage, inspection.checkpoint.listing, path, known[1]))
        yield Draft(f"{path} is written as its checksums say that it was", Cost.NOTHING, steps)


def find_commit(checkpoint: Checkpoint, storage: Storage) -> tuple[int, bytes] | None:
    """The batch of the newest commit, and the bytes of its file; None where it can be read.

    Raises NoWay where they are not established, StorageError.
    """
    latest = checkpoint.commits.latest
    if latest is None or not isinstance(checkpoint.commits.entries.get(latest), Unreadable):
        return None
    path, before = f"{COMMITS}/{latest}", checkpoint.commits.readable(latest - 1)
    if before is None:
        raise NoWay(f"{COMMITS}/{latest - 1}, which {path} was like, is missing or cannot be read")
    if checkpoint.listing.info(sidecar(path)) is None:
        raise NoWay(f"{sidecar(path)}, which would prove what was in {path}, is missing")
    checksums = parse_hadoop_sidecar(sidecar(path), storage.read(sidecar(path)))
    ids = before.state_unique_ids and _order_next_ids(checkpoint, before.state_unique_ids, latest)
    for watermark in _possible_watermarks(checkpoint, latest, before):
        data = format_commit_log(replace(before, next_watermark_ms=watermark, state_unique_ids=ids))
        if isinstance(checksums, HadoopChecksums) and checksums.match(data):
            return latest, data
    raise NoWay(
        f"{sidecar(path)} says that {path} was not as the one before it: its watermark was another, and stands nowhere "
        "else"
    )


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
            raise NoWay(f"{store.folder} has {len(written)} files of version {latest + 1}, and the commit named one")
        following |= dict.fromkeys(_find_ids(store, latest), *written)
    return rename_ids(ids, following, f"the file that {COMMITS}/{latest - 1} calls {{}} is missing")


def _find_ids(store: StorePartition, version: int) -> set[str]:
    """Find the ids under which a version was written."""
    return {i for v, i in (*store.names.logs, *store.names.snapshots) if v == version and i is not None}
