"""What a page and a document say of the sink."""

from collections.abc import Iterator
from typing import Any

from ckpt.inspection.checks.sink_outlook import SinkOutlook
from ckpt.inspection.inspection import Inspection
from ckpt.live.sink.records import SinkKind
from ckpt.texts import instant

from .blocks import Block, Heading, Item


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


def sink_entry(seen: SinkOutlook | None) -> dict[str, Any] | None:
    """The same for programs; None where nobody asked."""
    if seen is None:
        return None
    return {
        "uri": seen.log.uri,
        "kind": seen.log.kind,
        "outcome": seen.outcome,
        "said": seen.said,
        "next_batch": seen.next_batch,
        "last_batch": seen.last_batch,
        "dropped": list(seen.dropped) if seen.dropped else None,
        "lacks": list(seen.lacks) if seen.lacks else None,
        "query_id": seen.query_id,
        "read_from": seen.log.read_from,
        "writers": [
            {
                "app_id": one.app_id,
                "last_batch": one.last_batch,
                "updated_ms": one.updated_ms,
                "expired": one.expired,
                "taken_back": list(one.taken_back) if one.taken_back else None,
            }
            for one in seen.log.writers
        ],
    }
