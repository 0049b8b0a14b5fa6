"""Asks an Iceberg table what it has for a streaming query: reads one metadata file, through ckpt's own storage."""

from collections.abc import Iterable
from contextlib import suppress

from ckpt.checkpoint.sources.file_logs import name_folder
from ckpt.checkpoint.sources.iceberg import IcebergOffset
from ckpt.checkpoint.sources.registry import Offset, parse_offset
from ckpt.errors import NotFound, StorageError, one_line
from ckpt.formats.iceberg import IcebergTable
from ckpt.formats.limits import LARGEST_RECORD
from ckpt.formats.text import Damaged
from ckpt.live.kind import SourceRequest, read_flag, read_number, refuse_options
from ckpt.live.records import IcebergNow, IcebergOption, NotAsked
from ckpt.live.sink.iceberg import (
    ASK_THE_CATALOG,
    METADATA,
    ReadTable,
    has_metadata,
    read_iceberg_files,
    split_metadata_uri,
)
from ckpt.live.tables import BatchEnds, build_error
from ckpt.storage import open_storage

_MAX_FILES, _MAX_ROWS = "streaming-max-files-per-micro-batch", "streaming-max-rows-per-micro-batch"
_FROM = "stream-from-timestamp"
_OF_READS = ("path", "batch-size", "file-open-cost", "locality", "lookback", "split-size", "vectorization-enabled")
KNOWN = {_FROM, _MAX_FILES, _MAX_ROWS, *map(str, IcebergOption), *_OF_READS}
"""Options under which an Iceberg source has the rules that ckpt knows."""
OTHER_RULES = {"async-micro-batch-planning-enabled", "branch", "snapshot-id", "tag"}
"""Options under which an Iceberg source has other rules."""
_MOST = 2**31 - 1


def ask_iceberg(request: SourceRequest) -> IcebergNow | NotAsked:
    """Ask the table at the option ``path``, its folder or one of its metadata files, what it has for a source.

    Raises SourceError where there is no Iceberg table, or its metadata cannot be read; StorageError, UsageError.
    """
    request = request.with_path()
    refusal = refuse_options(request.options, "Iceberg", KNOWN, OTHER_RULES)
    if refusal is not None:
        return refusal
    try:
        path, path_options = request.path, request.path_storage_options
        if split_metadata_uri(path) is None and not has_metadata(open_storage(path, path_options)):
            raise NotFound(METADATA)
        table = read_iceberg_files(path, path_options)
    except NotFound:
        raise build_error(request, "Iceberg", f"it has no {METADATA}; {request.advice}") from None
    except Damaged as damage:
        reason = f"its metadata cannot be read: {one_line(damage.reason)}; {ASK_THE_CATALOG}"
        raise build_error(request, "Iceberg", reason) from None
    return _answer(table, request)


def _only_iceberg(offset: Offset | None) -> IcebergOffset | None:
    return offset if isinstance(offset, IcebergOffset) else None


def _answer(read: ReadTable, request: SourceRequest) -> IcebergNow:
    storage = open_storage(request.checkpoint.uri, request.storage_options)
    first = None  # where the query began (``SparkMicroBatchStream.InitialOffsetStore``)
    with suppress(StorageError):
        path = f"{name_folder(request.index, request.view.name)}/offsets/0"
        first = _only_iceberg(parse_offset(storage.read_range(path, 0, LARGEST_RECORD)))
    table, options, ends = read.table, request.options, BatchEnds(request)
    ancestors = [*table.ancestors()][::-1]
    oldest = ancestors[0] if ancestors else None
    offsets = filter(None, map(_only_iceberg, (ends.before, ends.latest, first)))
    named = {offset.snapshot for offset in offsets if offset.snapshot is not None}
    return IcebergNow(
        table.id,
        read.file,
        tuple(ancestors),
        _find_branches(table, named - {each.id for each in ancestors}),
        oldest.parent if oldest is not None else None,
        first,
        younger=oldest is None or (ends.planned_ms is not None and oldest.written_ms > ends.planned_ms),
        options=frozenset(option for option in IcebergOption if read_flag(options, option.value, False)),
        most_files=read_number(options, _MAX_FILES, _MOST),
        most_rows=read_number(options, _MAX_ROWS, _MOST),
        in_future=bool(ancestors) and ancestors[-1].written_ms < read_number(options, _FROM, 0),
    )


def _find_branches(table: IcebergTable, strays: Iterable[int]) -> dict[int, int | None]:
    """Find where snapshots that are no ancestors of the current one branched off: at which of its ancestors, if any."""
    ancestors = {snapshot.id for snapshot in table.ancestors()}
    bases: dict[int, int | None] = {}
    for stray in strays:
        if stray not in table.snapshots:
            continue
        at: int | None = stray
        passed: set[int] = set()
        while at is not None and at not in ancestors and at not in passed:
            passed.add(at)
            at = table.snapshots[at].parent if at in table.snapshots else None
        bases[stray] = at if at in ancestors else None
    return bases
