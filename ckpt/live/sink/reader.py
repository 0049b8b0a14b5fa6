"""Recognizes the sink at a location and reads its log."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ckpt.errors import NotFound, StorageError, UsageError, one_line
from ckpt.formats.names import COMPACT, CompactibleLog, compactible_id, compactible_log
from ckpt.formats.sourcelogs import find_modification_times, parse_sink_log
from ckpt.live.sink.delta_files import DELTA_LOG, read_delta_sink
from ckpt.live.sink.iceberg import METADATA, has_metadata, is_in_catalog, read_batches, split_metadata_uri
from ckpt.live.sink.records import FILE_LOG, SinkKind, SinkLog
from ckpt.model import Unreadable
from ckpt.plugins import ask_plugins
from ckpt.restart.sinks import NAMED_SINKS, Sink
from ckpt.storage import FileInfo, Folder, ReadRequest, Storage, open_storage
from ckpt.storage.locations import is_same_kind
from ckpt.texts import mask_secrets

_SEVERAL = "it has {}, and ckpt cannot know which of them the query writes to"
_NONE = (
    f"it has neither {DELTA_LOG} nor {FILE_LOG}, and no Iceberg metadata: it is not a table that ckpt reads, nor the "
    "output of a file sink, or its log is gone, so its batches are unknown"
)
_TIMED = 10  # newest entries whose times are read: as many batches as are judged
_HEAD = 1 << 16  # bytes of an entry: its first files were written in the batch as the others were
_DATA_FILE = re.compile(r"part-\d{5}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-c\d{3}\.")
_HUDI = "a Hudi table, whose log ckpt does not read: its batches are unknown"


def _read_file_sink(uri: str, storage: Storage) -> SinkLog:
    """Read the batches by the names in the log, which are all that ``FileStreamSink.addBatch`` looks at."""
    files = storage.list_level(FILE_LOG).files
    log = compactible_log(files)
    if log.latest is not None and log.interval <= 0:
        return SinkLog(uri, SinkKind.UNKNOWN, unknown=f"the names in its {FILE_LOG} contradict one another")
    return SinkLog(
        uri,
        SinkKind.FILE,
        last_batch=log.latest,
        hole=log.first_missing,
        damaged=_find_damaged(storage, files, log),
        file_log=log,
        written_ms=_read_times(storage, files),
    )


def _find_damaged(storage: Storage, files: Mapping[str, FileInfo], log: CompactibleLog) -> tuple[str, str] | None:
    """Find the first file that a reader or the next compaction needs and cannot read, and why, by its two ends."""
    names = () if log.latest is None else map(log.name_of, range(log.first_needed, log.latest + 1))
    sizes = {name: files[name].size for name in names if name in files}
    ranges = [
        ReadRequest(f"{FILE_LOG}/{name}", offset, _HEAD)
        for name, size in sizes.items()
        for offset in (0, max(0, size - _HEAD))
    ]
    ends = storage.read_many(ranges)
    for (name, size), head, tail in zip(sizes.items(), ends[::2], ends[1::2], strict=True):
        if not (isinstance(head, bytes) and isinstance(tail, bytes)):
            continue
        parts = (head,) if size <= _HEAD else (head.rpartition(b"\n")[0], b"v1\n" + tail.partition(b"\n")[2])
        for part in parts:
            if isinstance(entry := parse_sink_log(name, part), Unreadable):
                return name, entry.reason
    return None


def _read_times(storage: Storage, files: Mapping[str, FileInfo]) -> dict[int, int]:
    """Read when the newest batches were written: by the files that an entry names, for it may have been copied since.

    An entry that names none, or is compacted, so that it names those of other batches too, has the time of its file.
    """
    entries = {batch: name for name in files if (batch := compactible_id(name)) is not None and batch >= 0}
    newest = sorted(entries)[-_TIMED:]
    times = {batch: time_ms for batch in newest if (time_ms := files[entries[batch]].mtime_ms)}
    plain = [batch for batch in newest if not entries[batch].endswith(COMPACT)]
    heads = storage.read_many(ReadRequest(f"{FILE_LOG}/{entries[batch]}", 0, _HEAD) for batch in plain)
    for batch, head in zip(plain, heads, strict=True):
        if isinstance(head, bytes) and (written := max(find_modification_times(head), default=0)):
            times[batch] = written
    return times


PLUGINS = "ckpt.sinks"
"""Entry points of functions ``(uri, storage_options) -> SinkLog | None``; None: the place is no sink of theirs."""


def read_sink(uri: str, storage_options: Mapping[str, str] | None = None) -> SinkLog:
    """Read what the sink at a path or URI remembers of batches: in ``_delta_log``, ``metadata`` or ``_spark_metadata``.

    That is a Delta or Iceberg table, a metadata file of Iceberg, a table of an Iceberg catalog
    (``iceberg://CATALOG/NAMESPACE.TABLE``), the output folder of a file sink, or ``kafka://...``, which is not opened.
    ``upsert``, ``append``, ``kafka`` and ``noop`` say what the sink does, and nothing is read (``./upsert`` is a folder
    of that name). A place of another kind is read by a plugin, if one recognizes it. Raises NotFound, StorageError,
    UsageError.
    """
    options = storage_options or {}
    try:
        log = _read_built_in(uri, options)
    except (NotFound, UsageError):
        plugged = _ask_plugins(uri, options)
        if plugged is None:
            raise
        return plugged
    return (_ask_plugins(uri, options) or log) if log.unknown in (_NONE, _HUDI) else log


def _ask_plugins(uri: str, storage_options: Mapping[str, str]) -> SinkLog | None:
    """Read a sink that no built-in kind recognizes by the first plugin that does."""

    def ask(read: Any) -> SinkLog | None:
        log = read(uri, storage_options)
        if log is not None and not (isinstance(log, SinkLog) and (log.rules or log.unknown is not None)):
            raise TypeError("it must return None, or a SinkLog with rules or with unknown")
        return log

    return next(ask_plugins(PLUGINS, ask), None)


def _read_built_in(uri: str, storage_options: Mapping[str, str]) -> SinkLog:
    if uri.lower().startswith(("kafka:", "kafka+")):
        return SinkLog(uri, SinkKind.KAFKA)
    if any(uri == sink.kind for sink in NAMED_SINKS):
        return SinkLog(uri, SinkKind(uri))
    if is_in_catalog(uri) or split_metadata_uri(uri) is not None:
        return read_batches(uri, storage_options)
    storage = open_storage(uri, storage_options)
    try:
        top = storage.list_level()
    except NotFound as error:
        raise NotFound(f"{error}; if the sink was deleted, it has no batch") from error
    return _read_folder(uri, storage, top, storage_options)


def _read_folder(uri: str, storage: Storage, top: Folder, storage_options: Mapping[str, str]) -> SinkLog:
    readers: dict[str, Callable[[], SinkLog]] = {  # by the folder of the log
        DELTA_LOG: lambda: read_delta_sink(uri, storage),
        FILE_LOG: lambda: _read_file_sink(uri, storage),
        METADATA: lambda: read_batches(uri, storage_options),
    }
    folders, unlisted = [folder for folder in readers if folder in top.folders], None
    try:
        if METADATA in folders and not has_metadata(storage):
            folders.remove(METADATA)
    except StorageError as error:
        folders.remove(METADATA)
        unlisted = one_line(f"it has neither {DELTA_LOG} nor {FILE_LOG}, and {error}")
    if not folders:
        unknown = unlisted or (_HUDI if ".hoodie" in top.folders else _NONE)
        return SinkLog(uri, SinkKind.UNKNOWN, unknown=unknown, unlogged=_find_data_file(top))
    if len(folders) == 1:
        return readers[folders[0]]()
    logs = [] if FILE_LOG in folders else [readers[folder]() for folder in folders]
    return _choose_format(logs) or SinkLog(uri, SinkKind.UNKNOWN, unknown=_SEVERAL.format(" and ".join(folders)))


def _find_data_file(top: Folder) -> str | None:
    """Find a data file as ``ManifestFileCommitProtocol`` names it, where no batch job has marked its success."""
    if "_SUCCESS" in top.files or ".hoodie" in top.folders:
        return None
    return next((name for name in sorted(top.files) if _DATA_FILE.match(name)), None)


def _choose_format(logs: Sequence[SinkLog]) -> SinkLog | None:
    """Choose, of a table in several formats (UniForm), the one that a streaming query writes to, if it is one."""
    written = [log for log in logs if any(writer.may_be_query for writer in log.writers)] or logs[:1]
    return written[0] if len(written) == 1 else None


def ask_sink(
    uri: str | None, checkpoint: str, storage_options: Mapping[str, str], *, partial: bool = False
) -> SinkLog | None:
    """Read the sink that was named beside a checkpoint, with the storage options of that where both are of one kind.

    With ``partial`` the record of a sink that cannot be reached or read says so; otherwise StorageError is raised.
    """
    if uri is None:
        return None
    try:
        log = read_sink(uri, storage_options if is_same_kind(uri, checkpoint) else None)
        if log.unreached:
            raise StorageError(f"{one_line(mask_secrets(uri))}: {log.unknown}")
    except StorageError as error:
        if not partial:
            raise
        gone = isinstance(error, NotFound)
        return SinkLog(uri, SinkKind.UNKNOWN, unknown=f"not reached: {error}", unreached=True, gone=gone)
    return log


def find_kind(uri: str | None, checkpoint: str, storage_options: Mapping[str, str] | None) -> Sink | None:
    """Find the kind of the sink that was named beside a checkpoint; None where none was, or its kind is not known.

    Raises NotFound, StorageError, UsageError.
    """
    log = ask_sink(uri, checkpoint, storage_options or {})
    return None if log is None or log.unknown is not None else log.sink
