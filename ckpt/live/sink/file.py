"""The batches of a file sink, by the names in its log, which are all that ``FileStreamSink.addBatch`` looks at."""

from ckpt.formats.names import compactible_log
from ckpt.live.sink.records import FILE_LOG, SinkKind, SinkLog
from ckpt.storage import Storage


def read_file_sink(uri: str, storage: Storage) -> SinkLog:
    """Read which batches a file sink has. Raises StorageError where its log cannot be listed."""
    log = compactible_log(storage.list_level(FILE_LOG).files)
    if log.latest is not None and log.interval <= 0:
        return SinkLog(uri, SinkKind.UNKNOWN, unknown=f"the names in its {FILE_LOG} contradict one another")
    return SinkLog(uri, SinkKind.FILE, last_batch=log.latest, hole=log.first_missing)
