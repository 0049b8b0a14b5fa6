"""The logs that file sources keep in ``sources/<k>``: what a start needs of them, and whether it can be read."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.registry import in_order, offsets_of
from ckpt.errors import NotFound, StorageError
from ckpt.formats.names import CompactibleLog, compactible_id, compactible_log
from ckpt.formats.sourcelogs import SourceFile, parse_source_log
from ckpt.model import OffsetLog, Unreadable
from ckpt.storage.base import Listing, ReadRequest, Storage
from ckpt.storage.locations import begins_with

SOURCES = "sources"
_WHOLE = 1 << 16  # up to this many bytes a file is read completely; of a larger one only its end


class FileSourceLog(NamedTuple):
    """The log of one file source, judging by the names of its files."""

    source: int
    folder: str
    log: CompactibleLog
    entries: frozenset[int]  # that have a file where Spark looks for it

    @property
    def next_entry(self) -> int:
        """The number that the next new files get (``FileStreamSource.fetchMaxOffset``)."""
        return 0 if self.log.latest is None else self.log.latest + 1

    def needed(self) -> Iterator[str]:
        """The paths that ``CompactibleFileStreamLog.restore`` reads, as far as they are there."""
        if self.log.latest is not None:
            for entry in sorted(self.entries):
                if self.log.first_needed <= entry <= self.log.latest:
                    yield f"{self.folder}/{self.log.name_of(entry)}"


def file_source_logs(listing: Listing, offsets: OffsetLog | None) -> list[FileSourceLog]:
    """The logs of file sources: where the offsets say so, or else where a folder holds several entries."""
    ends = offsets_of(offsets) if offsets else ()
    logs: dict[str, FileSourceLog] = {}
    wanted = {k for k, end in enumerate(ends) if isinstance(end, FileOffset)}
    for name in listing.subfolders(SOURCES):
        if name.isascii() and name.isdecimal() and not (offsets and int(name) < len(ends)):
            entries = [file for file in listing.in_folder(f"{SOURCES}/{name}") if compactible_id(file) is not None]
            wanted |= {int(name)} if len(entries) > 1 else set()
    for k in sorted(wanted):
        folder = source_folder(listing, offsets, k)
        names = listing.in_folder(folder)
        log = compactible_log(names)
        ids = {entry for name in names if (entry := compactible_id(name)) is not None}
        there = frozenset(entry for entry in ids if log.interval > 0 and log.name_of(entry) in names)
        logs.setdefault(folder, FileSourceLog(k, folder, log, there))
    return list(logs.values())


def find_refused_file(files: Iterable[str], path: str) -> str | None:
    """The first of the files (URIs) of a batch that a reader of ``path`` refuses; None where it takes them all.

    ``PartitioningAwareFileIndex.basePaths``. A pattern has no base path, and takes all. Without a scheme ``path`` is in
    whatever file system the files are in.
    """
    if any(sign in path for sign in "{}[]*?\\"):
        return None
    return next((file for file in files if not begins_with(unquote(file), path)), None)


def source_folder(listing: Listing, offsets: OffsetLog | None, source: int) -> str:
    """The folder of a source.

    A query that uses one file reader twice, as a self-join does, has two offsets and one source
    (``MicroBatchExecution.uniqueSources``): the two are always equal, and ``sources/0`` is the log of both. A source
    with a name has a folder of this name (offset log v2).
    """
    ends = offsets_of(offsets) if offsets else ()
    if offsets and is_read_twice(listing, offsets):
        return f"{SOURCES}/0"
    name = in_order(offsets)[source].name if offsets and source < len(ends) else None
    return name_folder(source, name)


def rocksdb_folder(listing: Listing, offsets: OffsetLog | None, source: int) -> str:
    """The folder in which Auto Loader keeps the names of the files that it has read."""
    return f"{source_folder(listing, offsets, source)}/rocksdb"


def name_folder(number: int, name: str | None) -> str:
    """The folder of a source by its number, or by its name if the query gives it one (offset log v2)."""
    return f"{SOURCES}/{number if name is None else name}"


def is_read_twice(listing: Listing, offsets: OffsetLog) -> bool:
    """Tell whether the sources of a query are one file reader, which it uses several times."""
    ends = offsets_of(offsets)
    equal = len(ends) > 1 and ends.count(ends[0]) == len(ends) and isinstance(ends[0], FileOffset)
    return equal and list(listing.subfolders(SOURCES)) == ["0"]


def request_for(listing: Listing, path: str) -> ReadRequest:
    """The bytes to read of a log file to see whether it is complete: all, or of a large file its end."""
    info = listing.info(path)
    size = info.size if info else 0
    return ReadRequest(path) if size <= _WHOLE else ReadRequest(path, size - _WHOLE, _WHOLE)


def parse(request: ReadRequest, data: bytes) -> tuple[SourceFile, ...] | Unreadable:
    """The files that an entry names; of a large one, those that its last lines name."""
    return parse_source_log(request.path, lines(request, data))


def lines(request: ReadRequest, data: bytes) -> bytes:
    """The lines that are complete in what was read, behind a version line."""
    return b"v1" + data[max(data.find(b"\n"), 0) :] if request.offset else data


def files_between(storage: Storage, folder: str, after: int, last: int) -> tuple[str, ...] | None:
    """The files that entries of a log name, as URIs: those behind ``after``, up to ``last``.

    None where an entry is missing or cannot be read.
    """
    try:
        names = storage.list_level(folder).files
    except NotFound:
        return None
    entries = range(after + 1, last + 1)
    wanted = [name for entry in entries for name in (f"{entry}.compact", str(entry)) if name in names]
    if len({compactible_id(name) for name in wanted}) < last - after:
        return None
    paths: dict[str, None] = {}
    for answer in storage.read_many([ReadRequest(f"{folder}/{name}") for name in wanted]):
        files = answer if isinstance(answer, StorageError) else parse_source_log(folder, answer)
        if isinstance(files, StorageError | Unreadable):
            return None
        paths |= dict.fromkeys(file.path for file in files if after < file.log_offset <= last)
    return tuple(paths)
