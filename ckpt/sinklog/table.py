"""The transactions of a Delta table, read through ckpt's own storage: no JVM, no package besides pyarrow."""

import io
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ckpt.errors import NotFound, StorageError
from ckpt.formats.deltalog import (
    Action,
    Restore,
    Segment,
    TableSettings,
    Transaction,
    parse_action,
    retention_ms,
    segment,
    settings,
    transaction,
)
from ckpt.formats.limits import LARGEST_ACTION
from ckpt.formats.text import Damaged
from ckpt.model import Fault
from ckpt.sinklog.records import SinkKind, SinkLog, SinkWriter
from ckpt.storage import FileInfo, ReadRequest, Storage
from ckpt.storage.base import PIECE, one_line

DELTA_LOG = "_delta_log"
_IN_A_CATALOG = ("_staged_commits", "_commits")
_AT_ONCE = 16  # pieces of files that are in memory together
_LOOKS = 3  # how often a log is listed again, of which files were deleted meanwhile


def delta_table(uri: str, storage: Storage) -> SinkLog:
    """What a table remembers. Raises StorageError where it cannot be read."""
    for look in range(_LOOKS):
        try:
            return _table(uri, storage)
        except NotFound:
            if look == _LOOKS - 1:
                raise
    raise AssertionError("unreachable")


def _table(uri: str, storage: Storage) -> SinkLog:
    top = storage.list_level(DELTA_LOG)
    staged = [name for name in _IN_A_CATALOG if name in top.folders and storage.list_level(f"{DELTA_LOG}/{name}").files]
    if staged:
        why = f"newer versions of the table may be in a catalog only ({DELTA_LOG}/{staged[0]} has files)"
        return SinkLog(uri, SinkKind.DELTA, unknown=f"{why}, so what it has last cannot be known from here")
    try:
        found = segment(top.files)
        return _judged(uri, _of_versions(storage, found.earlier, top.files), _actions(storage, found, top.files))
    except Damaged as damage:
        return SinkLog(uri, SinkKind.DELTA, unknown=one_line(f"its {DELTA_LOG} cannot be read: {damage.reason}"))


def _judged(uri: str, earlier: Iterable[tuple[int, Action]], counting: Iterable[tuple[int, Action]]) -> SinkLog:
    """The last transaction of each writer, and whether it still counts (Delta's ``InMemoryLogReplay``)."""
    last: dict[str, Transaction] = {}
    history = list(earlier)
    retention: str | None = None
    for version, action in counting:
        match action:
            case TableSettings():
                retention = action.retention
            case Transaction():
                last[action.app_id] = action
        history.append((version, action))
    taken_back = _taken_back(history)
    limit = None if retention is None else retention_ms(retention)
    if retention is not None and limit is None:
        raise Damaged(Fault.BAD_JSON, f"how long its transactions count is not understood ({retention})")
    oldest = None if limit is None else time.time() * 1000 - limit
    writers = [
        SinkWriter(
            one.app_id,
            one.version,
            one.updated_ms,
            expired=oldest is not None and (one.updated_ms is None or one.updated_ms <= oldest),
            taken_back=(min(gone), max(gone)) if (gone := taken_back.get(one.app_id)) else None,
        )
        for one in last.values()
    ]
    writers.sort(key=lambda one: one.updated_ms or 0, reverse=True)
    return SinkLog(uri, SinkKind.DELTA, writers=tuple(writers), retention=retention)


def _taken_back(history: Iterable[tuple[int, Action]]) -> dict[str, set[int]]:
    """The batches of each writer whose rows a RESTORE took back, by actions in the order of their versions."""
    found: dict[str, set[int]] = {}
    written: list[tuple[int, Transaction]] = []
    for version, action in history:
        if isinstance(action, Transaction):
            written.append((version, action))
        elif isinstance(action, Restore):
            for then, one in written:
                if action.to_version < then < version:
                    found.setdefault(one.app_id, set()).add(one.version)
    return found


def _actions(storage: Storage, found: Segment, files: Mapping[str, FileInfo]) -> Iterator[tuple[int, Action]]:
    """Those of the checkpoint, as if of a version before all, then those of the versions after it with theirs."""
    for name in found.checkpoint:
        if name.endswith(".parquet"):
            for action in _of_checkpoint(storage, f"{DELTA_LOG}/{name}", files[name].size):
                yield -1, action
        else:
            yield from ((-1, action) for _, action in _of_versions(storage, (name,), files))
    yield from _of_versions(storage, found.commits, files)


def _of_versions(storage: Storage, names: Sequence[str], files: Mapping[str, FileInfo]) -> Iterator[tuple[int, Action]]:
    """Those of files in JSON, each with the version that begins the file's name."""
    for name, line in _lines(storage, [(name, files[name].size) for name in names]):
        action = parse_action(line)
        if action is not None:
            yield int(name[:20]), action


def _lines(storage: Storage, files: Sequence[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
    """The lines of files in the log, each with the file's name, one after the other, read some pieces at a time."""
    pieces = [(name, offset) for name, size in files for offset in range(0, size, PIECE)]
    rest, reading = b"", ""
    for begin in range(0, len(pieces), _AT_ONCE):
        some = pieces[begin : begin + _AT_ONCE]
        answers = storage.read_many(ReadRequest(f"{DELTA_LOG}/{name}", offset, PIECE) for name, offset in some)
        for (name, _), data in zip(some, answers, strict=True):
            if isinstance(data, StorageError):
                raise data
            if name != reading:
                yield reading, rest
                rest, reading = b"", name
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LARGEST_ACTION:
                raise Damaged(Fault.TOO_LARGE, f"{name} has a line of more than {LARGEST_ACTION:,} bytes")
            yield from ((name, line) for line in lines)
    yield reading, rest


def _of_checkpoint(storage: Storage, path: str, size: int) -> Iterator[Transaction | TableSettings]:
    """Of a Parquet file only the columns that matter, and of those only what is not null."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.PythonFile(_Ranges(storage, path, size), mode="r"))
        wanted = [name for name in ("txn", "metaData") if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=wanted) if wanted else ():
            for name in wanted:
                column = batch.column(name)
                for value in column.filter(column.is_valid()).to_pylist():
                    yield transaction(value) if name == "txn" else settings(value)
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise Damaged(Fault.BAD_BINARY, f"{path} is not Parquet that can be read: {error}") from None


class _Ranges(io.RawIOBase):
    """A file of a storage for a reader that seeks: every read is a range."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._storage, self._path, self._size, self._at = storage, path, size, 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move there."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Up to so many bytes."""
        wanted = self._size - self._at if size < 0 else min(size, self._size - self._at)
        data = self._storage.read_range(self._path, self._at, wanted) if wanted > 0 else b""
        self._at += len(data)
        return data
