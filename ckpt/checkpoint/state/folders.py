"""Where state is: operators, partitions and stores as the listing shows them.

Names are parsed once for all folders that hold the same names (partitions of format 1 mostly do), because a checkpoint
may have hundreds of thousands of state files.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import finalize

from ckpt.checkpoint.state.ranges import Ranges, ranges_of
from ckpt.formats.statefiles import CHECKSUM, DEFAULT_STORE, parse_name
from ckpt.model import Provider, StateFile, StateFileKind
from ckpt.storage.base import FileInfo, Listing
from ckpt.storage.locations import is_same_place

STATE = "state"
SSTS, LOGS = "SSTs", "logs"
FileId = tuple[int, str | None]  # version and unique id of a state file; the unique id is None in format 1

_OF_ROCKSDB = (StateFileKind.CHANGELOG, StateFileKind.ZIP)


@dataclass(frozen=True, slots=True, eq=False)
class StoreNames:
    """The meaning of the names in a store's folder; shared by the partitions that hold the same names."""

    logs: Mapping[FileId, str]  # deltas or changelogs, and their names
    snapshots: Mapping[FileId, str]  # HDFS-backed snapshots or RocksDB zips
    log_kind: StateFileKind
    snapshot_kind: StateFileKind
    checksums: bool = False  # Spark's own checksum files are among them
    strays: tuple[str, ...] = ()  # that end as files of a store do, and are no version of it
    all: tuple[str, ...] = field(init=False)  # the names of both kinds
    versions: Ranges = field(init=False)  # that can be loaded, judging by names
    newest: int | None = field(init=False)  # the highest version that any file has
    in_format_2: bool = field(init=False)  # most of them have unique ids

    def __post_init__(self) -> None:
        """Find the versions that can be loaded: version V from a snapshot, or from V - 1 and the changes of V."""
        snapshots = {version for version, _ in self.snapshots}
        there = sorted(snapshots.union(version for version, _ in self.logs))
        loadable: list[int] = []
        last = 0
        for version in there:
            if version in snapshots or version == last + 1:
                loadable.append(version)
                last = version
        object.__setattr__(self, "all", (*self.logs.values(), *self.snapshots.values()))
        object.__setattr__(self, "versions", ranges_of(loadable))
        object.__setattr__(self, "newest", there[-1] if there else None)
        with_id = sum(unique_id is not None for files in (self.logs, self.snapshots) for _, unique_id in files)
        object.__setattr__(self, "in_format_2", with_id * 2 > len(self.all))

    def without(self, bad: Collection[str]) -> "StoreNames":
        """Return these names without some files."""
        logs = {file_id: name for file_id, name in self.logs.items() if name not in bad}
        snapshots = {file_id: name for file_id, name in self.snapshots.items() if name not in bad}
        return StoreNames(logs, snapshots, self.log_kind, self.snapshot_kind, self.checksums, self.strays)


@dataclass(frozen=True, slots=True, eq=False)
class StorePartition:
    """One store in one partition: its folder and the files in it."""

    operator: int
    partition: int
    store: str
    folder: str
    names: StoreNames
    files: Mapping[str, FileInfo]

    def log(self, file_id: FileId) -> StateFile:
        """The record of a delta or changelog that is there."""
        return self._make_file(file_id, self.names.logs[file_id], self.names.log_kind)

    def snapshot(self, file_id: FileId) -> StateFile:
        """The record of a snapshot that is there."""
        return self._make_file(file_id, self.names.snapshots[file_id], self.names.snapshot_kind)

    def list_outdated(self) -> list[FileId]:
        """The snapshots that are older than the log of their own version, in format 1: a batch has run again."""
        times = {name: info.mtime_ms or 0 for name, info in self.files.items()}
        both = (
            (i, times[name], times[self.names.logs[i]])
            for i, name in self.names.snapshots.items()
            if i in self.names.logs
        )
        return sorted(i for i, snapshot, log in both if i[1] is None and 0 < snapshot < log)

    def _make_file(self, file_id: FileId, name: str, kind: StateFileKind) -> StateFile:
        return StateFile(file_id[0], kind, self.files[name].size, f"{self.folder}/{name}", file_id[1])

    def checksum_size(self, name: str) -> int | None:
        """The size in bytes of Spark's checksum file next to a file; None if there is none."""
        info = self.files.get(name + CHECKSUM)
        return None if info is None else info.size


class OperatorFolder(NamedTuple):
    """The folder of one operator."""

    id: int
    partitions: tuple[int, ...]  # that have a folder, sorted
    stores: Mapping[str, Mapping[int, StorePartition]]  # store -> partition -> what is there

    @property
    def path(self) -> str:
        """Relative to the checkpoint."""
        return f"{STATE}/{self.id}"

    def list_stores(self) -> Iterator[StorePartition]:
        """List each store in each partition."""
        return (store for stores in self.stores.values() for store in stores.values())


def sort_numbers(names: Iterable[str]) -> list[int]:
    """Return the names that are plain numbers, sorted: operators, partitions, batches."""
    decimal = (name for name in names if name.isascii() and name.isdecimal() and len(name) < 19)
    return sorted(int(name) for name in decimal if name[0] != "0" or name == "0")


_of_listings: dict[tuple[int, Provider], tuple[OperatorFolder, ...]] = {}


def find_operators(listing: Listing, provider: Provider) -> tuple[OperatorFolder, ...]:
    """Everything below ``state/`` that Spark would take for state of ``provider`` (UNKNOWN: whichever is there).

    It is found once for each listing, because work on partitions asks for it with every partition.
    """
    key = id(listing), provider
    if key not in _of_listings:
        _of_listings[key] = _list_operators(listing, provider)
        finalize(listing, _of_listings.pop, key, None).atexit = False
    return _of_listings[key]


def _list_operators(listing: Listing, provider: Provider) -> tuple[OperatorFolder, ...]:
    known: dict[frozenset[str], StoreNames] = {}
    operators = sort_numbers(listing.subfolders(STATE))
    return tuple(_list_operator(listing, operator, provider, known) for operator in operators)


def find_store_partitions(listing: Listing, provider: Provider) -> list[StorePartition]:
    """Every store in every partition that ``find_operators`` finds."""
    return [store for operator in find_operators(listing, provider) for store in operator.list_stores()]


def _list_operator(
    listing: Listing, operator: int, provider: Provider, known: dict[frozenset[str], StoreNames]
) -> OperatorFolder:
    partitions = sort_numbers(listing.subfolders(f"{STATE}/{operator}"))
    stores: dict[str, dict[int, StorePartition]] = {}
    for partition in partitions:
        for store, folder in stores_of(listing, f"{STATE}/{operator}/{partition}"):
            files = listing.in_folder(folder)
            key = frozenset(files)
            names = known.get(key)
            if names is None:
                names = known[key] = _parse_names(key, provider)
            if not names.all and (store == DEFAULT_STORE or not listing.has_folder(f"{folder}/_metadata")):
                continue
            stores.setdefault(store, {})[partition] = StorePartition(operator, partition, store, folder, names, files)
    return OperatorFolder(operator, tuple(partitions), stores)


def stores_of(listing: Listing, partition: str) -> Iterator[tuple[str, str]]:
    """The stores of a partition's folder by name, with their folders."""
    yield DEFAULT_STORE, partition
    for name in listing.subfolders(partition):
        if name not in (SSTS, LOGS) and name[0] not in "._" and not sort_numbers([name]):  # see ``find_nested``
            yield name, f"{partition}/{name}"


def find_nested(listing: Listing) -> dict[str, str]:
    """Folders that were copied into others of their kind, by the folders that they belong in, which have no state.

    So ``state/0/0/1`` belongs in ``state/0/1``. Where several belong in one, none is listed.
    """
    claims: dict[str, set[str]] = {}
    for folder, files in listing.folders.items():
        parts = folder.split("/")
        target = _move_up(parts)
        if parts[0] == STATE and any(parse_name(name) or not sort_numbers(target[2:3]) for name in files):
            nested = "/".join(parts[: len(parts) - len(target[3:])])
            claims.setdefault(partition_of("/".join(target)), set()).add(nested)
    moves = {target: min(folders) for target, folders in claims.items() if target not in folders and len(folders) == 1}
    inner = f"{STATE}/{STATE}"
    return moves | ({STATE: inner} if any(folder.startswith(f"{inner}/") for folder in moves.values()) else {})


def list_nested(listing: Listing) -> dict[str, str]:
    """The files in folders that ``find_nested`` finds, by where they belong."""
    nested = {folder: target for target, folder in find_nested(listing).items() if target != STATE}
    files = (path.rpartition("/") for folder in nested for path, _ in listing.walk(folder))
    targets = (("/".join([*_move_up(folder.split("/")), name]), f"{folder}/{name}") for folder, _, name in files)
    return {target: path for target, path in targets if partition_of(target) in nested.values()}


def measure_nested(listing: Listing) -> int:
    """The bytes of the files that ``list_nested`` lists."""
    return sum(info.size for path in list_nested(listing).values() if (info := listing.info(path)))


def partition_of(path: str) -> str:
    """The folder of a partition that a path is in, or what of it the path has."""
    return "/".join(path.split("/")[:3])


def _move_up(parts: list[str]) -> list[str]:
    while parts[1:2] == [STATE] or len(sort_numbers(parts[1:4])) == 3:
        parts = parts[:1] + parts[2:]
    return parts


def _parse_names(names: frozenset[str], provider: Provider) -> StoreNames:
    by_kind: dict[StateFileKind, dict[FileId, str]] = {kind: {} for kind in StateFileKind}
    others = []
    for name in names:
        parsed = parse_name(name)
        if parsed is None or (parsed.unique_id is not None and parsed.kind not in _OF_ROCKSDB):  # which has format 2
            others.append(name)
        else:
            by_kind[parsed.kind][parsed.version, parsed.unique_id] = name
    rocksdb = provider is Provider.ROCKSDB
    if provider is Provider.UNKNOWN:
        rocksdb = any(by_kind[kind] for kind in _OF_ROCKSDB)
    log = StateFileKind.CHANGELOG if rocksdb else StateFileKind.DELTA
    snapshot = StateFileKind.ZIP if rocksdb else StateFileKind.SNAPSHOT
    strays = tuple(sorted(name for name in others if name.endswith((f".{log}", f".{snapshot}"))))
    checksums = any(name.endswith(CHECKSUM) for name in names)
    return StoreNames(by_kind[log], by_kind[snapshot], log, snapshot, checksums, strays)


def find_snapshots_astray(names: StoreNames) -> list[str]:
    """Names among the snapshots that are no versions, and those with a unique id where the other files have none."""
    strays = [name for name in names.strays if name.endswith(f".{names.snapshot_kind}")]
    if not names.in_format_2:
        strays += [name for (_, unique_id), name in names.snapshots.items() if unique_id is not None]
    return sorted(strays)


def lies_elsewhere(schema_path: str, operator: int, uri: str) -> bool:
    """Tell whether operator metadata records an absolute path of a schema file outside the checkpoint at ``uri``.

    False where that cannot be known. Spark writes ``file:`` paths without percent-encoding; users write both forms.
    """
    root, separator, _ = schema_path.rpartition(f"/{STATE}/{operator}/_stateSchema/")
    return not (separator and is_same_place(root, uri))
