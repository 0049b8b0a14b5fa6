"""``ckpt offsets show``: the offset of each source at the end of a batch, and the reader options that begin there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import fspath
from typing import Any

from ckpt.changes.plan import OF_EPOCHS
from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.checkpoint.history import find_recreated_topics, rate_sources
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.registry import SourceRange, SourceView, kind_of, source_ranges, source_views
from ckpt.checkpoint.sources.starts import NOT_READ, StartFacts
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import Json, Kind, Location, Unreadable
from ckpt.storage import Storage, open_storage
from ckpt.values import Value
from ckpt.versions import __version__

FORMAT, VERSION = "ckpt-offsets", 1
"""The name and version of a document of offsets."""


@dataclass(frozen=True, slots=True)
class Position:
    """One source in one batch: what the batch reads, and how a reader begins at its end."""

    view: SourceView  # at the end of the batch
    start: Json  # where the batch begins; None: at the beginning of the source, or not known
    rows: int | None  # that the batch reads; None where the offsets do not say
    options: Mapping[str, str] = field(default_factory=dict)  # of ``DataStreamReader``; empty where none says it
    conditions: tuple[str, ...] = ()  # what must hold besides, and ckpt cannot see
    refused: str | None = None  # why no option says it
    begins_known: bool = True  # the log has where the batch begins

    @property
    def range(self) -> SourceRange:
        """The range that the batch reads."""
        return SourceRange(self.view.index, self.start, self.view.offset)


@dataclass(frozen=True, slots=True)
class Positions(Value):
    """All sources in one batch."""

    inspection: Inspection
    batch: int | None  # None: there is none
    committed: bool = False
    sources: tuple[Position, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: str | None = None  # why nothing can be shown

    @property
    def document(self) -> dict[str, Any]:
        """The offsets as the JSON document that ``offsets_import`` takes."""
        checkpoint = self.inspection.checkpoint
        views = [position.view for position in self.sources]
        return {
            "format": FORMAT,
            "version": VERSION,
            "ckpt": __version__,
            "checkpoint": {"path": checkpoint.uri, "query_id": checkpoint.query_id},
            "batch": self.batch,
            "sources": [
                {"index": view.index, "name": view.name, "type": view.type, "offset": view.offset} for view in views
            ],
        }


def offsets_show(
    checkpoint: Location, storage_options: Mapping[str, str] | None = None, *, batch: int | None = None
) -> Positions:
    """Show the offsets of each source in a batch, as ``ckpt offsets show`` does.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI.
        batch: The batch; by default the newest whose offsets can be read.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint cannot be read.

    >>> positions = ckpt.offsets_show("sample_checkpoints/kafka-4.2")
    >>> positions.batch, positions.committed, dict(positions.sources[0].options)
    (5, True, {'startingOffsets': '{"orders":{"0":51,"1":49}}'})

    """
    uri = fspath(checkpoint)
    return find_positions(open_storage(uri, storage_options or {}), batch)


def find_positions(storage: Storage, batch: int | None = None) -> Positions:
    """Find the positions in an open storage; reads the complete offset and commit logs, and writes nothing."""
    checkpoint = read_checkpoint(storage, batches=0)
    inspection = inspect(checkpoint)
    offsets = checkpoint.offsets
    chosen = next((i for i in reversed(offsets.ids) if offsets.readable(i)), None) if batch is None else batch
    refused = _refuse(checkpoint, chosen)
    if chosen is None or refused is not None:
        return Positions(inspection, chosen, refused=refused)
    committed = chosen in checkpoint.commits
    return Positions(
        inspection,
        chosen,
        committed,
        tuple(_list_positions(checkpoint, chosen)),
        tuple(_warn(inspection, chosen, newest=batch is None, committed=committed)),
    )


def _refuse(checkpoint: Checkpoint, batch: int | None) -> str | None:
    offsets = checkpoint.offsets
    if checkpoint.kind is Kind.CONTINUOUS:
        return OF_EPOCHS
    if batch is None:
        return "offsets/ has no file that can be read" if offsets.ids else "no batch was ever planned"
    if batch not in offsets:
        there = f"; the oldest batch there is {offsets.ids[0]}, the newest {offsets.ids[-1]}" if offsets.ids else ""
        return f"there is no {OFFSETS}/{batch}{there}"
    entry = offsets.entries.get(batch)
    if isinstance(entry, Unreadable):
        return f"{OFFSETS}/{batch} cannot be read: {entry.reason}"
    log = offsets.readable(batch)
    broken = [str(index) for index, source in enumerate(log.sources if log else ()) if not source.well_formed]
    return f"{OFFSETS}/{batch}, source {', '.join(broken)}: {NOT_READ}" if broken else None


def _list_positions(checkpoint: Checkpoint, batch: int) -> Iterator[Position]:
    log, before = checkpoint.offsets.readable(batch), checkpoint.offsets.readable(batch - 1)
    assert log is not None
    known = before is not None or batch == 0
    for number, view in enumerate(source_views(log, rate_sources(checkpoint))):
        reads = source_ranges(before, log)[number]
        start = view.start_after(StartFacts(recreated=find_recreated_topics(checkpoint, batch, number)))
        refused = start.refused or (None if start.options else " ".join(start.conditions))
        conditions = start.conditions if start.options else ()
        yield Position(
            view, reads.start, _count_rows(reads, first=batch == 0), start.options, conditions, refused, known
        )


def _count_rows(reads: SourceRange, *, first: bool) -> int | None:
    """Count the rows of a range, where that is certain.

    Offsets of Kafka have gaps where records were compacted, or belong to transactions; versions, entries and seconds
    do not say how many rows they hold.
    """
    start, end = reads.start_offset, reads.end_offset
    if end is None or not (kind_of(start) is kind_of(end) or (first and start is None)):
        return None
    return kind_of(end).count_rows(start, end)


def _warn(inspection: Inspection, batch: int, *, newest: bool, committed: bool) -> Iterator[str]:
    checkpoint = inspection.checkpoint
    latest = checkpoint.offsets.latest
    if newest and latest is not None and latest != batch:
        yield f"{OFFSETS}/{latest} cannot be read: this is batch {batch}, the newest that can"
    if batch and checkpoint.offsets.readable(batch - 1) is None:
        yield f"where batch {batch} begins is not in the log: {OFFSETS}/{batch - 1} is missing or cannot be read"
    if not committed and batch == latest:
        yield (
            f"batch {batch} is not committed: the next start of this query runs it again, over this range. A reader "
            "with these options begins after it"
        )
    if inspection.written_by.may_read_event_hubs and any(view.kind.like_event_hubs for view in inspection.sources):
        yield "offsets of Azure Event Hubs look like those of Kafka, and its reader takes other options"
