"""Recognizes the sink at a location and reads its log."""

from collections.abc import Callable, Mapping
from typing import Any

from ckpt.errors import NotFound, StorageError, UsageError
from ckpt.formats.iceberg import is_metadata
from ckpt.live.sink.delta import delta_table
from ckpt.live.sink.delta_files import DELTA_LOG
from ckpt.live.sink.file import file_sink
from ckpt.live.sink.iceberg import iceberg_sink
from ckpt.live.sink.iceberg_files import METADATA, of_metadata_file, read_metadata_file, read_table
from ckpt.live.sink.records import FILE_LOG, SinkKind, SinkLog
from ckpt.plugins import ask_plugins
from ckpt.storage import Folder, Storage, open_storage
from ckpt.storage.base import one_line
from ckpt.storage.locations import is_same_kind
from ckpt.texts import masked

_TOPIC = (
    "a Kafka topic keeps no batch ids, so what it has cannot be known; it accepts every row, so rows that are read "
    "again are written again"
)
_SEVERAL = "it has {}: which of them the query writes to cannot be known from here"
_NONE = (
    f"it has neither {DELTA_LOG} nor {FILE_LOG}, and no metadata of Iceberg: it is no table that ckpt reads and no "
    "output of a file sink, or its log is gone, so what it has cannot be known"
)
_HUDI = "a Hudi table, whose log ckpt does not read: what it has cannot be known from here"
_READERS: Mapping[str, Callable[[str, Storage], SinkLog]] = {
    DELTA_LOG: delta_table,
    FILE_LOG: file_sink,
    METADATA: lambda uri, storage: iceberg_sink(uri, lambda: read_table(storage)),
}
"""The reader of each kind of sink, by the folder of its log."""
PLUGINS = "ckpt.sinks"
"""Entry points of functions ``(uri, storage_options) -> SinkLog | None``; None: the place is no sink of theirs."""


def read_sink(uri: str, storage_options: Mapping[str, str] | None = None) -> SinkLog:
    """Read what the sink at a path or URI remembers of batches: in ``_delta_log``, ``metadata`` or ``_spark_metadata``.

    Args:
        uri: A Delta or Iceberg table, a metadata file of Iceberg, the output folder of a file sink, or ``kafka://...``,
            which is not opened. A place of another kind is read by a plugin, if one recognizes it.
        storage_options: For the file system of the URI.

    Raises:
        NotFound: Nothing is there.
        StorageError, UsageError: It cannot be reached or read.

    >>> log = ckpt.read_sink("sample_checkpoints/kafka-4.2")
    >>> log.kind.value, log.last_batch
    ('unknown', None)

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
            raise TypeError("it has to return None, or a SinkLog with rules or with unknown")
        return log

    return next(ask_plugins(PLUGINS, ask), None)


def _read_built_in(uri: str, storage_options: Mapping[str, str]) -> SinkLog:
    if uri.lower().startswith(("kafka:", "kafka+")):
        return SinkLog(uri, SinkKind.KAFKA, unknown=_TOPIC)
    file = of_metadata_file(uri)
    if file is not None:
        return iceberg_sink(uri, lambda: read_metadata_file(*file, storage_options))
    storage = open_storage(uri, storage_options)
    try:
        top = storage.list_level()
    except NotFound as error:
        raise NotFound(f"{error}; a sink that was deleted has no rows of any batch") from error
    return _found(uri, storage, top)


def _found(uri: str, storage: Storage, top: Folder) -> SinkLog:
    logs = [name for name in (DELTA_LOG, FILE_LOG) if name in top.folders]
    try:
        inside = storage.list_level(METADATA).files if METADATA in top.folders else {}
    except StorageError as error:
        if not logs:
            return SinkLog(
                uri, SinkKind.UNKNOWN, unknown=one_line(f"it has neither {DELTA_LOG} nor {FILE_LOG}, and {error}")
            )
        inside = {}
    if any(is_metadata(name) for name in inside):
        logs.append(METADATA)
    match logs:
        case ["_delta_log", "metadata"]:
            return _of_both(delta_table(uri, storage), iceberg_sink(uri, lambda: read_table(storage)))
        case [log]:
            return _READERS[log](uri, storage)
    why = _SEVERAL.format(" and ".join(logs)) if logs else _HUDI if ".hoodie" in top.folders else _NONE
    return SinkLog(uri, SinkKind.UNKNOWN, unknown=why)


def _of_both(delta: SinkLog, iceberg: SinkLog) -> SinkLog:
    """A table of one kind that has metadata of the other too (UniForm): the one that a streaming query writes to."""
    written = [one for one in (delta, iceberg) if any(writer.may_be_query for writer in one.writers)]
    if len(written) > 1:
        return SinkLog(delta.uri, SinkKind.UNKNOWN, unknown=_SEVERAL.format(f"{DELTA_LOG} and {METADATA}"))
    return written[0] if written else delta


def sink_of(
    uri: str | None, checkpoint: str, storage_options: Mapping[str, str], *, partial: bool = False
) -> SinkLog | None:
    """The sink that was named beside a checkpoint: the storage options of that hold where both are of one kind.

    With ``partial`` the record of a sink that cannot be reached or read says so; otherwise StorageError is raised.
    """
    if uri is None:
        return None
    try:
        log = read_sink(uri, storage_options if is_same_kind(uri, checkpoint) else None)
        if log.unreached:
            raise StorageError(f"{one_line(masked(uri))}: {log.unknown}")
    except StorageError as error:
        if not partial:
            raise
        return SinkLog(uri, SinkKind.UNKNOWN, unknown=f"not reached: {error}", unreached=True)
    return log
