"""Space that no restart needs, judging by names and sizes, and by how much snapshots of state grow.

A query keeps the logs of its newest batches (``spark.sql.streaming.minBatchesToRetain``), and purges older ones after
each batch. Old state goes by the maintenance thread, which a short run never reaches: so the logs show how far back
anything may be needed, and state may go further back. The setting itself is recorded nowhere.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, SOURCES, STATE
from ckpt.checkpoint.state.chains import WantedVersion, chain_to
from ckpt.checkpoint.state.file_ends import request_tail
from ckpt.checkpoint.state.folders import LOGS, SSTS, StoreNames, StorePartition
from ckpt.checkpoint.state.load import Load
from ckpt.checkpoint.state.read_steps import Step
from ckpt.formats.rocksdb import parse_zip_tail
from ckpt.formats.sidecars import hadoop_sidecar_name, is_temporary, is_temporary_metadata, shown_name
from ckpt.formats.statefiles import CHECKSUM, version_of
from ckpt.model import RocksDBSnapshot, StateFile, StateFileKind, Unneeded
from ckpt.storage.base import Listing

_FOLDERS = frozenset((OFFSETS, COMMITS, SOURCES, STATE))


def count_unneeded(
    listing: Listing, stores: Iterable[StorePartition], oldest: int | None, snapshots: Mapping[str, RocksDBSnapshot]
) -> Unneeded:
    """Take stock of all stores; ``oldest`` is the oldest version that a start needs, ``snapshots`` are zips by path."""
    old: int | None = 0
    loose: int | None = 0
    bases: dict[StoreNames, int | None] = {}
    for store in stores:
        names = store.names
        if names not in bases:
            bases[names] = None if oldest is None else find_base(names, oldest)
        base = bases[names]
        gone = list_below(store, base or 0)
        if old is not None:
            old = None if base is None else old + size_of(listing, (f"{store.folder}/{name}" for name in gone))
        if loose is not None:
            alone = find_orphans(listing, store, gone, snapshots)
            loose = None if alone is None else loose + size_of(listing, alone)
    return Unneeded(old, loose)


def find_base(names: StoreNames, version: int) -> int | None:
    """The first version of whose files a load of ``version`` reads any, format 1; None where it cannot be loaded."""
    if any(unique_id is not None for _, unique_id in (*names.logs, *names.snapshots)):
        return None
    chain = chain_to(names, WantedVersion(version))
    if not chain.complete:
        return None
    return chain.snapshot[0] if chain.snapshot else 0


def list_below(store: StorePartition, base: int) -> list[str]:
    """The names of all files of earlier versions than ``base``, oldest first, without hidden checksum files."""
    if not base or all(version >= base for version, _ in (*store.names.logs, *store.names.snapshots)):
        return []
    versions = {(version_of(name), shown_name(name)) for name in store.files}
    below = sorted((version, name) for version, name in versions if version is not None and version < base)
    return [name for _, name in below]


def find_orphans(
    listing: Listing, store: StorePartition, gone: Collection[str], snapshots: Mapping[str, RocksDBSnapshot]
) -> list[str] | None:
    """The paths of SST files and write-ahead logs that no zip names, once some files of its folder are gone.

    ``snapshots`` has what zips say, by path. None where that of a zip which stays is not known.
    """
    if store.names.snapshot_kind is not StateFileKind.ZIP:
        return []
    used: set[str] = set()
    for name in store.names.snapshots.values():
        if name in gone:
            continue
        zip_ = snapshots.get(f"{store.folder}/{name}")
        if zip_ is None:
            return None
        used.update(f"{SSTS}/{file}" for file, _ in zip_.ssts)
        used.update(f"{LOGS}/{file}" for file, _ in zip_.logs)
    folders = {folder: listing.in_folder(f"{store.folder}/{folder}") for folder in (SSTS, LOGS)}
    there = (f"{folder}/{shown_name(name)}" for folder, names in folders.items() for name in names)
    return sorted({f"{store.folder}/{path}" for path in there if path.removesuffix(CHECKSUM) not in used})


def list_temporary_files(listing: Listing) -> list[str]:
    """The files that interrupted writes left, and their checksums: not those of a checkpoint inside this one."""
    paths = listing.named(is_temporary)
    return [path for path in paths if path.partition("/")[0] in _FOLDERS or is_temporary_metadata(path)]


def find_temporary_files(listing: Listing) -> list[str]:
    """Find what interrupted writes left; hidden checksum files go without saying."""
    split = (path.rpartition("/") for path in list_temporary_files(listing))
    return sorted({f"{folder}{slash}{shown_name(name)}" for folder, slash, name in split})


def size_of(listing: Listing, paths: Iterable[str]) -> int:
    """Bytes of some files and their hidden checksum files."""
    total = 0
    for path in paths:
        folder, _, name = path.rpartition("/")
        files = listing.in_folder(folder)
        total += sum(files[file].size for file in (name, hadoop_sidecar_name(name)) if file in files)
    return total


def read_oldest_zips(stores: Iterable[StorePartition], most: int) -> Step[Mapping[StorePartition, int]]:
    """The bytes of the oldest RocksDB snapshot in each partition that has several; nothing of more than ``most``."""
    oldest = {store: _find_oldest(store) for store in stores if _has_two(store, StateFileKind.ZIP)}
    if len(oldest) > most:
        return {}
    tails = yield [request_tail(file) for file in oldest.values()]
    sizes: dict[StorePartition, int] = {}
    for (store, file), tail in zip(oldest.items(), tails, strict=True):
        recorded = parse_zip_tail(file.path, tail, file.size) if isinstance(tail, bytes) else None
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
