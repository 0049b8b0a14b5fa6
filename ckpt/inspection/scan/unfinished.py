"""The rows of a scan that has not ended, in a file from which the next scan with the same file continues.

The first line says which scan it is, each other one is the row of a checkpoint, as JSON. A line is written as soon as a
checkpoint was looked at, so that whatever ends the scan, the rows before it stay. At its end the scan removes the file.
Rows that cannot be used, as those of before yesterday, are replaced, and the scan says so: a job that runs every night
with the same file must not fail every night because of one that was killed.
"""

import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from ckpt.checkpoint.checkpoint import COMMITS, METADATA, OFFSETS
from ckpt.errors import CkptError, UsageError, one_line
from ckpt.inspection.scan.rows import ScannedCheckpoint
from ckpt.texts import instant
from ckpt.values import parse_record

_LONGEST_MS = 86_400_000  # a day: rows of before that would be shown as if they were of now
_OURS = re.compile(rb'\{"version": "[^"]*", "roots": \[')  # how each file of a scan begins; no other is written over

Key = tuple[str, str]
"""A checkpoint: its root as it was given, and its path below it."""


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """A scan as it was asked for: rows of two scans go together if they were asked for the same."""

    version: str  # of ckpt
    roots: tuple[str, ...]
    folder: str | None  # from which relative roots start; None: there are none
    store: tuple[str, ...]  # options that say where a remote root is
    depth: int | None
    all_versions: bool
    brokers: str | None  # of Kafka; None: not asked
    changed_since_ms: int | None
    reading: str  # how much of the state
    began_ms: int

    def continues(self, earlier: "ScanRequest") -> bool:
        """Tell whether the same was asked for, but for the time, which is that of the earlier one."""
        dated = (self.changed_since_ms is None) is (earlier.changed_since_ms is None)
        return dated and earlier == replace(self, changed_since_ms=earlier.changed_since_ms, began_ms=earlier.began_ms)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A scan that is under way."""

    request: ScanRequest  # that of the scan that was interrupted, if one was
    path: str = ""  # empty: nothing is kept
    rows: Mapping[Key, ScannedCheckpoint | None] = field(default_factory=dict)  # of before; None: it had not changed
    started_over: str | None = None  # why the rows that the file had cannot be used, if it had some
    _file: BinaryIO | None = None

    def keep(self, key: Key, row: ScannedCheckpoint | None) -> None:
        """Write the row of a checkpoint; one that could not be looked at is tried again. Raises CkptError."""
        if self._file is not None and (row is None or row.error is None):
            _write_line(self._file, self.path, [*key, None if row is None else asdict(row)])


@contextmanager
def keep_unfinished(path: str | None, request: ScanRequest) -> Iterator[Unfinished]:
    """Open the file of a scan, if there is to be one, and remove it where nothing is raised inside.

    Raises UsageError where it is another file; CkptError where it cannot be written, or another scan is writing it.
    """
    if path is None:
        yield Unfinished(request)
        return
    file = _open(path)
    try:
        _lock(file, path)
        earlier, rows, why = _read(file, path, request)
        if earlier is None:
            file.seek(0)
            file.truncate()
            _write_line(file, path, asdict(request))
        yield Unfinished(earlier or request, path, rows, why, file)
        with suppress(FileNotFoundError):
            os.unlink(path)
    finally:
        with suppress(OSError):  # of a line that was not written, which is said
            file.close()


def _open(path: str) -> BinaryIO:
    for folder in Path(os.path.realpath(path)).parents:
        if (folder / METADATA).is_file() or (folder / OFFSETS).is_dir() or (folder / COMMITS).is_dir():
            raise UsageError.of(
                "{--resume} {path}: {folder} is a checkpoint, and ckpt does not write there",
                path=one_line(path),
                folder=one_line(str(folder)),
            )
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise UsageError.of("{--resume} {path}: {why}", path=one_line(path), why=error.strerror or error) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UsageError.of("{--resume} {path}: it is not a file", path=one_line(path))
    return os.fdopen(handle, "r+b")


def _lock(file: BinaryIO, path: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CkptError(f"another scan is writing {one_line(path)}: wait for it, or name another file") from None
    except OSError:
        pass  # a mount without flock


_Rows = dict[Key, ScannedCheckpoint | None]


def _read(file: BinaryIO, path: str, request: ScanRequest) -> tuple[ScanRequest | None, _Rows, str | None]:
    """Read the request and the rows of an interrupted scan, and cut off a line that it could not finish.

    If they cannot be used: None, no rows, and why. Raises UsageError where it is another file.
    """
    rows, head = _Rows(), file.readline()
    if not head:
        return None, rows, None
    if not _OURS.match(head):
        raise UsageError.of("{--resume} {path}: it does not come from an interrupted scan", path=one_line(path))
    end = len(head)
    try:
        value = json.loads(head)
        if why := _find_difference(value, request):
            return None, {}, why
        for line in file:
            if not line.endswith(b"\n"):
                break
            uri, below, row = json.loads(line)
            rows[uri, below] = None if row is None else parse_record(ScannedCheckpoint, row)
            end += len(line)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None, {}, "they are damaged"
    file.seek(end)
    file.truncate()
    return parse_record(ScanRequest, value), rows, None


def _find_difference(value: Any, request: ScanRequest) -> str | None:
    """Tell why rows of an earlier scan would not be those of this one; None if they are."""
    if value["version"] != request.version:
        return f"ckpt {one_line(value['version'])} wrote them"
    earlier = parse_record(ScanRequest, value)
    if not request.continues(earlier):
        return "that scan had other arguments"
    if request.began_ms - earlier.began_ms > _LONGEST_MS:
        return f"that scan began at {instant(earlier.began_ms)}, more than a day ago"
    if request.began_ms < earlier.began_ms:
        return f"that scan began at {instant(earlier.began_ms)}, which is in the future"
    return None


def _write_line(file: BinaryIO, path: str, value: object) -> None:
    try:
        file.write(json.dumps(value).encode() + b"\n")
        file.flush()
    except OSError as error:
        raise CkptError(f"{one_line(path)} cannot be written: {error.strerror or error}") from error


def read_clock_ms() -> int:
    """Return the time of this machine, in ms since 1970 UTC."""
    return time.time_ns() // 1_000_000
