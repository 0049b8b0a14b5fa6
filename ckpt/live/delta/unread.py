"""Files of a Delta table that a streaming query has still to read, by its offsets and what the table has now."""

from collections.abc import Sequence

from ckpt.checkpoint.sources.delta import DeltaOffset
from ckpt.live.records import DeltaNow, FileNow, VersionNow
from ckpt.live.tables import describe_counts

VersionFiles = tuple[VersionNow, Sequence[FileNow]]
"""A version, and those of its files that are meant."""


def count_files(files: Sequence[FileNow]) -> str:
    """Say how many files these are, and how many rows they have."""
    return describe_counts((1, file.rows) for file in files)


def list_after(now: DeltaNow, offset: DeltaOffset) -> list[VersionFiles]:
    """List what a query reads after an offset, by version; the rest of the first table is version -1."""
    if offset.initial_snapshot:
        rest = (now.snapshot or ())[max(offset.index, -1) + 1 :]
        return [
            (VersionNow(-1), rest),
            *((version, version.files) for version in now.versions if version.version > offset.version),
        ]
    unread: list[VersionFiles] = []
    for version in now.versions:
        if version.version == offset.version and not offset.at_boundary:
            unread.append((VersionNow(version.version), version.files[offset.index + 1 :]))
        elif version.version >= offset.version:
            unread.append((version, version.files))
    return unread


def find_begin(before: DeltaOffset | None, end: DeltaOffset) -> DeltaOffset:
    """``DeltaSource.getBatch``: without a start, the table as of the version before the one where the batch ended."""
    whole = end.version if end.initial_snapshot else end.version - 1
    return before or DeltaOffset(end.table_id, whole, -1, initial_snapshot=True)


def list_batch(now: DeltaNow, before: DeltaOffset | None, end: DeltaOffset) -> list[FileNow]:
    """List the files of a batch that was planned."""
    rest = sum(len(files) for _, files in list_after(now, end))
    unread = [file for _, files in list_after(now, find_begin(before, end)) for file in files]
    return unread[: len(unread) - rest]
