"""What is left to be read of snapshots of an Iceberg table, by their summaries."""

from collections.abc import Sequence

from ckpt.checkpoint.sources.iceberg import IcebergOffset
from ckpt.live.outlook import counted
from ckpt.live.records import SnapshotNow


def count_of(snapshots: Sequence[SnapshotNow]) -> str:
    """How many files these have added, and rows, in words."""
    return counted(total([one.files for one in snapshots]) or 0, total([one.rows for one in snapshots]))


def rest(snapshot: SnapshotNow, offset: IcebergOffset) -> tuple[SnapshotNow, int | None, int | None]:
    """What is left of a snapshot after an offset in it: of all files of the table it cannot be told."""
    if snapshot.operation == "replace":
        return snapshot, 0, 0
    if offset.all_files or snapshot.files is None:
        return snapshot, None, None
    files = max(snapshot.files - offset.position, 0)
    rows = snapshot.rows if files == snapshot.files else 0 if files == 0 else None
    return snapshot, files, rows


def total(numbers: Sequence[int | None]) -> int | None:
    """Their sum; None where one of them is not known."""
    return None if None in numbers else sum(one or 0 for one in numbers)
