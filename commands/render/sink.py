"""The sink, as part of a page and of a document."""

from collections.abc import Iterator
from typing import Annotated

from ckpt.inspection.checks.sink import SinkOutcome
from ckpt.inspection.inspection import Inspection
from ckpt.live.sink.records import SinkKind
from ckpt.texts import instant

from .blocks import Block, Heading, Item
from .keys import Keys, of


def show_sink(inspection: Inspection) -> Iterator[Block]:
    """The sink that was asked about."""
    outlook = inspection.sink
    if outlook is None:
        return
    kind = "" if outlook.log.kind is SinkKind.UNKNOWN else f"{outlook.log.kind}, "
    yield Heading("Sink", f"{kind}{outlook.log.uri}")
    yield Item(outlook.said)
    if outlook.log.read_from is not None:
        yield Item(f"read from {outlook.log.read_from}")
    writer = outlook.log.writer(inspection.checkpoint.query_id)
    if writer is not None and writer.updated_ms is not None:
        yield Item(f"batch {writer.last_batch} of this query was written there at {instant(writer.updated_ms)}")


class WriterKeys(Keys):
    """One writer of a table."""

    app_id: Annotated[str, "a query id, or a `txnAppId`"]
    last_batch: Annotated[int, "its batch id, or `txnVersion`"]
    updated_ms: Annotated[int | None, "when that was written"]
    expired: Annotated[bool, "the table has forgotten it"]
    taken_back: Annotated[tuple[int, int] | None, "`[from, to]`: batches whose rows a RESTORE of the table took back"]


class SinkKeys(Keys):
    """A sink that was asked about."""

    uri: Annotated[str, "as given", of("log.uri")]
    kind: Annotated[
        SinkKind,
        "`unknown`: another one, or ckpt cannot read it; a plugin of `ckpt.sinks` may name others",
        of("log.kind"),
    ]
    outcome: Annotated[SinkOutcome, "what becomes of the batches of the next start ([sinks](sink.md))"]
    said: Annotated[str, "one sentence for people; its words are not fixed"]
    next_batch: Annotated[int | None, "that the next start runs first; null if that is unknown"]
    last_batch: Annotated[int | None, "the newest that the sink has: in a table, of this query"]
    dropped: Annotated[tuple[int, int] | None, "`[from, to]`: batches whose new rows will be dropped"]
    lacks: Annotated[tuple[int, int] | None, "`[from, to]`: batches that are committed and not in the sink"]
    query_id: Annotated[str | None, "the id that a lost `metadata` had, if only one query has written to the table"]
    read_from: Annotated[str | None, "of an Iceberg table, the metadata file that was read", of("log.read_from")]
    writers: Annotated[tuple[WriterKeys, ...], "of a Delta or Iceberg table, the latest first", of("log.writers")]
