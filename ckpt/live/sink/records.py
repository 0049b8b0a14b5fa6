"""Records of the log of a sink, without a judgement."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.formats.names import CompactibleLog
from ckpt.restart.sinks import NAMED_SINKS, SINKS, Sink

FILE_LOG = "_spark_metadata"
"""The folder in which a file sink keeps its log, and by which Spark knows the output of one."""
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class SinkKind(StrEnum):
    """The kind of a sink: all but the last are kinds of ``SINKS`` or ``NAMED_SINKS`` of ``ckpt.restart.sinks``."""

    DELTA = "delta"
    ICEBERG = "iceberg"
    FILE = "file"
    UPSERT = "upsert"  # this and the next three keep no batch ids
    APPEND = "append"
    KAFKA = "kafka"
    NOOP = "noop"
    UNKNOWN = "unknown"  # another one, or ckpt cannot read it


@dataclass(frozen=True, slots=True)
class SinkWriter:
    """One writer of a table: a streaming query, or in Delta code with ``txnAppId``."""

    app_id: Annotated[str, "a query id, or a `txnAppId`"]
    last_batch: Annotated[int, "its batch id, or `txnVersion`"]
    updated_ms: Annotated[int | None, "when that was written"]
    expired: Annotated[bool, "the table has forgotten it"]
    taken_back: Annotated[tuple[int, int] | None, "`[from, to]`: batches whose rows a RESTORE of the table removed"] = (
        None
    )
    restored_to: int | None = None  # the version to which that RESTORE took it
    kept: int | None = None  # the newest batch before those whose rows it has; None: none, or not known
    gaps: tuple[tuple[int, int], ...] = ()  # of Delta: batches between its transactions that it has none of, as ranges
    before: Mapping[int, int] = field(default_factory=dict)  # of Iceberg: the snapshot before each batch, if there
    written_ms: Mapping[int, int] = field(default_factory=dict)  # when each batch was written, as far as the log says

    @property
    def may_be_query(self) -> bool:
        """True if the id has the form of a query id."""
        return _UUID.fullmatch(self.app_id) is not None


@dataclass(frozen=True, slots=True)
class SinkLog:
    """The batches that a sink remembers."""

    uri: str  # as given
    kind: str  # a SinkKind, or the name that a plugin gives
    last_batch: int | None = None  # of a file sink: the newest in its log, whoever wrote it
    hole: str | None = None  # of a file sink: the first file that its log lacks
    damaged: tuple[str, str] | None = None  # of a file sink: the first file of its log that is needed and bad, and why
    file_log: CompactibleLog | None = None  # of a file sink: the same log, by the names of its files
    writers: tuple[SinkWriter, ...] = ()  # of a table, the latest first
    retention: str | None = None  # of a Delta table: how long transactions count, where that is limited
    version: int | None = None  # the newest of a Delta table
    created_ms: int | None = None  # when a Delta table was created
    read_from: str | None = None  # of an Iceberg table: its metadata file
    cut: bool = False  # of an Iceberg table: its first snapshots have expired
    unknown: str | None = None  # why nothing can be known, a sentence without its full stop
    unreached: bool = False  # that is why: it was to be read and could not be
    gone: bool = False  # that is why: nothing is there
    unlogged: str | None = None  # that is why: this data file, as a file sink writes it, and no log
    rules: Sink | None = None  # of a sink that a plugin reads: what it does with a batch id
    written_ms: Mapping[int, int] = field(default_factory=dict)  # of a file sink: when each batch was written

    @property
    def sink(self) -> Sink:
        """The row of this kind of sink in the table of rules; only where ``unknown`` is None."""
        return self.rules or next(sink for sink in (*NAMED_SINKS, *SINKS) if sink.kind == self.kind)

    @property
    def keeps_no_ids(self) -> bool:
        """True if this kind of sink keeps no batch ids: what it has is not known, and it accepts every row."""
        return any(sink.kind == self.kind for sink in NAMED_SINKS)

    def written_by(self, query_id: str | None, batch: int) -> int | None:
        """Return when a batch was written at the latest, in ms since 1970 UTC; None if no time says it.

        A sink is written in the order of batch ids, so a later batch limits those before it.
        """
        writer = self.writer(query_id)
        times = dict(self.written_ms if writer is None else writer.written_ms)
        if writer is not None and writer.updated_ms is not None:
            times.setdefault(writer.last_batch, writer.updated_ms)
        return min((time_ms for written, time_ms in times.items() if written >= batch), default=None)

    def writer(self, app_id: str | None) -> SinkWriter | None:
        """The writer with this id."""
        return next((writer for writer in self.writers if writer.app_id == app_id), None)

    def find_query(self, checkpoint: Checkpoint) -> SinkWriter | None:
        """Find the query of a checkpoint that has lost its id: the one that its checksums prove, or the only writer."""
        if checkpoint.metadata_checksums is None:
            return self.writers[0] if len(self.writers) == 1 and self.writers[0].may_be_query else None
        return next((writer for writer in self.writers if checkpoint.had_id(writer.app_id)), None)
