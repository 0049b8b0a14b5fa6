"""The files of a Delta table's log, read through ckpt's own storage: no JVM, no package besides pyarrow."""

import io
from collections.abc import Iterator, Sequence
from typing import Any

from ckpt.errors import StorageError
from ckpt.formats.limits import LARGEST_ACTION
from ckpt.formats.text import Damaged
from ckpt.model import Fault
from ckpt.storage import Folder, ReadRequest, Storage
from ckpt.storage.base import PIECE

DELTA_LOG = "_delta_log"
_IN_A_CATALOG = ("_staged_commits", "_commits")
_AT_ONCE = 16  # pieces of files that are in memory together


def staged(storage: Storage, log: Folder) -> str | None:
    """The folder of the log whose files are commits that only a catalog puts in order; None where there is none."""
    there = (f"{DELTA_LOG}/{name}" for name in _IN_A_CATALOG if name in log.folders)
    return next((folder for folder in there if storage.list_level(folder).files), None)


def log_lines(storage: Storage, files: Sequence[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
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


def checkpoint_rows(storage: Storage, path: str, size: int, columns: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Of a Parquet file in the log only these columns, and of those only what is not null. Raises Damaged."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.PythonFile(_Ranges(storage, path, size), mode="r"))
        wanted = [name for name in columns if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=wanted) if wanted else ():
            for name in wanted:
                column = batch.column(name)
                yield from ((name, value) for value in column.filter(column.is_valid()).to_pylist())
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise Damaged(Fault.BAD_BINARY, f"{path} is not Parquet that can be read: {error}") from None


class _Ranges(io.RawIOBase):
    """A file of a storage for a reader that seeks: every read is a range."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._storage, self._path, self._size, self._at = storage, path, size, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
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
