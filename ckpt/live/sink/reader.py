"""Which sink there is at a place, and what its log says."""

from collections.abc import Mapping

from ckpt.errors import NotFound, StorageError
from ckpt.formats.compaction import compactible_log
from ckpt.formats.iceberg import is_metadata
from ckpt.live.sink.delta import delta_table
from ckpt.live.sink.delta_files import DELTA_LOG
from ckpt.live.sink.iceberg import iceberg_sink
from ckpt.live.sink.iceberg_files import METADATA, of_metadata_file, read_metadata_file, read_table
from ckpt.live.sink.records import FILE_LOG, SinkKind, SinkLog
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


def read_sink(uri: str, storage_options: Mapping[str, str] | None = None) -> SinkLog:
    """Read what the sink at a path or URI remembers of batches: in ``_delta_log``, ``metadata`` or ``_spark_metadata``.

    Args:
        uri: A Delta or Iceberg table, a metadata file of Iceberg, the output folder of a file sink, or ``kafka://...``,
            which is not opened.
        storage_options: For the file system of the URI.

    Raises:
        NotFound: Nothing is there.
        StorageError, UsageError: It cannot be reached or read.

    >>> log = ckpt.read_sink("sample_checkpoints/kafka-4.2")
    >>> log.kind.value, log.last_batch
    ('unknown', None)

    """
    if uri.lower().startswith(("kafka:", "kafka+")):
        return SinkLog(uri, SinkKind.KAFKA, unknown=_TOPIC)
    file = of_metadata_file(uri)
    if file is not None:
        return iceberg_sink(uri, lambda: read_metadata_file(*file, storage_options or {}))
    storage = open_storage(uri, storage_options or {})
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
        case ["_delta_log"]:
            return delta_table(uri, storage)
        case ["_spark_metadata"]:
            return _files(uri, storage)
        case ["metadata"]:
            return iceberg_sink(uri, lambda: read_table(storage))
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


def _files(uri: str, storage: Storage) -> SinkLog:
    """A file sink, by the names in its log, which is all that ``FileStreamSink.addBatch`` looks at."""
    log = compactible_log(storage.list_level(FILE_LOG).files)
    if log.latest is not None and log.interval <= 0:
        return SinkLog(uri, SinkKind.UNKNOWN, unknown=f"the names in its {FILE_LOG} contradict one another")
    return SinkLog(uri, SinkKind.FILE, last_batch=log.latest, hole=log.first_missing)
