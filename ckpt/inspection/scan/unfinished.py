"""The rows of a scan that has not ended, in a file from which the next scan with the same file continues.

The first line says which scan it is, each other one is the row of a checkpoint, as JSON. A line is written as soon as a
checkpoint was looked at, so that whatever ends the scan, the rows before it stay. At its end the scan removes the file.
"""

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, NoReturn

from ckpt.checkpoint.checkpoint import COMMITS, METADATA, OFFSETS
from ckpt.errors import CkptError, UsageError, one_line
from ckpt.inspection.scan.rows import ScannedCheckpoint
from ckpt.texts import instant, mask_secrets
from ckpt.values import parse_record

_LONGEST_MS = 86_400_000  # a day: rows of before that would be shown as if they were of now

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
    began_ms: int

    def continues(self, earlier: "ScanRequest") -> bool:
        """Tell whether the same was asked for, but for the time, which is that of the earlier one."""
        dated = (self.changed_since_ms is None) is (earlier.changed_since_ms is None)
        return dated and earlier == replace(self, changed_since_ms=earlier.changed_since_ms, began_ms=earlier.began_ms)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A scan that is under way."""

    path: str
    request: ScanRequest  # that of the scan that was interrupted, if one was
    rows: Mapping[Key, ScannedCheckpoint | None] = field(repr=False)  # of before; None: it had not changed
    _file: BinaryIO = field(repr=False)

    def keep(self, key: Key, row: ScannedCheckpoint | None) -> None:
        """Write the row of a checkpoint; one that could not be looked at is tried again. Raises CkptError."""
        if row is None or row.error is None:
            _write_line(self._file, self.path, [*key, None if row is None else asdict(row)])


@contextmanager
def keep_unfinished(path: str, request: ScanRequest) -> Iterator[Unfinished]:
    """Open the file of a scan, and remove it where nothing is raised inside.

    Raises UsageError where it is another file, or of another scan, or of one that began more than a day ago; CkptError
    where it cannot be written, or another scan is writing it.
    """
    file = _open(path)
    try:
        _lock(file, path)
        earlier, rows = _read(file, path)
        if earlier is None:
            _write_line(file, path, asdict(request))
        else:
            _must_continue(request, earlier, path)
        yield Unfinished(path, earlier or request, rows, file)
        with suppress(FileNotFoundError):
            os.unlink(path)
    finally:
        with suppress(OSError):  # of a line that was not written, which is said
            file.close()


def _open(path: str) -> BinaryIO:
    for folder in Path(os.path.realpath(path)).parents:
        if (folder / METADATA).is_file() or (folder / OFFSETS).is_dir() or (folder / COMMITS).is_dir():
            raise UsageError.of(
                "{--resume} {path}: {folder} is a checkpoint, in which nothing is written",
                path=one_line(path),
                folder=one_line(str(folder)),
            )
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise UsageError.of("{--resume} {path}: {why}", path=one_line(path), why=error.strerror or error) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UsageError.of("{--resume} {path}: it is no file", path=one_line(path))
    return os.fdopen(handle, "r+b")


def _lock(file: BinaryIO, path: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CkptError(f"another scan is writing {one_line(path)}: wait for it, or name another file") from None
    except OSError:
        pass  # a mount without flock


def _read(file: BinaryIO, path: str) -> tuple[ScanRequest | None, dict[Key, ScannedCheckpoint | None]]:
    """Read the request and the rows of an interrupted scan, and cut off a line that it could not finish."""
    earlier, rows, end = None, dict[Key, ScannedCheckpoint | None](), 0
    try:
        for line in file:
            if not line.endswith(b"\n"):
                break
            value = json.loads(line)
            if earlier is None:
                earlier = parse_record(ScanRequest, value)
            else:
                uri, below, row = value
                rows[uri, below] = None if row is None else parse_record(ScannedCheckpoint, row)
            end += len(line)
        if earlier is None and os.fstat(file.fileno()).st_size:
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UsageError.of(
            "{--resume} {path}: it is not the file of an interrupted scan", path=one_line(path)
        ) from None
    file.seek(end)
    file.truncate()
    return earlier, rows


def _must_continue(request: ScanRequest, earlier: ScanRequest, path: str) -> None:
    """Raise UsageError where rows of the earlier scan would not be those of this one."""

    def refuse(why: str) -> NoReturn:
        raise UsageError.of(
            "{--resume} {path} is of a scan that {why}: remove it, or name another file", path=one_line(path), why=why
        )

    if not request.continues(earlier):
        refuse("was asked for something else")
    if not 0 <= request.began_ms - earlier.began_ms <= _LONGEST_MS:
        refuse(f"began at {instant(earlier.began_ms)}, more than a day from now")


def _write_line(file: BinaryIO, path: str, value: object) -> None:
    try:
        file.write(json.dumps(value).encode() + b"\n")
        file.flush()
    except OSError as error:
        raise CkptError(f"{one_line(path)} cannot be written: {error.strerror or error}") from error


def find_folder(roots: Iterable[str]) -> str | None:
    """The folder from which relative local roots start; None where all roots are URIs or start at the top."""
    return os.getcwd() if any("://" not in root and not os.path.isabs(root) for root in roots) else None


def name_store(options: Mapping[str, str]) -> tuple[str, ...]:
    """Of the options of a storage those that say where it is, and not who asks."""
    places = ("endpoint", "authority", "account_name", "host")
    return tuple(mask_secrets(f"{name}={options[name]}") for name in sorted(options) if any(p in name for p in places))


def read_clock_ms() -> int:
    """Return the time of this machine, in ms since 1970 UTC."""
    return time.time_ns() // 1_000_000
