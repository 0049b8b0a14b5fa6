"""Asks an Iceberg table what it has for a streaming query: reads one metadata file, through ckpt's own storage."""

from collections.abc import Iterable, Mapping

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.sources.iceberg import IcebergOffset
from ckpt.checkpoint.sources.registry import decode, value_of
from ckpt.errors import NotFound, SourceError, StorageError
from ckpt.formats.iceberg import IcebergTable, is_metadata
from ckpt.formats.limits import LARGEST_RECORD
from ckpt.formats.text import Damaged, exact_json
from ckpt.live.options import flag, whole
from ckpt.live.records import IcebergNow, IcebergOption, SnapshotNow
from ckpt.live.sink.iceberg_files import (
    ASK_THE_CATALOG,
    METADATA,
    ReadTable,
    of_metadata_file,
    read_metadata_file,
    read_table,
)
from ckpt.model import Json
from ckpt.storage import open_storage
from ckpt.storage.base import one_line
from ckpt.texts import masked

_MAX_FILES, _MAX_ROWS = "streaming-max-files-per-micro-batch", "streaming-max-rows-per-micro-batch"
_FROM = "stream-from-timestamp"
KNOWN = {
    "path",
    _FROM,
    _MAX_FILES,
    _MAX_ROWS,
    *(str(one) for one in IcebergOption),
    "batch-size",
    "file-open-cost",
    "locality",
    "lookback",
    "split-size",
    "vectorization-enabled",
}
"""Options under which an Iceberg source has the rules that ckpt knows."""
OTHER_RULES = {"async-micro-batch-planning-enabled", "branch", "snapshot-id", "tag"}
"""Options under which an Iceberg source has other rules."""
_MOST = 2**31 - 1


def ask_iceberg(
    checkpoint: Checkpoint, index: int, given: Mapping[str, str], of_checkpoint: Mapping[str, str], *, same: bool
) -> IcebergNow:
    """What the table at the option ``path`` has for source ``index`` of a checkpoint.

    Args:
        checkpoint: Its offsets say where a start goes back to.
        index: Of the source; it has an offset.
        given: Options of the reader, in lower case; ``path`` is a table's folder or one of its metadata files.
        of_checkpoint: Options of the checkpoint's file system.
        same: Whether they are also for that of the table.

    Raises:
        SourceError: There is no Iceberg table, or its metadata cannot be read.
        StorageError, UsageError: The place cannot be reached, or an option is wrong.

    """
    path = given["path"]
    where = f"the Iceberg table at {one_line(masked(path))}"
    try:
        found = _read(path, of_checkpoint if same else {})
    except NotFound:
        raise SourceError(f"{where}: it has no {METADATA}; check the option `path` of source {index}") from None
    except Damaged as damage:
        why = f"its metadata cannot be read: {one_line(damage.reason)}; {ASK_THE_CATALOG}"
        raise SourceError(f"{where}: {why}") from None
    return _answer(found, checkpoint, index, given, _first_offset(checkpoint, index, of_checkpoint))


def _read(path: str, storage_options: Mapping[str, str]) -> ReadTable:
    file = of_metadata_file(path)
    if file is not None:
        return read_metadata_file(*file, storage_options)
    storage = open_storage(path, storage_options)
    if not any(map(is_metadata, storage.list_level(METADATA).files)):
        raise NotFound(METADATA)
    return read_table(storage)


def _first_offset(checkpoint: Checkpoint, index: int, storage_options: Mapping[str, str]) -> Json:
    """Where the query began (``SparkMicroBatchStream.InitialOffsetStore``); None where that is not there."""
    storage = open_storage(checkpoint.uri, storage_options)
    try:
        return exact_json(storage.read_range(f"sources/{index}/offsets/0", 0, LARGEST_RECORD).decode("utf-8"))
    except (StorageError, Damaged, UnicodeDecodeError):
        return None


def _answer(found: ReadTable, checkpoint: Checkpoint, index: int, given: Mapping[str, str], first: Json) -> IcebergNow:
    table = found.table
    chain = tuple(SnapshotNow(one.id, one.operation, one.added_files, one.added_rows) for one in table.ancestors())[
        ::-1
    ]
    ends, planned_ms = _ends(checkpoint, index)
    oldest = table.snapshots[chain[0].id] if chain else None
    places = (decode(value) for value in (*ends, first))
    named = {one.snapshot for one in places if isinstance(one, IcebergOffset) and one.snapshot is not None}
    return IcebergNow(
        table.id,
        found.file,
        chain,
        _branched(table, named - {one.id for one in chain}),
        oldest.parent if oldest is not None else None,
        ends[0],
        first,
        younger=oldest is None or (planned_ms is not None and oldest.written_ms > planned_ms),
        options=frozenset(one for one in IcebergOption if flag(given, one.value, False)),
        most_files=whole(given, _MAX_FILES, _MOST),
        most_rows=whole(given, _MAX_ROWS, _MOST),
        in_future=bool(chain) and table.snapshots[chain[-1].id].written_ms < whole(given, _FROM, 0),
    )


def _ends(checkpoint: Checkpoint, index: int) -> tuple[tuple[Json, Json], int | None]:
    """The ends of the batch before the latest and of that, and when the latest was planned."""
    latest = checkpoint.offsets.latest
    assert latest is not None
    before, log = checkpoint.offsets.readable(latest - 1), checkpoint.offsets.readable(latest)
    planned_ms = log.metadata.timestamp_ms if log is not None and log.metadata is not None else None
    return (value_of(before, index), value_of(log, index)), planned_ms


def _branched(table: IcebergTable, strays: Iterable[int]) -> dict[int, int | None]:
    """Of snapshots that are there and no ancestors, the newest ancestor of the current one that they descend from."""
    ancestors = {one.id for one in table.ancestors()}
    found: dict[int, int | None] = {}
    for stray in strays:
        if stray not in table.snapshots:
            continue
        at: int | None = stray
        seen: set[int] = set()
        while at is not None and at not in ancestors and at not in seen:
            seen.add(at)
            at = table.snapshots[at].parent if at in table.snapshots else None
        found[stray] = at if at in ancestors else None
    return found
