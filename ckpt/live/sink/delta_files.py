"""The files of a Delta table's log, read through ckpt's own storage: no JVM, no package besides pyarrow."""

import io
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from ckpt.errors import one_line
from ckpt.formats import deltalog
from ckpt.formats.limits import LARGEST_ACTION
from ckpt.formats.text import Damaged
from ckpt.live.sink.delta import VersionedAction, replay_delta_log
from ckpt.live.sink.records import SinkKind, SinkLog
from ckpt.model import Fault
from ckpt.storage import FileInfo, Folder, ReadRequest, Storage
from ckpt.storage.base import PIECE, retry_vanished

DELTA_LOG = "_delta_log"
_IN_A_CATALOG = ("_staged_commits", "_commits")
_BEFORE = 50  # versions before one that was restored, for the batch that it had last: others may have written between
_AT_ONCE = 16  # pieces of files that are in memory together


def read_delta_sink(uri: str, storage: Storage, until: int | None = None) -> SinkLog:
    """Read which batches a Delta table has, or had in version ``until``. Raises StorageError where it is not read."""
    return retry_vanished(lambda: _read_sink(uri, storage, until))


def _read_sink(uri: str, storage: Storage, until: int | None) -> SinkLog:
    log = storage.list_level(DELTA_LOG)
    if (folder := find_staged(storage, log)) is not None:
        why = f"newer versions of the table may exist only in a catalog ({folder} has files)"
        return SinkLog(uri, SinkKind.DELTA, unknown=f"{why}, so its newest batch is unknown")
    try:
        segment = deltalog.choose_segment(log.files if until is None else deltalog.names_until(log.files, until))
        now_ms = time.time() * 1000
        counting = _name_restores(storage, log.files, _read_segment(storage, segment, log.files))
        first, earlier = _read_earlier(storage, segment, log.files, counting)
        return replace(replay_delta_log(uri, earlier, counting, now_ms, first), version=segment.version)
    except Damaged as damage:
        why = one_line(f"its {DELTA_LOG} cannot be read: {damage.reason}")
        return SinkLog(uri, SinkKind.DELTA, unknown=why, unreached=True)


def _read_earlier(
    storage: Storage, segment: deltalog.Segment, files: Mapping[str, FileInfo], counting: Iterable[VersionedAction]
) -> tuple[int, list[VersionedAction]]:
    """Read versions before the newest checkpoint, as far back as a RESTORE took the table; which one is the first."""
    actions: list[VersionedAction] = []
    names = segment.earlier
    first = min((int(name[:20]) for name in (*names, *segment.commits)), default=segment.version + 1)
    there = {version for name in files if (version := deltalog.version_of(name)) is not None}
    while True:
        actions = [*_name_restores(storage, files, _read_versions(storage, names, files)), *actions]
        restores = (action for _, action in (*actions, *counting) if isinstance(action, deltalog.Restore))
        oldest = min((action.to_version for action in restores if action.to_version is not None), default=None)
        until = first if oldest is None else max(oldest - _BEFORE, 0)
        more = list(takewhile(there.__contains__, range(first - 1, until - 1, -1)))
        if not more:
            return first, actions
        first, names = more[-1], tuple(f"{version:020}.json" for version in reversed(more))


def _name_restores(
    storage: Storage, files: Mapping[str, FileInfo], actions: Iterable[VersionedAction]
) -> list[VersionedAction]:
    """The actions, with the version of each RESTORE that names a time. Raises Damaged where nothing says it."""
    named: list[VersionedAction] = []
    for version, action in actions:
        if isinstance(action, deltalog.Restore) and action.to_version is None:
            restored = find_restored_version(storage, files, version)
            if restored is None:
                what = f"the RESTORE of version {version} names a time, and ckpt cannot tell which version it restored"
                raise Damaged(Fault.INCOMPLETE, what)
            named.append((version, deltalog.Restore(restored)))
        else:
            named.append((version, action))
    return named


def find_restored_version(storage: Storage, files: Mapping[str, FileInfo], version: int) -> int | None:
    """Find the version to which the RESTORE of a version took the table, by its files. Raises Damaged."""

    def read(number: int) -> Iterator[deltalog.DataFile]:
        name = f"{number:020}.json"
        for _, line in read_log_lines(storage, [(name, files[name].size)]):
            if (file := deltalog.parse_data_file(line)) is not None:
                yield file

    there = {number for name in files if (number := deltalog.version_of(name)) is not None}
    before = takewhile(there.__contains__, range(version - 1, -1, -1))
    return deltalog.find_restored(read(version), ((number, read(number)) for number in before))


def _read_segment(
    storage: Storage, segment: deltalog.Segment, files: Mapping[str, FileInfo]
) -> Iterator[VersionedAction]:
    """Read the actions of the checkpoint as version -1, then those of later versions."""
    for name in segment.checkpoint:
        if name.endswith(".parquet"):
            rows = read_checkpoint_rows(storage, f"{DELTA_LOG}/{name}", files[name].size, ("txn", "metaData"))
            for column, value in rows:
                yield -1, deltalog.read_transaction(value) if column == "txn" else deltalog.read_settings(value)
        else:
            yield from ((-1, action) for _, action in _read_versions(storage, (name,), files))
    yield from _read_versions(storage, segment.commits, files)


def _read_versions(storage: Storage, names: Sequence[str], files: Mapping[str, FileInfo]) -> Iterator[VersionedAction]:
    """Read the actions of JSON files, each with the version that begins the file's name."""
    for name, line in read_log_lines(storage, [(name, files[name].size) for name in names]):
        action = deltalog.parse_action(line)
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
