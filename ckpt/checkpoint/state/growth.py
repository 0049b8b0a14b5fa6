"""By how much snapshots of state grow."""

from collections.abc import Iterable, Iterator, Mapping

from ckpt.checkpoint.state.file_ends import tail_of
from ckpt.checkpoint.state.folders import StorePartition
from ckpt.checkpoint.state.load import Load
from ckpt.checkpoint.state.read_steps import Step
from ckpt.formats.rocksdb import parse_zip_tail
from ckpt.model import RocksDBSnapshot, StateFile, StateFileKind


def read_oldest_zips(places: Iterable[StorePartition], most: int) -> Step[Mapping[StorePartition, int]]:
    """The bytes of the oldest RocksDB snapshot in each partition that has several; nothing of more than ``most``."""
    oldest = {place: _oldest(place) for place in places if _has_two(place, StateFileKind.ZIP)}
    if len(oldest) > most:
        return {}
    tails = yield [tail_of(file) for file in oldest.values()]
    found: dict[StorePartition, int] = {}
    for (place, file), tail in zip(oldest.items(), tails, strict=True):
        if isinstance(tail, bytes):
            recorded = parse_zip_tail(file.path, tail, file.size)
            if isinstance(recorded, RocksDBSnapshot):
                found[place] = file.size + recorded.bytes
    return found


def growth(
    places: Iterable[StorePartition], loads: Mapping[StorePartition, Load], oldest: Mapping[StorePartition, int]
) -> float | None:
    """Bytes a batch from the oldest snapshot of each partition to its newest, or to the one that is loaded of RocksDB.

    None where no partition has two that are known.
    """
    grown = [one for place in places for one in _of_partition(place, loads.get(place), oldest.get(place))]
    return sum(grown) if grown else None


def _of_partition(place: StorePartition, load: Load | None, oldest: int | None) -> Iterator[float]:
    if _has_two(place, StateFileKind.SNAPSHOT):
        first, last = _oldest(place), place.snapshot(max(place.names.snapshots))
        yield (last.size - first.size) / (last.version - first.version)
    elif oldest is not None and load is not None and load.chain.snapshot and load.snapshot_bytes is not None:
        versions = load.chain.snapshot[0] - _oldest(place).version
        if versions > 0:
            yield (load.snapshot_bytes - oldest) / versions


def _has_two(place: StorePartition, kind: StateFileKind) -> bool:
    """Whether there are snapshots of two versions."""
    return place.names.snapshot_kind is kind and len({version for version, _ in place.names.snapshots}) > 1


def _oldest(place: StorePartition) -> StateFile:
    return place.snapshot(min(place.names.snapshots, key=lambda file_id: (file_id[0], file_id[1] or "")))
