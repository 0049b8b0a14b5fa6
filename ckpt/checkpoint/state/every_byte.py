"""A store of which every byte was read: the versions that are left, and the damaged files."""

from collections.abc import Iterator

from ckpt.checkpoint.state.collected import CollectedState
from ckpt.checkpoint.state.file_ends import Verdict
from ckpt.checkpoint.state.folders import SSTS, StoreNames, StorePartition
from ckpt.checkpoint.state.load import Load, is_serious, judge_ssts
from ckpt.model import DamageKind, EveryByte, FileDamage, StateDamage, StateFileKind

_AS_WRITTEN = (DamageKind.VERSION_1, DamageKind.VERSION_2, DamageKind.BLOCKED)  # the bytes are what they were


def find_usable_names(collected: CollectedState, store: StorePartition, load: Load | None) -> StoreNames:
    """The names in a store's folder, without those of files that were seen to be damaged."""
    names = store.names if load is None else load.usable
    if not collected.seen.files:
        return names
    bad = set()
    for name in names.all:
        verdict = collected.seen.wrong.get(f"{store.folder}/{name}")
        if verdict is not None and is_serious(verdict.kind, checksummed=store.checksum_size(name) is not None):
            bad.add(name)
    for file_id, name in names.snapshots.items():
        if name in bad or any(True for _ in _judge_ssts(collected, store, name)):
            bad.add(name)
            if names.snapshot_kind is StateFileKind.ZIP and file_id in names.logs:
                bad.add(names.logs[file_id])  # Spark's reader does not go back to the snapshot before
    return names.without(bad) if bad else names


def judge_every_byte(collected: CollectedState, damages: tuple[StateDamage, ...]) -> EveryByte | None:
    """All that is damaged, where every byte was read."""
    fully_read = collected.seen
    if not fully_read.files:
        return None
    of_load = {
        damage.path: FileDamage(damage.path, damage.kind, damage.detail)
        for damage in damages
        if damage.kind not in _AS_WRITTEN
    }
    others = {path: FileDamage(path, verdict.kind, verdict.detail) for path, verdict in _judge_other_files(collected)}
    sizes = [info.size for path in fully_read.files if (info := collected.listing.info(path))]
    by_path = {**others, **of_load}
    return EveryByte(
        files=len(sizes),
        bytes=sum(sizes),
        damages=tuple(by_path[path] for path in sorted(by_path)),
        unknown=tuple(sorted(path for path in fully_read.unknown if collected.listing.info(path))),
        reasons=fully_read.reasons,
    )


def _judge_other_files(collected: CollectedState) -> Iterator[tuple[str, Verdict]]:
    """List the damages of files, whether the next start loads them or not."""
    yield from ((path, verdict) for path, verdict in collected.seen.wrong.items() if collected.listing.info(path))
    for folder in collected.folders:
        for store in (store for places in folder.stores.values() for store in places.values()):
            for name in store.names.snapshots.values():
                for sst, verdict in _judge_ssts(collected, store, name):
                    yield f"{store.folder}/{SSTS}/{sst}", verdict
    for description in collected.described.values():
        for file in description.unreadable:
            yield file.path, Verdict(DamageKind.UNREADABLE, file.reason)


def _judge_ssts(collected: CollectedState, store: StorePartition, name: str) -> Iterator[tuple[str, Verdict]]:
    """List the damages of the SST files that a zip names."""
    recorded = collected.seen.snapshots.get(f"{store.folder}/{name}")
    if recorded is not None:
        yield from judge_ssts(collected.listing, store, name, recorded, collected.seen)
