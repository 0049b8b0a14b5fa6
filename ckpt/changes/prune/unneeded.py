"""Which files no restart needs, now or after a rewind: what is kept is found first, and what is not sure is kept.

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
from ckpt.checkpoint.state.folders import FileId, StorePartition, find_operators
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
    """What has to stay of one store in one partition."""

    base: int  # everything of this version, and of later ones, but for strays
    strays: tuple[FileId, ...] = ()


def unneeded_files(checkpoint: Checkpoint, oldest: int) -> Step[tuple[Pruned, ...]]:
    """What may go if ``oldest`` is the oldest version that a start needs; the complete commit log was read."""
    context = context_of(checkpoint.offsets, checkpoint.commits)
    folders = find_operators(checkpoint.listing, context.provider)
    places = [place for folder in folders for stores in folder.stores.values() for place in stores.values()]
    kept = yield from _kept(checkpoint, context, places, oldest)
    strays = {place: sorted(_names(place, one.strays)) for place, one in kept.items()}
    staying = [
        place.snapshot(file_id)
        for place, one in kept.items()
        for file_id, name in place.names.snapshots.items()
        if file_id[0] >= one.base and name not in strays[place]
    ]
    seen = yield from verify(staying, context.codec or LZ4)
    kept = {place: one for place, one in kept.items() if _is_sound(checkpoint.listing, place, one.base, seen)}
    old = {place: list_below(place, one.base) for place, one in kept.items()}
    loose = [
        path
        for place in kept
        for path in find_orphans(checkpoint.listing, place, {*old[place], *strays[place]}, seen.snapshots) or ()
    ]
    found = (
        Pruned(
            PruneReason.OLD_VERSION, tuple(f"{place.folder}/{name}" for place, names in old.items() for name in names)
        ),
        Pruned(PruneReason.KILLED_TASK, tuple(f"{place.folder}/{name}" for place in kept for name in strays[place])),
        Pruned(PruneReason.ORPHAN, tuple(path for path in loose if not path.endswith(".tmp"))),
        Pruned(PruneReason.TEMPORARY, tuple(find_temporary_files(checkpoint.listing))),
    )
    return tuple(one for one in found if one.paths)


def _kept(
    checkpoint: Checkpoint, context: Context, places: list[StorePartition], oldest: int
) -> Step[Mapping[StorePartition, _Kept]]:
    """What has to stay of each store; one of which it is not sure is left out, and stays as it is."""
    plain = [place for place in places if not any(unique_id for _, unique_id in _ids(place)) and not context.unique_ids]
    found: dict[StorePartition, _Kept] = {}
    for place in plain:
        base = find_base(place.names, oldest)
        if base is not None:
            found[place] = _Kept(base)
    named = [place for place in places if all(unique_id for _, unique_id in _ids(place))]
    found |= yield from _by_lineage(checkpoint, context, [place for place in named if place not in found], oldest)
    return found


def _by_lineage(
    checkpoint: Checkpoint, context: Context, places: list[StorePartition], oldest: int
) -> Step[dict[StorePartition, _Kept]]:
    """Format 2: the files of the chain to each version from ``oldest`` on that a commit names."""
    used: dict[StorePartition, set[FileId]] = {place: set() for place in places}
    named: dict[int, Mapping[int, tuple[tuple[str, ...], ...]]] = {}
    for batch in checkpoint.commits.ids:
        commit = checkpoint.commits.readable(batch)
        if batch + 1 < oldest:
            continue
        if commit is None or not commit.state_unique_ids:
            return {}
        named[batch + 1] = commit.state_unique_ids
        at = replace(context, needed_version=batch + 1, unique_ids=commit.state_unique_ids)
        targets = {place: target for place in used if (target := at.target(place)) is not None}
        lineages = yield from read_lineages(targets, context.codec or LZ4)
        chains = {
            place: chain_to(place.names, target, lineages.get(place))
            for place, target in targets.items()
            if place in lineages or (target.version, target.unique_id) in place.names.snapshots  # else it is unknown
        }
        used = {
            place: ids | {*chain.logs, *([chain.snapshot] if chain.snapshot else [])}
            for place, ids in used.items()
            if (chain := chains.get(place)) is not None and chain.complete
        }
    return {place: _Kept(min(ids)[0], tuple(_strays(place, ids, named))) for place, ids in used.items() if ids}


def _strays(
    place: StorePartition, used: set[FileId], named: Mapping[int, Mapping[int, tuple[tuple[str, ...], ...]]]
) -> Iterator[FileId]:
    """Files of versions whose commit names others: a task that was killed, or ran twice, wrote them."""
    for file_id in {*_ids(place)} - used:
        version, unique_id = file_id
        partitions = named.get(version, {}).get(place.operator, ())
        if place.partition < len(partitions) and unique_id not in partitions[place.partition]:
            yield file_id


def _ids(place: StorePartition) -> Iterator[FileId]:
    yield from place.names.logs
    yield from place.names.snapshots


def _is_sound(listing: Listing, place: StorePartition, base: int, seen: Verified) -> bool:
    """Whether nothing is wrong with the snapshots that later versions rest on: if it is, Spark may want older ones."""
    for file_id, name in place.names.snapshots.items():
        path = f"{place.folder}/{name}"
        if file_id[0] == base and (
            path in seen.wrong
            or (path in seen.snapshots and any(judge_ssts(listing, place, name, seen.snapshots[path], seen)))
        ):
            return False
    return True


def _names(place: StorePartition, ids: Iterable[FileId]) -> set[str]:
    """The names of all files of some ids, without hidden checksum files."""
    found = {
        names[file_id] for file_id in ids for names in (place.names.logs, place.names.snapshots) if file_id in names
    }
    return {shown for name in place.files if (shown := shown_name(name)).removesuffix(CHECKSUM) in found}
