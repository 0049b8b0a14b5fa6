"""By how much snapshots of state grow."""

from collections.abc import Iterable, Iterator, Mapping

from ckpt.checkpoint.state.file_ends import request_tail
from ckpt.checkpoint.state.folders import StorePartition
from ckpt.checkpoint.state.load import Load
from ckpt.checkpoint.state.read_steps import Step
from ckpt.formats.rocksdb import parse_zip_tail
from ckpt.model import RocksDBSnapshot, StateFile, StateFileKind


def read_oldest_zips(stores: Iterable[StorePartition], most: int) -> Step[Mapping[StorePartition, int]]:
    """The bytes of the oldest RocksDB snapshot in each partition that has several; nothing of more than ``most``."""
    oldest = {store: _find_oldest(store) for store in stores if _has_two(store, StateFileKind.ZIP)}
    if len(oldest) > most:
        return {}
    tails = yield [request_tail(file) for file in oldest.values()]
    sizes: dict[StorePartition, int] = {}
    for (store, file), tail in zip(oldest.items(), tails, strict=True):
        if isinstance(tail, bytes):
            recorded = parse_zip_tail(file.path, tail, file.size)
            if isinstance(recorded, RocksDBSnapshot):
                sizes[store] = file.size + recorded.bytes
    return sizes


def measure_growth(
    stores: Iterable[StorePartition], loads: Mapping[StorePartition, Load], oldest: Mapping[StorePartition, int]
) -> float | None:
    """Bytes a batch from the oldest snapshot of each partition to its newest, or to the one that is loaded of RocksDB.

    None where no partition has two that are known.
    """
    grown = [rate for store in stores for rate in _measure_partition(store, loads.get(store), oldest.get(store))]
    return sum(grown) if grown else None


def _measure_partition(store: StorePartition, load: Load | None, oldest: int | None) -> Iterator[float]:
    if _has_two(store, StateFileKind.SNAPSHOT):
        first, last = _find_oldest(store), store.snapshot(max(store.names.snapshots))
        yield (last.size - first.size) / (last.version - first.version)
    elif oldest is not None and load is not None and load.chain.snapshot and load.snapshot_bytes is not None:
        versions = load.chain.snapshot[0] - _find_oldest(store).version
        if versions > 0:
            yield (load.snapshot_bytes - oldest) / versions


def _has_two(store: StorePartition, kind: StateFileKind) -> bool:
    """True if there are snapshots of two versions."""
    return store.names.snapshot_kind is kind and len({version for version, _ in store.names.snapshots}) > 1


def _find_oldest(store: StorePartition) -> StateFile:
    return store.snapshot(min(store.names.snapshots, key=lambda file_id: (file_id[0], file_id[1] or "")))
