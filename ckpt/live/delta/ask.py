"""Asks a Delta table what it has for a streaming query, through ckpt's own storage: reads its log, looks for files."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from urllib.parse import unquote

from ckpt.checkpoint.sources.delta import DeltaOffset
from ckpt.errors import NotFound, StorageError, one_line
from ckpt.formats.deltalog import choose_segment, decode_action
from ckpt.formats.extract import fields_of, text_field
from ckpt.formats.text import Damaged, exact_json
from ckpt.live.delta.outlook import find_begin
from ckpt.live.kind import SourceRequest, read_flag, read_number, refuse_options
from ckpt.live.records import DeltaNow, DeltaOption, FileNow, NotAsked, VersionNow
from ckpt.live.sink.delta_files import DELTA_LOG, find_staged, read_checkpoint_rows, read_log_lines
from ckpt.live.tables import BatchEnds, build_error
from ckpt.model import Fault, Json
from ckpt.storage import FileInfo, ReadRequest, Storage, open_storage


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """Id and columns of a table."""

    id: str
    columns: Json  # the StructType as Spark writes it


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version, as far as it changes rows."""

    added: tuple[FileNow, ...] = ()  # in the order in which a query counts them
    rearranged: tuple[FileNow, ...] = ()  # which hold rows of earlier files
    removed: tuple[str, ...] = ()  # all, also those whose rows are in other files
    takes_rows: bool = False
    metadata: TableMetadata | None = None
    written_ms: int | None = None


def parse_version(lines: Iterable[bytes]) -> TableVersion:
    """Parse a version from the lines of its file. Raises Damaged."""
    added: list[FileNow] = []
    rearranged: list[FileNow] = []
    removed: list[str] = []
    takes_rows, newest, written_ms = False, None, None
    for line in lines:
        action = decode_action(line)
        if (add := action.get("add")) is not None:
            (added if fields_of(add).get("dataChange") is True else rearranged).append(parse_added_file(add))
        elif (remove := action.get("remove")) is not None:
            removed.append(_decode_path(fields_of(remove)))
            takes_rows = takes_rows or fields_of(remove).get("dataChange") is True
        elif (metadata := action.get("metaData")) is not None:
            newest = parse_metadata(metadata)
        elif (info := action.get("commitInfo")) is not None:
            time = fields_of(info).get("timestamp")
            written_ms = time if isinstance(time, int) else None
    return TableVersion(tuple(added), tuple(rearranged), tuple(removed), takes_rows, newest, written_ms)


def parse_added_file(value: Json) -> FileNow:
    """Parse an ``add``. Raises Damaged."""
    fields = fields_of(value)
    modified = fields.get("modificationTime")
    modified_ms = modified if isinstance(modified, int) else 0
    return FileNow(_parse_rows(fields.get("stats")), None, _decode_path(fields), modified_ms)


def _decode_path(fields: Mapping[str, Json]) -> str:
    return unquote(text_field(fields, "path") or "")


def _parse_rows(stats: Json) -> int | None:
    try:
        rows = fields_of(exact_json(stats)).get("numRecords") if isinstance(stats, str) else None
    except Damaged:
        return None
    return rows if isinstance(rows, int) else None


def parse_metadata(value: Json) -> TableMetadata:
    """Parse a ``metaData``. Raises Damaged."""
    fields = fields_of(value)
    return TableMetadata(text_field(fields, "id") or "", exact_json(text_field(fields, "schemaString") or "{}"))


def reads_as(old: Json, new: Json) -> bool:
    """Tell whether a query with the columns of a version can read those of another: they may come, or get a wider type.

    None may go or get another name. Delta refuses the types that it cannot widen when the table is changed.

    >>> reads_as("integer", "long")
    True
    """
    if isinstance(old, str) or isinstance(new, str):
        return isinstance(old, str) and isinstance(new, str)
    before, after = fields_of(old), fields_of(new)
    if before.get("type") == after.get("type") == "struct":
        columns = {_lower_name(column): column for column in _list_columns(after)}
        return all(
            _lower_name(column) in columns and reads_as(column.get("type"), columns[_lower_name(column)].get("type"))
            for column in _list_columns(before)
        )
    kinds = ("type", "elementType", "keyType", "valueType")
    return all((kind in before) == (kind in after) for kind in kinds) and all(
        reads_as(before[kind], after[kind]) for kind in kinds if kind in before
    )


def _list_columns(struct: Mapping[str, Json]) -> Iterable[Mapping[str, Json]]:
    fields = struct.get("fields")
    return [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []


def _lower_name(column: Mapping[str, Json]) -> Json:
    name = column.get("name")
    return name.lower() if isinstance(name, str) else name


_MOST_FILES = 5000
"""How many files that are still to be read are looked for."""
_MOST_VERSIONS = 200
"""How many versions are read backwards for the columns that the table had."""
_KNOWN = frozenset(
    """
    excludeRegex failOnDataLoss ignoreChanges ignoreDeletes ignoreFileDeletion maxBytesPerTrigger maxFilesPerTrigger
    path skipChangeCommits startingTimestamp startingVersion withEventTimeOrder
    """.lower().split()
)
"""Options under which a Delta source has the rules that ckpt knows, in lower case."""
_CHANGE_FEED = {"readchangefeed", "readchangedata"}
"""The option for a table's change data feed, and its older name."""
_OTHER_RULES = {*_CHANGE_FEED, "schematrackinglocation", "schemalocation"}
"""Options under which a Delta source has other rules."""
_VERSION = re.compile(r"([0-9]{20})\.json")


def ask_delta(request: SourceRequest) -> DeltaNow | NotAsked:
    """Ask the table at the option ``path`` what it has for a source.

    Raises SourceError where there is no Delta table, or its log cannot be read; StorageError, UsageError.
    """
    request = request.with_path()
    refusal = refuse_options(request.options, "Delta", _KNOWN, _OTHER_RULES)
    if refusal is not None and _CHANGE_FEED.isdisjoint(request.options):
        return refusal
    now, offset = _ask_table(request), request.view.record
    other_table = isinstance(offset, DeltaOffset) and now.table_id != offset.table_id  # which stops any start
    return now if refusal is None or other_table else refusal


def _ask_table(request: SourceRequest) -> DeltaNow:
    storage = open_storage(request.path, request.path_storage_options)
    try:
        log = storage.list_level(DELTA_LOG)
    except NotFound:
        raise build_error(request, "Delta", f"it has no {DELTA_LOG}; {request.advice}") from None
    if (folder := find_staged(storage, log)) is not None:
        raise build_error(request, "Delta", f"newer versions may exist only in a catalog ({folder} has files)")
    options, most_files = _read_options(request.options)
    try:
        return _Table(storage, log.files).answer(BatchEnds(request), options, most_files)
    except Damaged as damage:
        raise build_error(request, "Delta", f"its log cannot be read: {one_line(damage.reason)}") from None


def _read_options(values: Mapping[str, str]) -> tuple[frozenset[DeltaOption], int]:
    """Read which options decide what stops a reader, and how many files it reads in a batch. Raises UsageError."""
    options = set() if read_flag(values, "failOnDataLoss", True) else {DeltaOption.LOSES}
    for option in (DeltaOption.SKIPS_CHANGES, DeltaOption.IGNORES_CHANGES, DeltaOption.IGNORES_DELETES):
        if read_flag(values, option.value, False):
            options.add(option)
    if read_flag(values, "ignoreFileDeletion", False):
        options.add(DeltaOption.IGNORES_CHANGES)
    return frozenset(options), read_number(values, "maxFilesPerTrigger", 1000)


class _Table:
    """A table by the names in its log."""

    def __init__(self, storage: Storage, files: Mapping[str, FileInfo]) -> None:
        self._storage, self._files = storage, files
        self._segment = choose_segment(files)
        self.latest = self._segment.version
        numbers = {int(match[1]) for name in files if (match := _VERSION.fullmatch(name))}
        self.first = self.latest + 1
        while self.first - 1 in numbers:
            self.first -= 1

    def answer(self, ends: BatchEnds, options: frozenset[DeltaOption], most_files: int) -> DeltaNow:
        newest = self._read_newest_metadata()
        before, end = ends.before if isinstance(ends.before, DeltaOffset) else None, ends.latest
        now = DeltaNow(newest.id, self.first, self.latest, (), before, options=options, most_files=most_files)
        if not isinstance(end, DeltaOffset) or newest.id != end.table_id:
            return now
        begin = find_begin(before, end)
        whole, begin_version = begin.initial_snapshot, begin.version + begin.initial_snapshot
        read = self._read_versions(max(self.first, min(begin_version, end.last_read)), self.latest)
        new = {number: version for number, version in sorted(read.items()) if number >= begin_version}
        snapshot = self._list_snapshot(begin.version) if whole else None
        there = self._look_for([*(snapshot or ()), *(file for version in new.values() for file in version.added)])
        last = read.get(end.last_read)
        written_ms = None if last is None else last.written_ms
        late = written_ms is not None and ends.planned_ms is not None and written_ms > ends.planned_ms
        deltas = ((batch, at) for batch, at in ends if isinstance(at, DeltaOffset))
        fitting = (batch for batch, at in deltas if at.at_boundary and at.version <= self.latest + 1)  # ends it has
        return replace(
            now,
            versions=tuple(
                VersionNow(
                    number,
                    tuple(there.get(file, file) for file in version.added),
                    version.takes_rows,
                    _read_alike(version, newest),
                )
                for number, version in new.items()
            ),
            begins_readable=not whole or self._has(begin.version),
            snapshot=None if snapshot is None else tuple(there.get(file, file) for file in snapshot),
            fits=self._fits(begin_version, read, newest),
            changed_in=_find_change(read, newest),
            rewritten=end.last_read if late else None,
            fitting_batch=max(fitting, default=None),
        )

    def _read_newest_metadata(self) -> TableMetadata:
        parquet = [name for name in self._segment.checkpoint if name.endswith(".parquet")]
        lines = [name for name in (*self._segment.checkpoint, *self._segment.commits) if name not in parquet]
        described: list[TableMetadata] = []
        for name in parquet:
            path, size = f"{DELTA_LOG}/{name}", self._files[name].size
            rows = read_checkpoint_rows(self._storage, path, size, ("metaData",))
            described += (parse_metadata(value) for _, value in rows)
        described += (version.metadata for version in self._read(lines).values() if version.metadata is not None)
        if not described:
            raise Damaged(Fault.INCOMPLETE, "it has no table metadata")
        return described[-1]

    def _read(self, names: Sequence[str]) -> dict[str, TableVersion]:
        lines_of: dict[str, list[bytes]] = {name: [] for name in names}
        for name, line in read_log_lines(self._storage, [(name, self._files[name].size) for name in names]):
            if name:
                lines_of[name].append(line)
        return {name: parse_version(lines) for name, lines in lines_of.items()}

    def _read_versions(self, first: int, last: int) -> dict[int, TableVersion]:
        names = {f"{version:020}.json": version for version in range(first, last + 1)}
        return {names[name]: version for name, version in self._read(list(names)).items()}

    def _has(self, version: int) -> bool:
        """Tell whether the table as of a version can be put together."""
        names = [name for name in self._files if name[:20].isdecimal() and int(name[:20]) <= version]
        try:
            return choose_segment(names).version == version
        except Damaged:
            return False

    def _list_snapshot(self, version: int) -> tuple[FileNow, ...] | None:
        """List files of the table as of a version, as a query reads them; None where its first versions are gone."""
        if self.first > 0 or version > self.latest:
            return None
        files: dict[str, FileNow] = {}
        for _, changes in sorted(self._read_versions(0, version).items()):
            for path in changes.removed:
                files.pop(path, None)
            files |= {file.path: file for file in (*changes.added, *changes.rearranged)}
        return tuple(sorted(files.values(), key=lambda file: (file.modified_ms, file.path)))

    def _fits(self, version: int, read: Mapping[int, TableVersion], newest: TableMetadata) -> bool:
        """Tell whether columns before a version can be read as the newest; where they did not change, they can."""
        if not any(number >= version and changes.metadata is not None for number, changes in read.items()):
            return True
        low = max(self.first, version - _MOST_VERSIONS)
        for _, changes in sorted(self._read_versions(low, version - 1).items(), reverse=True):
            if changes.metadata is not None:
                return reads_as(changes.metadata.columns, newest.columns)
        return True

    def _look_for(self, files: Sequence[FileNow]) -> dict[FileNow, FileNow]:
        """Look for files of the table itself, the oldest first."""
        wanted = [file for file in dict.fromkeys(files) if _is_inside(file.path)][:_MOST_FILES]
        answers = self._storage.read_many([ReadRequest(file.path, 0, 1) for file in wanted])
        there: dict[FileNow, FileNow] = {}
        for file, answer in zip(wanted, answers, strict=True):
            if isinstance(answer, StorageError) and not isinstance(answer, NotFound):
                raise answer
            there[file] = replace(file, there=not isinstance(answer, NotFound))
        return there


def _find_change(read: Mapping[int, TableVersion], newest: TableMetadata) -> int | None:
    """Find the first of the newest versions whose columns can be read as those of the newest."""
    described = [number for number in sorted(read, reverse=True) if read[number].metadata is not None]
    fitting = takewhile(lambda number: _read_alike(read[number], newest), described)
    return min(fitting, default=None)


def _read_alike(version: TableVersion, newest: TableMetadata) -> bool:
    return version.metadata is None or reads_as(version.metadata.columns, newest.columns)


def _is_inside(path: str) -> bool:
    """Tell whether a path of the log leads to a file of the table; a clone also names files elsewhere."""
    return bool(path) and not re.match(r"/|[A-Za-z][A-Za-z0-9+.-]*:", path) and ".." not in path.split("/")
