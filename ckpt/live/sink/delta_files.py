"""The files of a Delta table's log, read through ckpt's own storage: no JVM, no package besides pyarrow."""

import io
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ckpt.errors import one_line
from ckpt.formats.deltalog import Segment, choose_segment, names_until, parse_action, read_settings, read_transaction
from ckpt.formats.limits import LARGEST_ACTION
from ckpt.formats.text import Damaged
from ckpt.live.sink.delta import VersionedAction, replay_delta_log
from ckpt.live.sink.records import SinkKind, SinkLog
from ckpt.model import Fault
from ckpt.storage import FileInfo, Folder, ReadRequest, Storage
from ckpt.storage.base import PIECE, retry_vanished

DELTA_LOG = "_delta_log"
_IN_A_CATALOG = ("_staged_commits", "_commits")
_AT_ONCE = 16  # pieces of files that are in memory together


def read_delta_sink(uri: str, storage: Storage, until: int | None = None) -> SinkLog:
    """Read which batches a Delta table has, or had in version ``until``. Raises StorageError where it is not read."""
    return retry_vanished(lambda: _read_sink(uri, storage, until))


def _read_sink(uri: str, storage: Storage, until: int | None) -> SinkLog:
    log = storage.list_level(DELTA_LOG)
    if (folder := find_staged(storage, log)) is not None:
        why = f"newer versions of the table may be in a catalog only ({folder} has files)"
        return SinkLog(uri, SinkKind.DELTA, unknown=f"{why}, so its newest batch is unknown")
    try:
        segment = choose_segment(log.files if until is None else names_until(log.files, until))
        earlier = _read_versions(storage, segment.earlier, log.files)
        now_ms = time.time() * 1000
        read = replay_delta_log(uri, earlier, _read_segment(storage, segment, log.files), now_ms)
        return replace(read, version=segment.version)
    except Damaged as damage:
        why = one_line(f"its {DELTA_LOG} cannot be read: {damage.reason}")
        return SinkLog(uri, SinkKind.DELTA, unknown=why, unreached=True)


def _read_segment(storage: Storage, segment: Segment, files: Mapping[str, FileInfo]) -> Iterator[VersionedAction]:
    """Read the actions of the checkpoint as version -1, then those of later versions."""
    for name in segment.checkpoint:
        if name.endswith(".parquet"):
            rows = read_checkpoint_rows(storage, f"{DELTA_LOG}/{name}", files[name].size, ("txn", "metaData"))
            for column, value in rows:
                yield -1, read_transaction(value) if column == "txn" else read_settings(value)
        else:
            yield from ((-1, action) for _, action in _read_versions(storage, (name,), files))
    yield from _read_versions(storage, segment.commits, files)


def _read_versions(storage: Storage, names: Sequence[str], files: Mapping[str, FileInfo]) -> Iterator[VersionedAction]:
    """Read the actions of JSON files, each with the version that begins the file's name."""
    for name, line in read_log_lines(storage, [(name, files[name].size) for name in names]):
        action = parse_action(line)
        if action is not None:
            yield int(name[:20]), action


def find_staged(storage: Storage, log: Folder) -> str | None:
    """Find the folder of the log whose files are commits that only a catalog puts in order; None: there is none."""
    there = (f"{DELTA_LOG}/{name}" for name in _IN_A_CATALOG if name in log.folders)
    return next((folder for folder in there if storage.list_level(folder).files), None)


def read_log_lines(storage: Storage, files: Sequence[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
    """Read the lines of files in the log, each with the file's name, in their order and piece by piece."""
    pieces = [(name, offset) for name, size in files for offset in range(0, size, PIECE)]
    rest, reading = b"", ""
    for begin in range(0, len(pieces), _AT_ONCE):
        group = pieces[begin : begin + _AT_ONCE]
        contents = storage.read_all(ReadRequest(f"{DELTA_LOG}/{name}", offset, PIECE) for name, offset in group)
        for (name, _), data in zip(group, contents, strict=True):
            if name != reading:
                yield reading, rest
                rest, reading = b"", name
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LARGEST_ACTION:
                raise Damaged(Fault.TOO_LARGE, f"{name} has a line of more than {LARGEST_ACTION:,} bytes")
            yield from ((name, line) for line in lines)
    yield reading, rest


def read_checkpoint_rows(storage: Storage, path: str, size: int, columns: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Read columns of a Parquet file in the log, leaving out what is null. Raises Damaged."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.PythonFile(_Ranges(storage, path, size), mode="r"))
        wanted = [name for name in columns if name in file.schema_arrow.names]
        batches = file.iter_batches(columns=wanted, use_threads=False) if wanted else ()  # threads would call Python
        for batch in batches:
            for name in wanted:
                column = batch.column(name)
                yield from ((name, value) for value in column.filter(column.is_valid()).to_pylist())
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise Damaged(Fault.BAD_BINARY, f"{path} cannot be read as Parquet: {error}") from None


class _Ranges(io.RawIOBase):
    """A file of a storage for a reader that seeks: every read is a range."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._storage, self._path, self._size, self._at = storage, path, size, 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        wanted = self._size - self._at if size < 0 else min(size, self._size - self._at)
        data = self._storage.read_range(self._path, self._at, wanted) if wanted > 0 else b""
        self._at += len(data)
        return data
