"""Asks a Delta table what it has for a streaming query, through ckpt's own storage: reads its log, looks for files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.delta import DeltaOffset
from ckpt.checkpoint.sources.registry import decode, value_of
from ckpt.errors import NotFound, SourceError, StorageError
from ckpt.formats.deltalog import segment
from ckpt.formats.text import Damaged
from ckpt.live.delta.changes import AddedFile, TableMetadata, TableVersion, reads_as, table_metadata, table_version
from ckpt.live.delta.options import delta_options
from ckpt.live.records import DeltaNow, DeltaOption, FileNow, VersionNow
from ckpt.live.sink.delta_files import DELTA_LOG, checkpoint_rows, log_lines, staged
from ckpt.model import Fault, Json, OffsetLog
from ckpt.storage import FileInfo, ReadRequest, Storage, open_storage
from ckpt.storage.base import one_line
from ckpt.texts import masked

_MOST_FILES = 5000
"""How many files that are still to be read are looked for."""
_MOST_VERSIONS = 200
"""How many versions are read backwards for the columns that the table had."""
_VERSION = re.compile(r"([0-9]{20})\.json")


def ask_delta(
    checkpoint: Checkpoint, index: int, given: Mapping[str, str], storage_options: Mapping[str, str]
) -> DeltaNow:
    """What the table at the option ``path`` has for source ``index`` of a checkpoint.

    Args:
        checkpoint: Its offsets say where a start goes back to.
        index: Of the source; it has an offset.
        given: Options of the reader, in lower case.
        storage_options: For the file system of the table.

    Raises:
        SourceError: There is no Delta table, or its log cannot be read.
        StorageError, UsageError: The place cannot be reached, or an option is wrong.

    """
    path = given["path"]
    storage = open_storage(path, storage_options)
    where = f"the Delta table at {one_line(masked(path))}"
    try:
        log = storage.list_level(DELTA_LOG)
    except NotFound:
        raise SourceError(f"{where}: it has no {DELTA_LOG}; check the option `path` of source {index}") from None
    if (folder := staged(storage, log)) is not None:
        raise SourceError(f"{where}: newer versions may be in a catalog only ({folder} has files)")
    options, most = delta_options(given)
    try:
        return _Table(storage, log.files).answer(_History(checkpoint, index), options, most)
    except Damaged as damage:
        raise SourceError(f"{where}: its log cannot be read: {one_line(damage.reason)}") from None


class _History:
    """Where batches ended, by the offset log."""

    def __init__(self, checkpoint: Checkpoint, index: int) -> None:
        logs = {batch: one for batch, one in checkpoint.offsets.entries.items() if isinstance(one, OffsetLog)}
        self._values = {batch: value_of(log, index) for batch, log in logs.items()}
        self._logs = logs

    @property
    def latest(self) -> int:
        return max(self._values)

    def end(self, batch: int) -> DeltaOffset | None:
        found = decode(self._values.get(batch))
        return found if isinstance(found, DeltaOffset) else None

    def value(self, batch: int) -> Json:
        return self._values.get(batch)

    def planned_ms(self, batch: int) -> int | None:
        metadata = self._logs[batch].metadata
        return metadata.timestamp_ms if metadata is not None else None

    def fitting(self, newest: int) -> int | None:
        """The newest batch whose end a table with versions up to this one has."""
        ends = ((batch, self.end(batch)) for batch in self._values)
        return max((b for b, one in ends if one and one.at_boundary and one.version <= newest + 1), default=None)


@dataclass(frozen=True, slots=True)
class _Begin:
    """From where on a start looks at the table."""

    version: int  # the first that it reads as changes
    snapshot: int | None  # the version that it reads as a whole


def _begin(before: DeltaOffset | None, end: DeltaOffset) -> _Begin:
    """``DeltaSource.getBatch``: without a start, the table as of the version before the one where the batch ended."""
    if before is None:
        whole = end.version if end.initial_snapshot else end.version - 1
        return _Begin(whole + 1, whole)
    if before.initial_snapshot:
        return _Begin(before.version + 1, before.version)
    return _Begin(before.version, None)


class _Table:
    """A table by the names in its log."""

    def __init__(self, storage: Storage, files: Mapping[str, FileInfo]) -> None:
        self._storage, self._files = storage, files
        self._segment = segment(files)
        self.latest = self._segment.version
        numbers = {int(one[1]) for name in files if (one := _VERSION.fullmatch(name))}
        self.first = self.latest + 1
        while self.first - 1 in numbers:
            self.first -= 1

    def answer(self, history: _History, options: frozenset[DeltaOption], most_files: int) -> DeltaNow:
        newest = self._newest_metadata()
        end, before = history.end(history.latest), history.end(history.latest - 1)
        if end is None or newest.id != end.table_id:
            end_before = history.value(history.latest - 1)
            return DeltaNow(newest.id, self.first, self.latest, (), end_before, options=options, most_files=most_files)
        begin = _begin(before, end)
        since = max(self.first, min(begin.version, end.last_read))
        read = self._versions(since, self.latest)
        snapshot = None if begin.snapshot is None else self._snapshot(begin.snapshot)
        files = [one for version in sorted(read) if version >= begin.version for one in read[version].added]
        there = self._looked_for([*(snapshot or ()), *files])
        planned, version = history.planned_ms(history.latest), read.get(end.last_read)
        written = None if version is None else version.written_ms
        late = written is not None and planned is not None and written > planned
        return DeltaNow(
            newest.id,
            self.first,
            self.latest,
            tuple(
                VersionNow(
                    number,
                    tuple(there[one] for one in found.added),
                    found.takes_rows,
                    found.metadata is None or reads_as(found.metadata.columns, newest.columns),
                )
                for number, found in sorted(read.items())
                if number >= begin.version
            ),
            history.value(history.latest - 1),
            begin.snapshot is None or self._has(begin.snapshot),
            None if snapshot is None else tuple(there[one] for one in snapshot),
            self._fits(begin.version, read, newest),
            _changed_in(read, newest),
            end.last_read if late else None,
            history.fitting(self.latest),
            options,
            most_files,
        )

    def _newest_metadata(self) -> TableMetadata:
        found: TableMetadata | None = None
        for name in self._segment.checkpoint:
            path, size = f"{DELTA_LOG}/{name}", self._files[name].size
            if name.endswith(".parquet"):
                for _, value in checkpoint_rows(self._storage, path, size, ("metaData",)):
                    found = table_metadata(value)
            else:
                found = self._read([name])[name].metadata or found
        read = self._read(self._segment.commits)
        for name in self._segment.commits:
            found = read[name].metadata or found
        if found is None:
            raise Damaged(Fault.INCOMPLETE, "it does not say what the table is")
        return found

    def _read(self, names: Sequence[str]) -> dict[str, TableVersion]:
        lines: dict[str, list[bytes]] = {name: [] for name in names}
        for name, line in log_lines(self._storage, [(name, self._files[name].size) for name in names]):
            if name:
                lines[name].append(line)
        return {name: table_version(some) for name, some in lines.items()}

    def _versions(self, first: int, last: int) -> dict[int, TableVersion]:
        names = {f"{version:020}.json": version for version in range(first, last + 1)}
        return {names[name]: found for name, found in self._read(list(names)).items()}

    def _has(self, version: int) -> bool:
        """Whether the table as of a version can be put together."""
        names = [name for name in self._files if name[:20].isdecimal() and int(name[:20]) <= version]
        try:
            return segment(names).version == version
        except Damaged:
            return False

    def _snapshot(self, version: int) -> tuple[AddedFile, ...] | None:
        """The files of the table as of a version, in the order in which a query reads them; only from its first on."""
        if self.first > 0 or version > self.latest:
            return None
        files: dict[str, AddedFile] = {}
        for _, found in sorted(self._versions(0, version).items()):
            for path in found.removed:
                files.pop(path, None)
            files |= {one.path: one for one in (*found.added, *found.rearranged)}
        return tuple(sorted(files.values(), key=lambda one: (one.modified_ms, one.path)))

    def _fits(self, version: int, read: Mapping[int, TableVersion], newest: TableMetadata) -> bool:
        """Whether the columns before a version can be read as the newest; where they did not change, they can."""
        changed = [number for number, found in read.items() if number >= version and found.metadata is not None]
        if not changed:
            return True
        low = max(self.first, version - _MOST_VERSIONS)
        for _, found in sorted(self._versions(low, version - 1).items(), reverse=True):
            if found.metadata is not None:
                return reads_as(found.metadata.columns, newest.columns)
        return True

    def _looked_for(self, files: Sequence[AddedFile]) -> dict[AddedFile, FileNow]:
        """Whether files are there: those of the table itself, the oldest first."""
        wanted = [one for one in dict.fromkeys(files) if _inside(one.path)][:_MOST_FILES]
        answers = self._storage.read_many([ReadRequest(one.path, 0, 1) for one in wanted])
        seen: dict[AddedFile, bool] = {}
        for one, answer in zip(wanted, answers, strict=True):
            if isinstance(answer, StorageError) and not isinstance(answer, NotFound):
                raise answer
            seen[one] = not isinstance(answer, NotFound)
        return {one: FileNow(one.rows, seen.get(one)) for one in files}


def _changed_in(read: Mapping[int, TableVersion], newest: TableMetadata) -> int | None:
    """The first of the newest versions whose columns can be read as those of the newest."""
    described = [(version, found.metadata) for version, found in sorted(read.items(), reverse=True) if found.metadata]
    fitting = takewhile(lambda one: reads_as(one[1].columns, newest.columns), described)
    return min((version for version, _ in fitting), default=None)


def _inside(path: str) -> bool:
    """Whether a path of the log leads to a file of the table; a clone also names files elsewhere."""
    return bool(path) and not re.match(r"/|[A-Za-z][A-Za-z0-9+.-]*:", path) and ".." not in path.split("/")
