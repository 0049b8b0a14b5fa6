"""Which files of a Delta table a streaming query has still to read, by its offsets and what the table has now."""

from collections.abc import Sequence

from ckpt.checkpoint.sources.delta import DeltaOffset
from ckpt.checkpoint.sources.registry import decode
from ckpt.live.outlook import counted
from ckpt.live.records import DeltaNow, FileNow, VersionNow
from ckpt.model import Json


def place(value: Json) -> DeltaOffset | None:
    """An offset of the log; None where it is not one of Delta."""
    found = decode(value)
    return found if isinstance(found, DeltaOffset) else None


def count_of(files: Sequence[FileNow]) -> str:
    """How many files these are, and how many rows they have, in words."""
    rows = [file.rows for file in files]
    return counted(len(files), sum(one or 0 for one in rows) if None not in rows else None)


def after(now: DeltaNow, at: DeltaOffset) -> list[tuple[VersionNow, Sequence[FileNow]]]:
    """What a query reads after an offset, by version; what is left of the first table as version -1."""
    if at.initial_snapshot:
        rest = (now.snapshot or ())[at.index + 1 :] if at.index >= 0 else now.snapshot or ()
        return [(VersionNow(-1), rest), *((one, one.files) for one in now.versions if one.version > at.version)]
    found: list[tuple[VersionNow, Sequence[FileNow]]] = []
    for one in now.versions:
        if one.version == at.version and not at.at_boundary:
            found.append((VersionNow(one.version), one.files[at.index + 1 :]))
        elif one.version >= at.version:
            found.append((one, one.files))
    return found


def between(now: DeltaNow, before: DeltaOffset | None, end: DeltaOffset) -> list[FileNow]:
    """The files of a batch that was planned."""
    begin = before or DeltaOffset(
        end.table_id, end.version if end.initial_snapshot else end.version - 1, -1, initial_snapshot=True
    )
    rest = sum(len(files) for _, files in after(now, end))
    files = [file for _, some in after(now, begin) for file in some]
    return files[: len(files) - rest]
