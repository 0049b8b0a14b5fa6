"""The transactions of a Delta table, read through ckpt's own storage: no JVM, no package besides pyarrow."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ckpt.errors import NotFound
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
from ckpt.formats.text import Damaged
from ckpt.live.sink.delta_files import DELTA_LOG, checkpoint_rows, log_lines, staged
from ckpt.live.sink.records import SinkKind, SinkLog, SinkWriter
from ckpt.model import Fault
from ckpt.storage import FileInfo, Storage
from ckpt.storage.base import one_line

_LOOKS = 3  # how often a log is listed again, of which files were deleted meanwhile


def delta_table(uri: str, storage: Storage) -> SinkLog:
    """Read which batches a Delta table has. Raises StorageError where it cannot be read."""
    for look in range(_LOOKS):
        try:
            return _table(uri, storage)
        except NotFound:
            if look == _LOOKS - 1:
                raise
    raise AssertionError("unreachable")


def _table(uri: str, storage: Storage) -> SinkLog:
    top = storage.list_level(DELTA_LOG)
    if (folder := staged(storage, top)) is not None:
        why = f"newer versions of the table may be in a catalog only ({folder} has files)"
        return SinkLog(uri, SinkKind.DELTA, unknown=f"{why}, so what it has last cannot be known from here")
    try:
        found = segment(top.files)
        return _judged(uri, _of_versions(storage, found.earlier, top.files), _actions(storage, found, top.files))
    except Damaged as damage:
        why = one_line(f"its {DELTA_LOG} cannot be read: {damage.reason}")
        return SinkLog(uri, SinkKind.DELTA, unknown=why, unreached=True)


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
    """Read the actions of the checkpoint as version -1, then those of later versions."""
    for name in found.checkpoint:
        if name.endswith(".parquet"):
            for action in _of_checkpoint(storage, f"{DELTA_LOG}/{name}", files[name].size):
                yield -1, action
        else:
            yield from ((-1, action) for _, action in _of_versions(storage, (name,), files))
    yield from _of_versions(storage, found.commits, files)


def _of_versions(storage: Storage, names: Sequence[str], files: Mapping[str, FileInfo]) -> Iterator[tuple[int, Action]]:
    """Read the actions of JSON files, each with the version that begins the file's name."""
    for name, line in log_lines(storage, [(name, files[name].size) for name in names]):
        action = parse_action(line)
        if action is not None:
            yield int(name[:20]), action


def _of_checkpoint(storage: Storage, path: str, size: int) -> Iterator[Transaction | TableSettings]:
    """Of a Parquet file only the columns that matter."""
    for name, value in checkpoint_rows(storage, path, size, ("txn", "metaData")):
        yield transaction(value) if name == "txn" else settings(value)
