"""What a page and a document say of sources that were asked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from ckpt.live.outlook import Fate, PartOutlook, SourceOutcome, SourceOutlook
from ckpt.live.records import DeltaNow, IcebergNow, KafkaNow

from .blocks import Block, Item
from .keys import copied
from .text import plural

_PARTITIONS = 8  # how many partitions are shown


def live_lines(outlooks: Sequence[SourceOutlook], index: int) -> Iterator[Block]:
    """One source as it is now, if it was asked about."""
    seen = next((one for one in outlooks if one.live.index == index), None)
    if seen is None:
        return
    if seen.live.not_asked is not None:
        yield Item(f"not asked: {seen.live.not_asked}", 24)
        return
    yield Item(seen.said if seen.outcome is SourceOutcome.UNREACHED else f"now: {seen.said}", 24)
    worst = sorted((one for one in seen.parts if one.fate != "continues"), key=lambda one: -one.lost)
    for one in worst[:_PARTITIONS]:
        has = f"has offsets {one.now.earliest} to {one.now.latest}" if one.now else "is not there"
        yield Item(f"{one.part[0]}/{one.part[1]} {has}: {one.fate}", 26)
    left = len(worst) - _PARTITIONS
    if left > 0:
        yield Item(f"and {plural(left, 'partition')} more: see -o json", 26)


@dataclass(frozen=True, slots=True)
class TopicKeys:
    """A topic of a source that was asked."""

    topic: str
    id: Annotated[str | None, "that Kafka gave it; null: there is no such topic"]
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LivePartitionKeys:
    """A partition of a topic, and what the next start makes of it."""

    topic: str
    partition: int
    fate: Annotated[Fate, "see [sources](sources.md)"]
    from_: Annotated[int | None, "where the next batch starts; null: the partition is new"]
    to: Annotated[int | None, "where it ends, if it was planned before"]
    earliest: Annotated[int | None, "the first offset that Kafka has; null: there is no such partition"]
    latest: Annotated[int | None, "the offset after the last one"]
    waiting: int
    lost: int


@dataclass(frozen=True, slots=True)
class LiveKeys:
    """A source that was asked."""

    outcome: Annotated[
        SourceOutcome,
        "what the next start makes of it; `skips`: it runs, and leaves out rows; `unreached`: it could not be asked, "
        "and the lists below are empty",
    ]
    said: Annotated[str, "one sentence for people; its words are not fixed"]
    unit: Annotated[
        Literal["offsets", "files"] | None,
        "what `waiting` and `lost` count: offsets of Kafka, files of a table and of a file source; null: not reached",
    ]
    waiting: Annotated[int | None, "what waits to be read (the lag); null where it could not be counted"]
    rows: Annotated[
        int | None, "the rows in these files, by the statistics of Delta, by the summaries of Iceberg's snapshots"
    ]
    lost: Annotated[
        int | None,
        "of Kafka, offsets that a start with `failOnDataLoss=false` never reads; files that are to be read and are "
        "not there, or are too old",
    ]
    table_id: Annotated[str | None, "of a Delta or Iceberg table"]
    read_from: Annotated[str | None, "of an Iceberg table, the metadata file that was read"]
    first_version: Annotated[int | None, "of a Delta table, the first version whose changes are still in its log"]
    last_version: int | None
    topics: Annotated[tuple[TopicKeys, ...], "of the checkpoint, and those that `subscribe` names"]
    partitions: Annotated[tuple[LivePartitionKeys, ...], "of the checkpoint, and those that have come since"]


def live_keys(outlooks: Sequence[SourceOutlook], index: int) -> LiveKeys | None:
    """One source as it is now; None where it was not asked."""
    outlook = next((each for each in outlooks if each.live.index == index), None)
    if outlook is None or outlook.live.not_asked is not None:
        return None
    answer = outlook.live.answer
    kafka = answer if isinstance(answer, KafkaNow) else None
    delta = answer if isinstance(answer, DeltaNow) else None
    iceberg = answer if isinstance(answer, IcebergNow) else None
    table = delta or iceberg
    return copied(
        LiveKeys,
        outlook,
        unit=None if outlook.outcome is SourceOutcome.UNREACHED else "offsets" if kafka is not None else "files",
        table_id=table.table_id if table is not None else None,
        read_from=iceberg.read_from if iceberg is not None else None,
        first_version=delta.first if delta is not None else None,
        last_version=delta.latest if delta is not None else None,
        topics=[
            TopicKeys(name, topic.id, topic.partitions)
            for name, topic in sorted(kafka.topics.items() if kafka is not None else ())
        ],
        partitions=tuple(map(_partition, outlook.parts)),
    )


def _partition(part: PartOutlook) -> LivePartitionKeys:
    topic, partition = part.part
    return copied(
        LivePartitionKeys,
        part,
        topic=topic,
        partition=partition,
        from_=part.start,
        to=part.end,
        earliest=part.now.earliest if part.now else None,
        latest=part.now.latest if part.now else None,
    )
