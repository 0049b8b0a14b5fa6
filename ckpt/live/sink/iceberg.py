"""Rules for the batches of an Iceberg table, by the summaries of its snapshots; pure."""

from ckpt.formats.iceberg import IcebergSnapshot, IcebergTable
from ckpt.live.sink.records import SinkKind, SinkLog, SinkWriter


def find_iceberg_batches(uri: str, table: IcebergTable, file: str) -> SinkLog:
    """Find each query's newest batch among the ancestors of the current snapshot (``findLastCommittedEpochId``)."""
    ancestors = list(table.ancestors())
    batches: dict[str, list[tuple[int, IcebergSnapshot]]] = {}
    for snapshot in ancestors:
        if snapshot.query_id is not None and snapshot.batch is not None:
            batches.setdefault(snapshot.query_id, []).append((snapshot.batch, snapshot))
    writers = tuple(
        SinkWriter(
            query_id,
            written[0][0],
            written[0][1].written_ms,
            expired=False,
            before={
                batch: parent
                for batch, each in written
                if (parent := each.parent) is not None and parent in table.snapshots
            },
        )
        for query_id, written in batches.items()
    )
    cut = bool(ancestors) and ancestors[-1].parent is not None
    return SinkLog(uri, SinkKind.ICEBERG, writers=writers, read_from=file, cut=cut)
