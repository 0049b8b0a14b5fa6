"""``ckpt offsets show``: where each source stands at the end of a batch, and what a reader's options call that."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.checkpoint.history import rate_sources
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.checkpoint.sources.rate_micro_batch import RateMicroBatchOffset
from ckpt.checkpoint.sources.registry import SourceView, decode, source_views
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.migrate.handoff.plan import recreated_topics
from ckpt.migrate.handoff.starts import NOT_READ, source_start
from ckpt.model import Json, Kind, Unreadable
from ckpt.restart.forecast import SourceRange, source_ranges
from ckpt.storage import Storage, open_storage

_FILES = (
    "no reader option says where a file source begins; `ckpt handoff` writes the filter that leaves out the files that "
    "were read"
)


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
        """What the batch reads."""
        return SourceRange(self.view.index, self.start, self.view.offset)


@dataclass(frozen=True, slots=True)
class Positions:
    """All sources in one batch."""

    inspection: Inspection
    batch: int | None  # None: there is none
    committed: bool = False
    sources: tuple[Position, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: str | None = None  # why nothing can be shown


def show_offsets(uri: str, storage_options: Mapping[str, str] | None = None, *, batch: int | None = None) -> Positions:
    """All that ``ckpt offsets show`` says.

    Args:
        uri: A local path, or any URI that ``open_checkpoint`` opens.
        storage_options: For the file system of the URI.
        batch: Which batch; by default the newest whose offsets can be read.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint cannot be read.

    >>> found = ckpt.show_offsets("sample_checkpoints/kafka-4.2")
    >>> found.batch, found.committed, dict(found.sources[0].options)
    (5, True, {'startingOffsets': '{"orders":{"0":51,"1":49}}'})

    """
    return positions(open_storage(uri, storage_options or {}), batch)


def positions(storage: Storage, batch: int | None = None) -> Positions:
    """The same with a storage that is open already; reads the complete offset and commit logs, and writes nothing."""
    checkpoint = read_checkpoint(storage, batches=0)
    found = inspect(checkpoint)
    offsets = checkpoint.offsets
    chosen = next((i for i in reversed(offsets.ids) if offsets.readable(i)), None) if batch is None else batch
    refused = _refusal(checkpoint, chosen)
    if chosen is None or refused is not None:
        return Positions(found, chosen, refused=refused)
    committed = chosen in checkpoint.commits
    return Positions(
        found,
        chosen,
        committed,
        tuple(_positions(checkpoint, chosen)),
        tuple(_warnings(found, chosen, newest=batch is None, committed=committed)),
    )


def _refusal(checkpoint: Checkpoint, batch: int | None) -> str | None:
    offsets = checkpoint.offsets
    if checkpoint.kind is Kind.CONTINUOUS:
        return "it was written by continuous processing, whose offsets are those of epochs"
    if batch is None:
        return "offsets/ has no file that can be read" if offsets.ids else "no batch was ever planned"
    if batch not in offsets:
        there = f"; the oldest batch there is {offsets.ids[0]}, the newest {offsets.ids[-1]}" if offsets.ids else ""
        return f"there is no {OFFSETS}/{batch}{there}"
    entry = offsets.entries.get(batch)
    if isinstance(entry, Unreadable):
        return f"{OFFSETS}/{batch} cannot be read: {entry.reason}"
    log = offsets.readable(batch)
    broken = [str(place) for place, source in enumerate(log.sources if log else ()) if not source.well_formed]
    return f"{OFFSETS}/{batch}, source {', '.join(broken)}: {NOT_READ}" if broken else None


def _positions(checkpoint: Checkpoint, batch: int) -> Iterator[Position]:
    log, before = checkpoint.offsets.readable(batch), checkpoint.offsets.readable(batch - 1)
    assert log is not None
    begins = source_ranges(before, log)
    known = before is not None or batch == 0
    for place, view in enumerate(source_views(log, rate_sources(checkpoint))):
        start = begins[place].start if before is not None else None
        rows = _rows(start, view.offset, first=batch == 0)
        if view.type is SourceType.FILE:
            yield Position(view, start, rows, refused=_FILES, begins_known=known)
            continue
        begin = source_start(view, None, recreated_topics(checkpoint, batch, place))
        refused = begin.refused or (None if begin.options else " ".join(begin.conditions))
        conditions = begin.conditions if begin.options else ()
        yield Position(view, start, rows, begin.options, conditions, refused, known)


def _rows(start: Json, end: Json, *, first: bool) -> int | None:
    """How many rows are between two offsets, where that is certain.

    Spark class ``RatePerMicroBatchStream`` counts rows, from 0. Offsets of Kafka have gaps where records were
    compacted, or belong to transactions; versions, entries and seconds do not say how many rows they hold.
    """
    match decode(start), decode(end):
        case RateMicroBatchOffset(before), RateMicroBatchOffset(after):
            return after - before if after >= before else None
        case None, RateMicroBatchOffset(after) if first and start is None:
            return after
    return None


def _warnings(found: Inspection, batch: int, *, newest: bool, committed: bool) -> Iterator[str]:
    checkpoint = found.checkpoint
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
    if found.written_by.may_read_event_hubs and any(one.type is SourceType.KAFKA for one in found.sources):
        yield "offsets of Azure Event Hubs look like those of Kafka, and its reader takes other options"
