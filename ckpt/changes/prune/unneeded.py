"""Files that no restart needs, now or after a rewind: files to keep are found first, and doubtful ones are kept.

Format 1: the oldest version needed is loaded from the newest snapshot at or below it, so everything before that
snapshot may go; Spark's own maintenance does the same (``HDFSBackedStateStoreProvider.cleanup``,
``RocksDBFileManager.deleteOldVersions``). Format 2: each version that a commit names is followed back through the
lineage of its changelog to the snapshot where that begins.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.state.chains import chain_to
from ckpt.checkpoint.state.context import Context, context_of
from ckpt.checkpoint.state.file_ends import Verified, verify
from ckpt.checkpoint.state.folders import FileId, StorePartition, find_store_partitions
from ckpt.checkpoint.state.lineages import read_lineages
from ckpt.checkpoint.state.load import judge_ssts
from ckpt.checkpoint.state.read_steps import Step
from ckpt.checkpoint.state.space import find_base, find_orphans, find_temporary_files, list_below
from ckpt.formats.sidecars import shown_name
from ckpt.formats.statefiles import CHECKSUM, LZ4
from ckpt.storage import Listing


class PruneReason(StrEnum):
    """Why nothing needs a file."""

    OLD_VERSION = "old-version"  # state before any version that a restart can load
    KILLED_TASK = "killed-task"  # state that a task wrote and no commit names
    ORPHAN = "orphan"  # an SST file that no snapshot names
    TEMPORARY = "temporary"  # what an interrupted write left


@dataclass(frozen=True, slots=True)
class Pruned:
    """Files of one kind that may go."""

    kind: PruneReason
    paths: tuple[str, ...]  # without their hidden checksum files; in the order in which they may go


@dataclass(frozen=True, slots=True)
class _Kept:
    """The files that stay of one store in one partition."""

    base: int  # everything of this version, and of later ones, but for strays
    strays: tuple[FileId, ...] = ()


def find_unneeded_files(checkpoint: Checkpoint, oldest: int) -> Step[tuple[Pruned, ...]]:
    """Find files that may go if ``oldest`` is the oldest version that a start needs; needs the complete commit log."""
    context = context_of(checkpoint.offsets, checkpoint.commits)
    places = find_store_partitions(checkpoint.listing, context.provider)
    kept = yield from _find_kept_files(checkpoint, context, places, oldest)
    strays = {partition: sorted(_names(partition, keep.strays)) for partition, keep in kept.items()}
    staying = [
        partition.snapshot(file_id)
        for partition, keep in kept.items()
        for file_id, name in partition.names.snapshots.items()
        if file_id[0] >= keep.base and name not in strays[partition]
    ]
    verified = yield from verify(staying, context.codec or LZ4)
    paths: dict[PruneReason, list[str]] = {reason: [] for reason in PruneReason}
    for partition, keep in kept.items():
        if _is_sound(checkpoint.listing, partition, keep.base, verified):
            old, killed = list_below(partition, keep.base), strays[partition]
            orphans = find_orphans(checkpoint.listing, partition, {*old, *killed}, verified.snapshots) or ()
            paths[PruneReason.OLD_VERSION] += (f"{partition.folder}/{name}" for name in old)
            paths[PruneReason.KILLED_TASK] += (f"{partition.folder}/{name}" for name in killed)
            paths[PruneReason.ORPHAN] += (path for path in orphans if not path.endswith(".tmp"))
    paths[PruneReason.TEMPORARY] += find_temporary_files(checkpoint.listing)
    return tuple(Pruned(reason, tuple(files)) for reason, files in paths.items() if files)


def _find_kept_files(
    checkpoint: Checkpoint, context: Context, places: list[StorePartition], oldest: int
) -> Step[Mapping[StorePartition, _Kept]]:
    """Find the files that each store needs; a store that is left out is doubtful and stays as it is."""
    kept: dict[StorePartition, _Kept] = {}
    named = []
    for partition in places:
        ids = [unique_id for _, unique_id in _file_ids(partition)]
        base = find_base(partition.names, oldest) if not any(ids) and not context.unique_ids else None
        if base is not None:
            kept[partition] = _Kept(base)
        elif all(ids):
            named.append(partition)
    kept |= yield from _keep_by_lineage(checkpoint, context, named, oldest)
    return kept


def _keep_by_lineage(
    checkpoint: Checkpoint, context: Context, places: list[StorePartition], oldest: int
) -> Step[dict[StorePartition, _Kept]]:
    """Format 2: the files of the chain to each version from ``oldest`` on that a commit names."""
    used: dict[StorePartition, set[FileId]] = {partition: set() for partition in places}
    named: dict[int, Mapping[int, tuple[tuple[str, ...], ...]]] = {}
    for batch in checkpoint.commits.ids:
        commit = checkpoint.commits.readable(batch)
        if batch + 1 < oldest:
            continue
        if commit is None or not commit.state_unique_ids:
            return {}
        named[batch + 1] = commit.state_unique_ids
        at = replace(context, needed_version=batch + 1, unique_ids=commit.state_unique_ids)
        targets = {partition: target for partition in used if (target := at.target(partition)) is not None}
        lineages = yield from read_lineages(targets, context.codec or LZ4)
        chains = {
            partition: chain_to(partition.names, target, lineages.get(partition))
            for partition, target in targets.items()
            if partition in lineages
            or (target.version, target.unique_id) in partition.names.snapshots  # else it is unknown
        }
        used = {
            partition: ids | {*chain.logs, *([chain.snapshot] if chain.snapshot else [])}
            for partition, ids in used.items()
            if (chain := chains.get(partition)) is not None and chain.complete
        }
    return {
        partition: _Kept(min(ids)[0], tuple(_find_strays(partition, ids, named)))
        for partition, ids in used.items()
        if ids
    }


def _find_strays(
    partition: StorePartition, used: set[FileId], named: Mapping[int, Mapping[int, tuple[tuple[str, ...], ...]]]
) -> Iterator[FileId]:
    """Files of versions whose commit names others: a task that was killed, or ran twice, wrote them."""
    for file_id in {*_file_ids(partition)} - used:
        version, unique_id = file_id
        partitions = named.get(version, {}).get(partition.operator, ())
        if partition.partition < len(partitions) and unique_id not in partitions[partition.partition]:
            yield file_id


def _file_ids(partition: StorePartition) -> Iterator[FileId]:
    yield from partition.names.logs
    yield from partition.names.snapshots


def _is_sound(listing: Listing, partition: StorePartition, base: int, verified: Verified) -> bool:
    """Tell whether the snapshots under later versions are sound; if not, Spark may want older ones."""
    for file_id, name in partition.names.snapshots.items():
        path = f"{partition.folder}/{name}"
        snapshot = verified.snapshots.get(path) if file_id[0] == base else None
        if file_id[0] == base and path in verified.wrong:
            return False
        if snapshot is not None and any(judge_ssts(listing, partition, name, snapshot, verified)):
            return False
    return True


def _names(partition: StorePartition, ids: Iterable[FileId]) -> set[str]:
    """The names of all files of some ids, without hidden checksum files."""
    wanted = {
        names[file_id]
        for file_id in ids
        for names in (partition.names.logs, partition.names.snapshots)
        if file_id in names
    }
    return {shown for name in partition.files if (shown := shown_name(name)).removesuffix(CHECKSUM) in wanted}
