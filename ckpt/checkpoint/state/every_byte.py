"""What it means for a store that every byte of its files was read: which versions are left, and what is damaged."""

from collections.abc import Iterator

from ckpt.checkpoint.state.collected import CollectedState
from ckpt.checkpoint.state.file_ends import Verdict
from ckpt.checkpoint.state.folders import SSTS, StoreNames, StorePartition
from ckpt.checkpoint.state.load import Load, is_serious, sst_verdicts
from ckpt.model import DamageKind, EveryByte, FileDamage, StateDamage, StateFileKind

_AS_WRITTEN = (DamageKind.VERSION_1, DamageKind.VERSION_2, DamageKind.BLOCKED)  # the bytes are what they were


def usable_names(found: CollectedState, place: StorePartition, load: Load | None) -> StoreNames:
    """The names in a store's folder, without those of files that were seen to be damaged."""
    names = place.names if load is None else load.usable
    if not found.seen.files:
        return names
    bad = set()
    for name in names.all:
        verdict = found.seen.wrong.get(f"{place.folder}/{name}")
        if verdict is not None and is_serious(verdict.kind, checksummed=place.checksum_size(name) is not None):
            bad.add(name)
    for file_id, name in names.snapshots.items():
        if name in bad or any(True for _ in _ssts(found, place, name)):
            bad.add(name)
            if names.snapshot_kind is StateFileKind.ZIP and file_id in names.logs:
                bad.add(names.logs[file_id])  # Spark's reader does not go back to the snapshot before
    return names.without(bad) if bad else names


def every_byte(found: CollectedState, damages: tuple[StateDamage, ...]) -> EveryByte | None:
    """All that is damaged, where every byte was read."""
    seen = found.seen
    if not seen.files:
        return None
    of_load = {
        damage.path: FileDamage(damage.path, damage.kind, damage.detail)
        for damage in damages
        if damage.kind not in _AS_WRITTEN
    }
    others = {path: FileDamage(path, verdict.kind, verdict.detail) for path, verdict in _others(found)}
    sizes = [info.size for path in seen.files if (info := found.listing.info(path))]
    by_path = {**others, **of_load}
    return EveryByte(
        files=len(sizes),
        bytes=sum(sizes),
        damages=tuple(by_path[path] for path in sorted(by_path)),
        unknown=tuple(sorted(path for path in seen.unknown if found.listing.info(path))),
        reasons=seen.reasons,
    )


def _others(found: CollectedState) -> Iterator[tuple[str, Verdict]]:
    """What is wrong with files, whether the next start loads them or not."""
    yield from ((path, verdict) for path, verdict in found.seen.wrong.items() if found.listing.info(path))
    for folder in found.folders:
        for place in (place for places in folder.stores.values() for place in places.values()):
            for name in place.names.snapshots.values():
                for sst, verdict in _ssts(found, place, name):
                    yield f"{place.folder}/{SSTS}/{sst}", verdict
    for description in found.described.values():
        for file in description.unreadable:
            yield file.path, Verdict(DamageKind.UNREADABLE, file.reason)


def _ssts(found: CollectedState, place: StorePartition, name: str) -> Iterator[tuple[str, Verdict]]:
    """What is wrong with the SST files that a zip names."""
    recorded = found.seen.snapshots.get(f"{place.folder}/{name}")
    if recorded is not None:
        yield from sst_verdicts(found.listing, place, name, recorded, found.seen)
