"""Sources and a sink that were asked, as part of a page and of a document."""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Annotated, Any, Literal

from ckpt.advice import words
from ckpt.checkpoint.sources.kind import Unit
from ckpt.inspection.checks.sink import SinkOutlook
from ckpt.inspection.inspection import Inspection
from ckpt.live.outlook import Fate, PartOutlook, SourceOutcome, SourceOutlook
from ckpt.live.records import Answer, DeltaNow, IcebergNow
from ckpt.live.sink.records import SinkKind, SinkWriter
from ckpt.texts import instant, plural

from .blocks import Block, Heading, Item
from .document import Document
from .keys import Keys, derive, of

_PARTITIONS = 8  # how many partitions are shown


def show_live(outlooks: Sequence[SourceOutlook], index: int) -> Iterator[Block]:
    """One source as it is now, if it was asked about."""
    outlook = next((each for each in outlooks if each.live.index == index), None)
    if outlook is None:
        return
    if outlook.live.not_asked is not None:
        yield Item(f"not asked: {outlook.live.not_asked}", 24)
        return
    yield Item(outlook.said if outlook.outcome is SourceOutcome.UNREACHED else f"now: {outlook.said}", 24)
    worst = sorted((part for part in outlook.parts if part.fate != "continues"), key=lambda part: -part.lost)
    for part in worst[:_PARTITIONS]:
        has = f"has offsets {part.now.earliest} to {part.now.latest}" if part.now else "does not exist"
        yield Item(f"{part.part[0]}/{part.part[1]} {has}: {part.fate}", 26)
    left = len(worst) - _PARTITIONS
    if left > 0:
        yield Item(words("and {count} more: see {fields}", count=plural(left, "partition")), 26)


class _Topic(Keys):
    topic: Annotated[str, itemgetter(0)]
    id: Annotated[str | None, "assigned by Kafka; null if the topic does not exist", lambda named: named[1].id]
    partitions: Annotated[tuple[int, ...], lambda named: named[1].partitions]


class _LivePartition(Keys, record=PartOutlook, keys="topic partition fate from_ to earliest latest waiting lost"):
    partition: Annotated[int, lambda outlook: outlook.part[1]]
    fate: Annotated[Fate, "see [sources](sources.md)"]
    from_: Annotated[int | None, "where the next batch starts; null if the partition is new", of("start")]
    to: Annotated[int | None, "where the next batch ends, if already planned", of("end")]
    earliest: Annotated[
        int | None,
        "the first offset in Kafka; null if the partition does not exist",
        lambda outlook: getattr(outlook.now, "earliest", None),
    ]
    latest: Annotated[int | None, "the offset after the last one", lambda outlook: getattr(outlook.now, "latest", None)]


def _of_answer(name: str, *kinds: type[Answer]) -> Callable[[SourceOutlook], Any]:
    """Return a function that finds an attribute of the answer; None where it is of no such kind."""
    return lambda outlook: getattr(outlook.live.answer, name) if isinstance(outlook.live.answer, kinds) else None


class LiveKeys(Keys):
    """A source that was asked."""

    outcome: Annotated[
        SourceOutcome,
        "how the next start treats the source; `skips`: the start runs but skips rows; `unreached`: the source could "
        "not be queried, and the lists below are empty",
    ]
    said: Annotated[str, "one sentence for people; the wording may change"]
    unit: Annotated[
        Literal[Unit.OFFSETS, Unit.FILES] | None,
        "the unit of `waiting` and `lost`: Kafka offsets, or files of a table or a file source; a `ckpt.sources` "
        "plugin may name other units; null if the source was not reached",
        lambda outlook: getattr(outlook.live.answer, "unit", None),
    ]
    waiting: Annotated[int | None, "the unread amount (the lag); null if it could not be counted"]
    rows: Annotated[int | None, "the rows in unread files, from Delta's statistics or Iceberg's snapshot summaries"]
    lost: Annotated[
        int | None,
        "for Kafka, offsets that a start with `failOnDataLoss=false` never reads; for other sources, unread "
        "files that are missing or too old",
    ]
    table_id: Annotated[str | None, "of a Delta or Iceberg table", _of_answer("table_id", DeltaNow, IcebergNow)]
    read_from: Annotated[
        str | None, "for an Iceberg table, the metadata file that was read", _of_answer("read_from", IcebergNow)
    ]
    first_version: Annotated[
        int | None,
        "for a Delta table, the first version whose changes are still in the table's log",
        _of_answer("first", DeltaNow),
    ]
    last_version: Annotated[int | None, _of_answer("latest", DeltaNow)]
    topics: Annotated[
        tuple[_Topic, ...],
        "topics in the checkpoint, and topics that `subscribe` names",
        lambda outlook: sorted(getattr(outlook.live.answer, "topics", {}).items()),
    ]
    partitions: Annotated[tuple[_LivePartition, ...], "partitions in the checkpoint, or added since", of("parts")]


def live_keys(outlooks: Sequence[SourceOutlook], index: int) -> Document | None:
    """One source as it is now; None where it was not asked."""
    outlook = next((each for each in outlooks if each.live.index == index), None)
    return None if outlook is None or outlook.live.not_asked is not None else derive(LiveKeys, outlook)


def show_sink(inspection: Inspection) -> Iterator[Block]:
    """The sink that was asked about."""
    outlook = inspection.sink
    if outlook is None:
        return
    kind, uri = outlook.log.kind, outlook.log.uri
    yield Heading("Sink", uri if kind in (SinkKind.UNKNOWN, uri) else f"{kind}, {uri}")
    yield Item(outlook.said)
    if outlook.log.read_from is not None:
        yield Item(f"read from {outlook.log.read_from}")
    writer = outlook.log.writer(inspection.checkpoint.query_id)
    if writer is not None and writer.updated_ms is not None:
        yield Item(f"batch {writer.last_batch} of this query was written to the sink at {instant(writer.updated_ms)}")


class _Writer(Keys, record=SinkWriter, keys="app_id last_batch updated_ms expired taken_back"): ...


_SINK = "uri kind outcome said next_batch last_batch dropped lacks query_id read_from writers"


class SinkKeys(Keys, record=SinkOutlook, keys=_SINK):
    """A sink that was asked about."""

    uri: Annotated[str, "as given", of("log.uri")]
    kind: Annotated[
        SinkKind,
        "`unknown`: another kind, or a sink that ckpt cannot read; a `ckpt.sinks` plugin may name other kinds",
        of("log.kind"),
    ]
    read_from: Annotated[str | None, "for an Iceberg table, the metadata file that was read", of("log.read_from")]
    writers: Annotated[tuple[_Writer, ...], "of a Delta or Iceberg table, latest first", of("log.writers")]
