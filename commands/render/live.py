"""Sources and a sink that were asked, as part of a page and of a document."""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Annotated, Any, Literal

from ckpt.advice import words
from ckpt.checkpoint.sources.kind import Unit
from ckpt.inspection.checks.sink import SinkOutlook
from ckpt.inspection.inspection import Inspection
from ckpt.live.outlook import PartOutlook, SourceOutcome, SourceOutlook
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
    id: Annotated[str | None, lambda named: named[1].id]
    partitions: Annotated[tuple[int, ...], lambda named: named[1].partitions]


class _LivePartition(Keys, record=PartOutlook, keys="topic partition fate from_ to earliest latest waiting lost"):
    partition: Annotated[int, lambda outlook: outlook.part[1]]
    from_: Annotated[int | None, of("start")]
    to: Annotated[int | None, of("end")]
    earliest: Annotated[int | None, lambda outlook: getattr(outlook.now, "earliest", None)]
    latest: Annotated[int | None, lambda outlook: getattr(outlook.now, "latest", None)]


def _of_answer(name: str, *kinds: type[Answer]) -> Callable[[SourceOutlook], Any]:
    """Return a function that finds an attribute of the answer; None where it is of no such kind."""
    return lambda outlook: getattr(outlook.live.answer, name) if isinstance(outlook.live.answer, kinds) else None


class LiveKeys(Keys):
    """A source that was asked."""

    outcome: SourceOutcome
    said: str
    unit: Annotated[
        Literal[Unit.OFFSETS, Unit.FILES] | None, lambda outlook: getattr(outlook.live.answer, "unit", None)
    ]
    waiting: int | None
    rows: int | None
    lost: int | None
    table_id: Annotated[str | None, _of_answer("table_id", DeltaNow, IcebergNow)]
    read_from: Annotated[str | None, _of_answer("read_from", IcebergNow)]
    first_version: Annotated[int | None, _of_answer("first", DeltaNow)]
    last_version: Annotated[int | None, _of_answer("latest", DeltaNow)]
    topics: Annotated[tuple[_Topic, ...], lambda outlook: sorted(getattr(outlook.live.answer, "topics", {}).items())]
    partitions: Annotated[tuple[_LivePartition, ...], of("parts")]


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

    uri: Annotated[str, of("log.uri")]
    kind: Annotated[SinkKind, of("log.kind")]
    read_from: Annotated[str | None, of("log.read_from")]
    writers: Annotated[tuple[_Writer, ...], of("log.writers")]
