"""State files and whole checkpoints in memory, for tests: bytes as Spark writes them, without Spark."""

import io
import json
import struct
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, Log
from ckpt.checkpoint.state.read_steps import run
from ckpt.checkpoint.state.reader import read_state
from ckpt.errors import NotFound, StorageError
from ckpt.formats.compression import END_MARK
from ckpt.formats.names import sort_batch_names
from ckpt.model import CommitLog, OffsetLog, OffsetMetadata, StateInventory
from ckpt.storage.base import FileInfo, Listing, ReadRequest

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
URI = "/data/query"


def lz4_stream(*blocks: bytes) -> bytes:
    """A whole LZ4 block stream whose blocks are stored as they are."""
    header = b"LZ4Block\x15"
    held = b"".join(header + struct.pack("<iii", len(b), len(b), 7) + b for b in blocks)
    return held + END_MARK


def delta(rows: int = 3) -> bytes:
    """A delta or changelog v1: rows, then -1."""
    return lz4_stream(b"\x00\x00\x00\x08somerow." * rows + b"\xff\xff\xff\xff")


def java_utf(text: str) -> bytes:
    """What ``DataOutputStream.writeUTF`` writes, for text without zeros and surrogates."""
    return struct.pack(">H", len(text.encode())) + text.encode()


def changelog_v4(lineage: Iterable[tuple[int, str]]) -> bytes:
    """A changelog of format 2, which begins with its lineage."""
    items = [{"version": version, "checkpointUniqueId": unique_id} for version, unique_id in lineage]
    return lz4_stream(java_utf("v4") + java_utf(json.dumps(items)) + b"\x01rows\x00")


def rocksdb_zip(ssts: Mapping[str, int], keys: int | None = 7, compressed: bool = True) -> bytes:
    """A snapshot: OPTIONS, CURRENT and, last, metadata; sizes follow compressed entries, as Java writes them."""
    files = [{"localFileName": name[:6], "dfsSstFileName": name, "sizeBytes": size} for name, size in ssts.items()]
    metadata: dict[str, Any] = {"sstFiles": files, "columnFamilyMapping": {"counts": 1}, "maxColumnFamilyId": 1}
    if keys is not None:
        metadata["numKeys"] = keys
    target = _Unseekable() if compressed else io.BytesIO()
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(target, "w", method) as archive:
        archive.writestr("OPTIONS-000007", b"option=1\n" * 400)
        archive.writestr("CURRENT", b"MANIFEST-000005\n")
        archive.writestr("metadata", b"v1\n" + json.dumps(metadata).encode())
    return target.getvalue()


class _Unseekable(io.BytesIO):
    """Makes zipfile write sizes behind the entries."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise OSError

    def seek(self, *_: int) -> int:
        raise OSError


class Place:
    """A checkpoint in memory; counts the requests that are made of it."""

    def __init__(self, files: Mapping[str, bytes], folders: Iterable[str] = ()) -> None:
        self.files = dict(files)
        self.folders = set(folders)
        self.rounds: list[list[ReadRequest]] = []

    @property
    def listing(self) -> Listing:
        tree: dict[str, dict[str, FileInfo]] = {"": {}}
        for folder in [*self.folders, *(path.rpartition("/")[0] for path in self.files)]:
            while folder and folder not in tree:
                tree[folder] = {}
                folder = folder.rpartition("/")[0]
        for path, data in self.files.items():
            folder, _, name = path.rpartition("/")
            tree[folder][name] = FileInfo(len(data), 0)
        return Listing(tree)

    def read_many(self, requests: list[ReadRequest]) -> list[bytes | StorageError]:
        self.rounds.append(requests)
        return [self._read(*request) for request in requests]

    def _read(self, path: str, offset: int, length: int | None) -> bytes | StorageError:
        if path not in self.files:
            return NotFound(f"{path} does not exist")
        data = self.files[path][offset:]
        return data if length is None else data[:length]

    def inventory(
        self,
        latest: int | None = 5,
        committed: int | None = 5,
        conf: Mapping[str, str] | None = None,
        unique_ids: Mapping[int, tuple[tuple[str, ...], ...]] | None = None,
        **options: Any,
    ) -> StateInventory:
        """Read the state, with logs that are whole from batch 0 to the two that are given."""
        recorded = {"spark.sql.shuffle.partitions": "1", **(conf or {})}
        entry = OffsetLog(1, OffsetMetadata(0, 0, recorded), ())
        offsets = _log(OFFSETS, latest, entry)
        commits = _log(COMMITS, committed, CommitLog(1, 0, unique_ids))
        step = read_state(self.listing, offsets, commits, URI, **options)
        found = run(step, self.read_many)
        assert found is not None
        return found


def _log(folder: str, latest: int | None, entry: Any) -> Log[Any]:
    ids = range(latest + 1) if latest is not None else ()
    return Log(folder, sort_batch_names(map(str, ids)), dict.fromkeys(ids, entry))


def hdfs_store(versions: Iterable[int], snapshots: Iterable[int] = (), folder: str = "state/0/0") -> dict[str, bytes]:
    """Whole deltas and snapshots of one partition."""
    files = {f"{folder}/{version}.delta": delta() for version in versions}
    return files | {f"{folder}/{version}.snapshot": delta(9) for version in snapshots}


def changelog_store(
    versions: Iterable[int], snapshots: Iterable[int] = (), folder: str = "state/0/0"
) -> dict[str, bytes]:
    """Whole changelogs, snapshots and the SST files that those name."""
    files = {f"{folder}/{version}.changelog": delta() for version in versions}
    for version in snapshots:
        files[f"{folder}/{version}.zip"] = rocksdb_zip({f"00000{version}-a.sst": 100})
        files[f"{folder}/SSTs/00000{version}-a.sst"] = bytes(100)
    return files
