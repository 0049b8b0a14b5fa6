"""What a page and a document say of the sink."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from ckpt.inspection.checks.sink_outlook import SinkOutcome, SinkOutlook
from ckpt.inspection.inspection import Inspection
from ckpt.live.sink.records import SinkKind
from ckpt.texts import instant

from .blocks import Block, Heading, Item
from .keys import copied


def sink_section(inspection: Inspection) -> Iterator[Block]:
    """The sink that was asked about."""
    seen = inspection.sink
    if seen is None:
        return
    kind = "" if seen.log.kind is SinkKind.UNKNOWN else f"{seen.log.kind}, "
    yield Heading("Sink", f"{kind}{seen.log.uri}")
    yield Item(seen.said)
    if seen.log.read_from is not None:
        yield Item(f"read from {seen.log.read_from}")
    writer = seen.log.writer(inspection.checkpoint.query_id)
    if writer is not None and writer.updated_ms is not None:
        yield Item(f"batch {writer.last_batch} of this query was written there at {instant(writer.updated_ms)}")


@dataclass(frozen=True, slots=True)
class WriterKeys:
    """One writer of a table."""

    app_id: Annotated[str, "a query id, or a `txnAppId`"]
    last_batch: Annotated[int, "its batch id, or `txnVersion`"]
    updated_ms: Annotated[int | None, "when that was written"]
    expired: Annotated[bool, "the table has forgotten it"]
    taken_back: Annotated[tuple[int, int] | None, "`[from, to]`: batches whose rows a RESTORE of the table took back"]


@dataclass(frozen=True, slots=True)
class SinkKeys:
    """A sink that was asked about."""

    uri: Annotated[str, "as given"]
    kind: Annotated[
        SinkKind, "`unknown`: another one, or ckpt cannot read it; a plugin of `ckpt.sinks` may name others"
    ]
    outcome: Annotated[SinkOutcome, "what becomes of the batches of the next start ([sinks](sink.md))"]
    said: Annotated[str, "one sentence for people; its words are not fixed"]
    next_batch: Annotated[int | None, "that the next start runs first; null if that is unknown"]
    last_batch: Annotated[int | None, "the newest that the sink has: in a table, of this query"]
    dropped: Annotated[tuple[int, int] | None, "`[from, to]`: batches whose new rows will be dropped"]
    lacks: Annotated[tuple[int, int] | None, "`[from, to]`: batches that are committed and not in the sink"]
    query_id: Annotated[str | None, "the id that a lost `metadata` had, if only one query has written to the table"]
    read_from: Annotated[str | None, "of an Iceberg table, the metadata file that was read"]
    writers: Annotated[tuple[WriterKeys, ...], "of a Delta or Iceberg table, the latest first"]


def sink_keys(outlook: SinkOutlook | None) -> SinkKeys | None:
    """The sink of a document; None where nobody asked."""
    if outlook is None:
        return None
    log = outlook.log
    return copied(
        SinkKeys,
        outlook,
        uri=log.uri,
        kind=log.kind,
        read_from=log.read_from,
        writers=[copied(WriterKeys, writer) for writer in log.writers],
    )
