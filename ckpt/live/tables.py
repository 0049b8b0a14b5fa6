"""Rules for every table that is read as a stream, by versions (Delta) or by snapshots (Iceberg); pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ckpt.checkpoint.sources.registry import Offset, offset_of
from ckpt.errors import SourceError, one_line
from ckpt.live.kind import NextRead, SourceRequest
from ckpt.live.outlook import SourceOutlook, Trouble, judge_source
from ckpt.texts import mask_secrets, plural

Counts = tuple[int | None, int | None]
"""Files, and the rows in them; None where that is not recorded."""
UNKNOWN: Counts = (None, None)


def build_error(request: SourceRequest, table: str, reason: str) -> SourceError:
    """Build the error of a table that cannot be read: ``Delta``, and a reason without a full stop."""
    return SourceError(f"the {table} table at {one_line(mask_secrets(request.path))}: {reason}")


class BatchEnds:
    """Where the batches of one source ended, by the offset log."""

    def __init__(self, request: SourceRequest) -> None:
        self._index, self._logs = request.index, request.checkpoint.offsets.records
        latest = max(self._logs)
        self.latest, self.before = self.find(latest), self.find(latest - 1)
        metadata = self._logs[latest].metadata
        self.planned_ms = metadata.timestamp_ms if metadata is not None else None  # of the latest

    def find(self, batch: int) -> Offset | None:
        """Find the end of a batch; None where there is none."""
        return offset_of(self._logs.get(batch), self._index)

    def __iter__(self) -> Iterator[tuple[int, Offset | None]]:
        return ((batch, self.find(batch)) for batch in self._logs)


def judge_table(
    start: NextRead, troubles: Iterable[Trouble], has: str, unread: Iterable[Counts], lost: int | None = None
) -> SourceOutlook:
    """Foresee the next start at a table.

    ``has`` is one sentence without a full stop; a part of ``unread`` is ``UNKNOWN`` where it cannot be told.
    ``lost`` files that are to be read are gone; None where nobody looked for them.
    """
    files, rows = sum_counts(unread)
    return replace(judge_source(start.source, list(troubles), has), waiting=files, rows=rows, lost=lost)


def add_waiting(has: str, unread: Iterable[Counts]) -> str:
    """Add to what the table has how much of it waits to be read."""
    files, rows = sum_counts(unread)
    if files is None:
        return f"{has}; unread files were not counted"
    return f"{has}; unread: {describe_counts([(files, rows)])}"


def sum_counts(counts: Iterable[Counts]) -> Counts:
    """Add up files and rows; None where one number is not known."""
    columns = zip((0, 0), *counts, strict=True)
    files, rows = (None if None in numbers else sum(filter(None, numbers)) for numbers in columns)
    return files, rows


def describe_counts(counts: Iterable[Counts]) -> str:
    """Say how many files these are, and how many rows they have if that is known."""
    files, rows = sum_counts(counts)
    return plural(files or 0, "file") + (f" with {plural(rows, 'row')}" if rows is not None else "")
