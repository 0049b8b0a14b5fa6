"""Says how the log of a file sink gets the entry of a batch that ``ckpt skip`` left out; pure."""

from ckpt.advice import Code, Words, words
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.formats.names import COMPACT
from ckpt.live.sink.records import FILE_LOG, SinkLog
from ckpt.storage.locations import local_path
from ckpt.texts import quote_path


def describe_fill(log: SinkLog, batch: int) -> Words:
    """Say how an entry without a file gets into the log of a file sink: a sentence without its full stop.

    A plain entry is a version line and nothing else. One that is due as a compacted file has the lines of all entries
    since the compacted file before it, as ``CompactibleFileStreamLog.compact`` writes them.
    """
    assert log.file_log is not None
    name = log.file_log.name_of(batch)
    folder, local = f"{log.uri.rstrip('/')}/{FILE_LOG}", local_path(log.uri)
    merged = [log.file_log.name_of(entry) for entry in range(log.file_log.first_needed, batch)]
    inside = "that holds v1 and nothing else"
    write = f"printf v1 > {quote_path(f'{local}/{FILE_LOG}/{name}')}"
    if name.endswith(COMPACT):
        inside = f"that holds v1 and then every line but the first of {merged[0]} to {merged[-1]}, in this order"
        files = " ".join(merged)
        write = f"cd {quote_path(f'{local}/{FILE_LOG}')} && (echo v1; awk 'FNR > 1' {files}) > {name}"
    if local is None:
        return words("put a file {name} {inside} into {folder}", name=name, inside=inside, folder=folder)
    parts = {"name": name, "inside": inside, "log": FILE_LOG}
    return words("put a file {name} {inside} into its {log}: {write}", **parts, write=Code(write))


def find_unfilled(checkpoint: Checkpoint, log: SinkLog) -> tuple[int, ...]:
    """Find the skipped batches that the log of a file sink has to get: none where it lacks others too."""
    if log.file_log is None or log.file_log.interval <= 0:
        return ()
    first = log.file_log.first_needed
    missing = [batch for low, high in log.file_log.missing for batch in range(low, high + 1)]
    latest = checkpoint.offsets.latest
    after = -1 if log.last_batch is None else log.last_batch
    committed = checkpoint.commits.ids
    missing += [batch for batch in committed if batch > after and latest is not None and batch <= latest]
    lacking = [batch for batch in missing if batch >= first]
    return tuple(lacking) if lacking and all(map(checkpoint.is_skipped, lacking)) else ()
