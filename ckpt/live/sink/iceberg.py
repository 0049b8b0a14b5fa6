"""The batches of an Iceberg table, by the summaries of its snapshots: no JVM, no other package."""

from collections.abc import Callable

from ckpt.formats.iceberg import IcebergSnapshot
from ckpt.formats.text import Damaged
from ckpt.live.sink.iceberg_files import ASK_THE_CATALOG, ReadTable
from ckpt.live.sink.records import SinkKind, SinkLog, SinkWriter
from ckpt.storage.base import one_line


def iceberg_sink(uri: str, read: Callable[[], ReadTable]) -> SinkLog:
    """Read which batches an Iceberg table has. Raises StorageError where it cannot be read."""
    try:
        found = read()
    except Damaged as damage:
        why = f"its metadata cannot be read: {damage.reason}; {ASK_THE_CATALOG}"
        return SinkLog(uri, SinkKind.ICEBERG, unknown=one_line(why), unreached=True)
    return SinkLog(uri, SinkKind.ICEBERG, writers=_writers(found), read_from=found.file, cut=_cut(found))


def _writers(found: ReadTable) -> tuple[SinkWriter, ...]:
    """Each query with its newest batch among the ancestors of the current snapshot (``findLastCommittedEpochId``)."""
    batches: dict[str, list[tuple[int, IcebergSnapshot]]] = {}
    for one in found.table.ancestors():
        if one.query_id is not None and one.batch is not None:
            batches.setdefault(one.query_id, []).append((one.batch, one))
    there = found.table.snapshots
    return tuple(
        SinkWriter(
            query,
            mine[0][0],
            mine[0][1].written_ms,
            expired=False,
            before={batch: one.parent for batch, one in mine if one.parent is not None and one.parent in there},
        )
        for query, mine in batches.items()
    )


def _cut(found: ReadTable) -> bool:
    *_, oldest = (None, *found.table.ancestors())
    return oldest is not None and oldest.parent is not None
