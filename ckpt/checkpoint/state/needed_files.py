"""List the files that any loadable batch needs of the state, for a verification of every byte."""

from collections.abc import Iterator
from typing import NamedTuple

from ckpt.checkpoint.checkpoint import Log
from ckpt.checkpoint.state.chains import context_of
from ckpt.checkpoint.state.descriptions import list_described_by
from ckpt.checkpoint.state.file_ends import Verified, verify
from ckpt.checkpoint.state.folders import StorePartition, find_operators, find_store_partitions
from ckpt.checkpoint.state.ranges import contains
from ckpt.checkpoint.state.read_steps import Step
from ckpt.formats.sidecars import hadoop_sidecar_name
from ckpt.formats.statefiles import CHECKSUM, LZ4
from ckpt.model import CommitLog, OffsetLog, StateFile, StateFileKind
from ckpt.storage.base import Listing


class NeededFile(NamedTuple):
    """A file to be verified, and what there is to compare it with."""

    path: str
    kind: StateFileKind | None  # None: a state schema or operator metadata
    size: int  # bytes
    codec: str  # of deltas, changelogs and HDFS-backed snapshots
    checksum: bool  # Spark's checksum file is next to it
    hidden_checksum: bool  # Hadoop's hidden one


class Needed(NamedTuple):
    """The needed files of all stores, and the verdicts that the ends of the zips allow already."""

    files: tuple[NeededFile, ...]
    ends: Verified

    @property
    def bytes(self) -> int:
        """The sizes of all together."""
        return sum(file.size for file in self.files)


def find_needed_files(listing: Listing, offsets: Log[OffsetLog], commits: Log[CommitLog]) -> Step[Needed]:
    """The snapshots and logs of every version that can be loaded, the SST files of those snapshots, the schemas."""
    context = context_of(offsets, commits)
    folders = find_operators(listing, context.provider)
    codec = context.codec or LZ4
    stores = find_store_partitions(listing, context.provider)
    files = [file for store in stores for file in _find_loadable(store)]
    ends = yield from verify((file for file in files if file.kind is StateFileKind.ZIP), codec)
    kinds: dict[str, StateFileKind | None] = dict.fromkeys(list_described_by(listing, folders))
    kinds |= {file.path: file.kind for file in files}
    kinds |= {path: StateFileKind.SST for file in files for path, _ in ends.list_ssts(file.path)}
    described = (describe_file(listing, path, kind, codec) for path, kind in kinds.items())
    return Needed(tuple(file for file in described if file), ends)


def _find_loadable(store: StorePartition) -> Iterator[StateFile]:
    """The files of versions that can be loaded, judging by names."""
    yield from (store.snapshot(i) for i in store.names.snapshots if contains(store.names.versions, i[0]))
    yield from (store.log(i) for i in store.names.logs if contains(store.names.versions, i[0]))


def describe_file(listing: Listing, path: str, kind: StateFileKind | None, codec: str) -> NeededFile | None:
    """Return a file and what is beside it; None where it is not there."""
    info = listing.info(path)
    if info is None:
        return None
    folder, _, name = path.rpartition("/")
    beside = listing.in_folder(folder)
    return NeededFile(path, kind, info.size, codec, name + CHECKSUM in beside, hadoop_sidecar_name(name) in beside)
