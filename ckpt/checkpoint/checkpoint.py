"""A checkpoint as it was read: the one value that everything else is computed from."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from ckpt.checkpoint.pipelines import FlowVersion
from ckpt.formats.metadata import build_metadata
from ckpt.formats.names import BatchNames
from ckpt.formats.sidecars import HadoopChecksums
from ckpt.formats.sourcelogs import SourceFile
from ckpt.model import (
    CommitLog,
    Fault,
    Json,
    Kind,
    OffsetLog,
    Operator,
    PlannedBatch,
    QueryMetadata,
    RocksDBSnapshot,
    StateInventory,
    Store,
    Unreadable,
)
from ckpt.storage.base import Listing, Oddity, folders_above
from ckpt.values import Value

OFFSETS, COMMITS, METADATA, STATE, SOURCES = "offsets", "commits", "metadata", "state", "sources"
FIRST_START = "ckpt-first-start.json"
SKIPPED = "ckpt-skipped.json"
PARTS = (OFFSETS, COMMITS, METADATA, STATE, SOURCES)

JUDGED = 10
"""How many of the newest batches are judged by what they say of one another, however many were read: what happened
further back is a note, so that the verdict on a checkpoint does not depend on who asks."""

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Log(Generic[Entry]):
    """``offsets/`` or ``commits/``: which batches have a file, and those of the files that were read."""

    folder: str
    names: BatchNames
    entries: Mapping[int, Entry | Unreadable] = field(default_factory=dict)  # those read, by batch id

    @property
    def ids(self) -> tuple[int, ...]:
        """The batches that have a file, sorted."""
        return self.names.ids

    @cached_property
    def latest(self) -> int | None:
        """The highest batch id that Spark's listing yields: its file may be missing (see ``BatchNames.odd``)."""
        return max((*self.ids[-1:], *self.names.odd.values()), default=None)

    def __contains__(self, batch_id: object) -> bool:
        """True if the batch has a file in this log."""
        if not isinstance(batch_id, int):
            return False
        index = bisect_left(self.ids, batch_id)
        return index < len(self.ids) and self.ids[index] == batch_id

    def before(self, batch_id: int) -> int | None:
        """The nearest batch before ``batch_id`` that has a file here."""
        index = bisect_left(self.ids, batch_id)
        return self.ids[index - 1] if index else None

    def readable(self, batch_id: int | None) -> Entry | None:
        """The record of a batch, or None where there is none, it was not read, or it is unreadable."""
        entry = None if batch_id is None else self.entries.get(batch_id)
        return None if isinstance(entry, Unreadable) else entry

    @cached_property
    def records(self) -> Mapping[int, Entry]:
        """The batches that were read and are readable, sorted: few of a log that may have very many."""
        return {i: entry for i in sorted(self.entries) if i in self and (entry := self.readable(i)) is not None}

    @property
    def newest(self) -> Entry | None:
        """The record of the latest batch, where it can be read."""
        return self.readable(self.latest)

    @cached_property
    def missing(self) -> tuple[tuple[int, int], ...]:
        """Gaps between the first and the last id, as inclusive ranges."""
        return tuple((a + 1, b - 1) for a, b in pairwise(self.ids) if b - a > 1)

    @property
    def unreadable(self) -> tuple[int, ...]:
        """Ids of files that were read, or seen to be empty, and are not readable."""
        return tuple(sorted(i for i, entry in self.entries.items() if isinstance(entry, Unreadable)))


def logs_show_state(offsets: Log[OffsetLog], commits: Log[CommitLog]) -> bool:
    """Tell whether the logs were written by a query that keeps state.

    A commit of state format 2 names state files. When the watermark has risen, ``MicroBatchExecution`` plans a batch
    without new rows for stateful operators, and for nothing else.
    """
    if any(isinstance(commit, CommitLog) and commit.state_unique_ids for commit in commits.entries.values()):
        return True
    logs = ((offsets.readable(batch - 1), log) for batch, log in offsets.records.items())
    return any(
        before.sources == log.sources and before.metadata.watermark_ms < log.metadata.watermark_ms
        for before, log in logs
        if before and before.metadata and log.metadata
    )


class AddedSpace(NamedTuple):
    """White space that Spark did not write into a text file."""

    what: str  # in words
    read: bool  # Spark reads other lines because of it
    proven: bool  # by the hidden checksum file, which matches the rest
    sources: int = 0  # blank lines of an offsets file, which Spark counts as sources


@dataclass(frozen=True, slots=True)
class Checkpoint(Value):
    """The parsed content of one checkpoint, without any conclusions."""

    uri: str
    kind: Kind
    listing: Listing
    metadata: QueryMetadata | Unreadable | None
    offsets: Log[OffsetLog]
    commits: Log[CommitLog]
    state: StateInventory | None = None
    vanished: tuple[str, ...] = ()  # listed, and gone when they were to be read
    stale_sidecars: tuple[str, ...] = ()  # hidden checksum files that do not match their log file
    respaced: Mapping[str, AddedSpace] = field(default_factory=dict)
    """Text files that have white space which Spark does not write, as far as nothing else is known to differ."""
    metadata_checksums: HadoopChecksums | None = None  # of a ``metadata`` that is missing, or names no query
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Files that are missing, by path, and those beside them that have their bytes, as their checksum files prove."""
    source_entries: Mapping[str, tuple[SourceFile, ...] | Unreadable] = field(default_factory=dict)
    """Files of file source logs that a start reads, by path, and the files that they name."""
    source_snapshots: Mapping[str, RocksDBSnapshot | Unreadable] = field(default_factory=dict)
    """The newest snapshot of the list of files of each Auto Loader source, by path."""
    initial_offsets: Mapping[int, Json] = field(default_factory=dict)
    """Where Kafka sources began, by source; read where a start runs the first batch of the log again."""
    lost_schemas: tuple[str, ...] = ()  # recorded outside this checkpoint (``moved_schemas``), and not there any more
    refused: Mapping[str, str] = field(default_factory=dict)
    """Files that were asked for and whole folders which the storage did not let ckpt read, each with the reason."""
    moving: bool = False  # it changed from one look to the next
    missing_folder: str | None = None  # the highest on its path that does not exist: there is no checkpoint yet
    local: bool = True  # on a local path, where Hadoop keeps a hidden checksum file for every file
    flow: FlowVersion | None = None  # of a declarative pipeline, by its path
    first_start: PlannedBatch | Unreadable | None = None
    """The batch that has to run into the sink ``noop`` first: a mark by ckpt, whether it still counts or not."""
    marked_skipped: tuple[PlannedBatch, ...] = ()  # by ``ckpt skip``, whether the batch was run since or not

    def __fspath__(self) -> str:
        """The URI: a checkpoint stands for its path in every call that takes one."""
        return self.uri

    def is_skipped(self, batch_id: int) -> bool:
        """True if ``ckpt skip`` committed a batch, as it is planned here, without its rows."""
        return batch_id in self.commits and PlannedBatch(batch_id, self.planned_ms(batch_id)) in self.marked_skipped

    def planned_ms(self, batch_id: int | None) -> int:
        """When a batch was planned, in ms since 1970 UTC; 0 where its offsets do not say it."""
        entry = self.offsets.readable(batch_id)
        return entry.metadata.timestamp_ms if entry is not None and entry.metadata is not None else 0

    def is_past(self, batch_id: int) -> bool:
        """True if a planned batch is further back than the newest, which are judged."""
        return batch_id not in self.offsets.ids[-JUDGED:]

    @property
    def links_out(self) -> tuple[str, ...]:
        """Parts of it that are symbolic links out of it: Spark follows them, ckpt does not. A look alone has any."""
        parts = [name for part in (*PARTS, FIRST_START, SKIPPED) for name in (part, f".{part}.crc")]
        odd = self.listing.oddities.items()
        return tuple(path for path, oddity in odd if oddity is Oddity.OUTSIDE and path.partition("/")[0] in parts)

    def is_refused(self, path: str) -> bool:
        """True if the storage does not let ckpt read what is at a path, or a folder above it."""
        return any(above in self.refused for above in (path, *folders_above(path))) if self.refused else False

    @property
    def unfinished(self) -> bool:
        """True if ckpt was interrupted while it wrote this checkpoint as a new one, or changed its sources."""
        newest = None if self.offsets.latest is None else self.offsets.entries.get(self.offsets.latest)
        return isinstance(newest, Unreadable) and newest.fault in (Fault.UNFINISHED, Fault.UNFINISHED_CHANGE)

    @property
    def query_id(self) -> str | None:
        """The id in ``metadata``, where it can be read."""
        return self.metadata.query_id if isinstance(self.metadata, QueryMetadata) else None

    def had_id(self, query_id: str) -> bool | None:
        """Tell whether a lost ``metadata`` had this id, by the checksums that stayed; None where there are none."""
        known = self.metadata_checksums
        return None if known is None else known.match(build_metadata(query_id))

    @property
    def conf(self) -> Mapping[str, str]:
        """The settings that the newest offsets record."""
        newest = self.offsets.newest
        return newest.metadata.conf if newest and newest.metadata else {}

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The stateful operators that ``state/`` shows."""
        return self.state.operators if self.state else ()

    def stores(self) -> Iterator[tuple[Operator, Store]]:
        """Yield each store with its operator."""
        return ((operator, store) for operator in self.operators for store in operator.stores)

    @property
    def stateful(self) -> bool | None:
        """True if the query keeps state; None if the files do not say.

        A stateless query has no ``state/``. A checkpoint without it may also have lost it: where the logs do not show
        that (``logs_show_state``), with a watermark, or without a commit, it is unknown.
        """
        if self.listing.has_folder(STATE) or logs_show_state(self.offsets, self.commits):
            return True
        commit, offsets = self.commits.newest, self.offsets.newest
        has_watermark = (commit and commit.next_watermark_ms) or (
            offsets and offsets.metadata and offsets.metadata.watermark_ms
        )
        return None if self.commits.latest is None or has_watermark else False
