"""The next version of all state, equal to the one before: what a batch leaves that has seen no row.

Batch L reads version L of each store and writes version L + 1. Written here, as real batches without rows write it:

- HDFS-backed: a delta without records (``HDFSBackedStateStoreProvider.finalizeDeltaFile``: an int of -1).
- RocksDB without changelogs: a copy of the zip, in which nothing names the version; the SST files are shared.
- Changelogs v1 and v2: without records (``StateStoreChangelogWriterV1``: -1; ``V2``: its version, then a zero byte).
- Changelogs v3 and v4 (format 2): the lineage first (``StateStoreChangelogWriterV3``), under a new unique id.

Restarts continued as those of a query whose batch had no rows (measured on 4.2.0; on 3.5.9 without format 2).
"""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

from ckpt.changes.plan import NoWay
from ckpt.changes.steps import Step, plan_creating
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.state.chains import WantedVersion
from ckpt.checkpoint.state.context import context_of
from ckpt.checkpoint.state.folders import StorePartition, find_store_partitions
from ckpt.formats.compression import BadBlock, decompress_first_block, store_block
from ckpt.formats.sidecars import build_spark_sidecar
from ckpt.formats.statefiles import CHECKSUM, LZ4, parse_lineage
from ckpt.formats.text import read_utf, write_utf
from ckpt.model import StateFileKind
from ckpt.storage import ReadRequest, Storage

_HEAD = 1 << 16  # bytes from the beginning of a file that surely hold its first block
_NO_RECORD_INT, _NO_RECORD_BYTE = struct.pack(">i", -1), b"\x00"
UniqueIds = Mapping[int, tuple[tuple[str, ...], ...]]
"""Of state files in format 2: operator -> [partition][store]."""


@dataclass(frozen=True, slots=True)
class _Store:
    """One store in one partition, the version it has, and the file that this was written as."""

    place: StorePartition
    version: WantedVersion
    name: str

    @property
    def path(self) -> str:
        return f"{self.place.folder}/{self.name}"


def plan_empty_version(checkpoint: Checkpoint, storage: Storage) -> tuple[list[Step], UniqueIds]:
    """The version after the one that the next start loads, equal to it; in format 2 with what the commit calls it.

    Raises NoWay, StorageError.
    """
    context = context_of(checkpoint.offsets, checkpoint.commits)
    if context.codec not in (None, LZ4):
        raise NoWay(f"state is compressed with {context.codec}, and ckpt writes lz4 only")
    count = context.shuffle_partitions
    stores = []
    for partition in find_store_partitions(checkpoint.listing, context.provider):
        if count is not None and partition.partition >= count:
            continue
        target = context.target(partition)
        if target is None:
            raise NoWay(f"the commit log does not say which files {partition.folder} has")
        stores.append(_Store(partition, target, _find_version_file(partition, target)))
    requests = [ReadRequest(store.path, 0, None if store.name.endswith(".zip") else _HEAD) for store in stores]
    steps: list[Step] = []
    renamed: dict[str, str] = {}
    log = checkpoint.offsets.newest
    timestamp = log.metadata.timestamp_ms if log and log.metadata else 0
    for store, data in zip(stores, storage.read_all(requests), strict=True):
        steps += _plan_steps(checkpoint, store, data, renamed, timestamp or 0)
    ids = rename_ids(context.unique_ids, renamed, "the commit log names state files with the id {}, which are missing")
    return steps, ids


def _find_version_file(partition: StorePartition, target: WantedVersion) -> str:
    """The file as which a version was written: its delta or changelog, or, where there is none, its zip."""
    this = (target.version, target.unique_id)
    if this in partition.names.logs:
        return partition.names.logs[this]
    if (
        partition.names.snapshot_kind is StateFileKind.ZIP
        and target.unique_id is None
        and this in partition.names.snapshots
    ):
        return partition.names.snapshots[this]
    if this in partition.names.snapshots and target.unique_id is not None:
        raise NoWay(
            f"{partition.folder}/{partition.names.snapshots[this]} has no changelog beside it: state format 2 without "
            "changelogs is nothing that ckpt writes"
        )
    stem = str(target.version) if target.unique_id is None else f"{target.version}_{target.unique_id}"
    raise NoWay(f"{partition.folder}/{stem}.{partition.names.log_kind} is missing")


def _plan_steps(
    checkpoint: Checkpoint, store: _Store, data: bytes, renamed: dict[str, str], timestamp_ms: int
) -> Iterator[Step]:
    """The file of the next version, with its checksum files where the one before has them."""
    version, old = store.version.version + 1, store.version.unique_id
    ending = store.name.rpartition(".")[2]
    is_copy = ending == "zip"
    written = data if is_copy else store_block(_make_empty_file(store, data))
    stem = str(version)
    if old is not None:
        renamed[old] = str(uuid5(NAMESPACE_URL, f"{checkpoint.query_id}/{store.place.folder}/{version}/{old}"))
        stem = f"{version}_{renamed[old]}"
    path = f"{store.place.folder}/{stem}.{ending}"
    yield from plan_creating(checkpoint.listing, path, written, store.path, store.path if is_copy else None)
    checksum = f"{store.path}{CHECKSUM}"
    if checkpoint.listing.info(checksum) is not None:
        recorded = build_spark_sidecar(written, timestamp_ms)
        yield from plan_creating(checkpoint.listing, f"{path}{CHECKSUM}", recorded, checksum)


def _make_empty_file(store: _Store, head: bytes) -> bytes:
    """Return a delta or changelog of the file's kind without a record. Raises NoWay."""
    try:
        block = decompress_first_block(head)
    except BadBlock:
        raise NoWay(f"{store.path} is not compressed with lz4, and ckpt writes nothing else") from None
    kind = _read_changelog_version(block) if store.place.names.log_kind is StateFileKind.CHANGELOG else "v1"
    if kind == "v1":
        return _NO_RECORD_INT
    if kind == "v2":
        return write_utf(kind) + _NO_RECORD_BYTE
    lineage, this = parse_lineage(head), store.version
    if kind not in ("v3", "v4") or lineage is None or this.unique_id is None:
        raise NoWay(f"{store.path} begins as no changelog that ckpt knows")
    last = (this.version, this.unique_id)
    items = [last] if last in store.place.names.snapshots else [*lineage, last]
    text = json.dumps([{"version": v, "checkpointUniqueId": i} for v, i in items], separators=(",", ":"))
    return write_utf(kind) + write_utf(text) + (_NO_RECORD_INT if kind == "v3" else _NO_RECORD_BYTE)


def _read_changelog_version(block: bytes) -> str:
    """Return the first words of a changelog; v1 has none (``StateStoreChangelogReaderFactory.readVersion``)."""
    try:
        version, _ = read_utf(block, 0)
    except (ValueError, struct.error):
        return "v1"
    return version if version.startswith("v") and version[1:].isdecimal() else "v1"


def rename_ids(ids: UniqueIds, renamed: Mapping[str, str], lost: str) -> UniqueIds:
    """The ids of another version, each in the place of an old one. Raises NoWay, which is ``lost``, for one without."""
    try:
        return {op: tuple(tuple(renamed[i] for i in part) for part in parts) for op, parts in ids.items()}
    except KeyError as missing:
        raise NoWay(lost.format(missing.args[0])) from None
