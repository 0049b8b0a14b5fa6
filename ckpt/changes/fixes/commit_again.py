"""The newest commit, empty or cut, as it was: what it must have said, proved by its hidden checksum file.

Spark writes ``commits/L`` when batch L is done, so nothing is left to run. It says what the commit before it says, but
for the watermark, which is that of ``offsets/L+1``, or has not moved, and in state format 2 the ids of state version
L + 1, which are in the names of its files. Whether all that is so, the checksums in ``.L.crc`` tell, which Hadoop keeps
on local paths.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ckpt.changes.plan import NoWay
from ckpt.changes.steps import sidecar
from ckpt.checkpoint.checkpoint import COMMITS, Checkpoint
from ckpt.checkpoint.state.context import context_of
from ckpt.checkpoint.state.folders import StorePartition, find_operators
from ckpt.formats.commits import format_commit_log
from ckpt.formats.sidecars import HadoopChecksums, parse_hadoop_sidecar
from ckpt.model import CommitLog, Unreadable
from ckpt.storage import Storage

UniqueIds = Mapping[int, tuple[tuple[str, ...], ...]]


def commit_again(checkpoint: Checkpoint, storage: Storage) -> tuple[int, bytes] | None:
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
    ids = _next_ids(checkpoint, before.state_unique_ids, latest) if before.state_unique_ids else before.state_unique_ids
    for watermark in _watermarks(checkpoint, latest, before):
        data = format_commit_log(replace(before, next_watermark_ms=watermark, state_unique_ids=ids))
        if isinstance(checksums, HadoopChecksums) and checksums.match(data):
            return latest, data
    raise NoWay(
        f"{sidecar(path)} says that {path} was not as the one before it: its watermark was another, and stands nowhere "
        "else"
    )


def _watermarks(checkpoint: Checkpoint, latest: int, before: CommitLog) -> Iterator[int | None]:
    """What the watermark after the batch may have been."""
    for batch in (latest + 1, latest):
        log = checkpoint.offsets.readable(batch)
        if log is not None and log.metadata is not None:
            yield log.metadata.watermark_ms
    yield before.next_watermark_ms


def _next_ids(checkpoint: Checkpoint, ids: UniqueIds, latest: int) -> UniqueIds:
    """The ids of the version that batch ``latest`` wrote, each in the place of the one before. Raises NoWay."""
    provider = context_of(checkpoint.offsets, checkpoint.commits).provider
    operators = find_operators(checkpoint.listing, provider)
    places = [place for operator in operators for of_store in operator.stores.values() for place in of_store.values()]
    following: dict[str, str] = {}
    for place in places:
        written = _written(place, latest + 1)
        if len(written) != 1:
            raise NoWay(f"{place.folder} has {len(written)} files of version {latest + 1}, and the commit named one")
        following |= dict.fromkeys(_written(place, latest), *written)
    lost = next((one for parts in ids.values() for part in parts for one in part if one not in following), None)
    if lost is not None:
        raise NoWay(f"the file that {COMMITS}/{latest - 1} calls {lost} is missing")
    return {op: tuple(tuple(following[one] for one in part) for part in parts) for op, parts in ids.items()}


def _written(place: StorePartition, version: int) -> set[str]:
    """The ids under which a version was written."""
    return {i for v, i in (*place.names.logs, *place.names.snapshots) if v == version and i is not None}
