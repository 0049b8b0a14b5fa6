"""What a page and a document say of sources that were asked."""

from collections.abc import Iterator, Sequence
from typing import Any

from ckpt.live.outlook import SourceOutcome, SourceOutlook
from ckpt.live.records import DeltaNow, IcebergNow, KafkaNow

from .blocks import Block, Item
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


def live_entry(outlooks: Sequence[SourceOutlook], index: int) -> dict[str, Any] | None:
    """The same for programs; None where the source was not asked."""
    seen = next((one for one in outlooks if one.live.index == index), None)
    if seen is None or seen.live.not_asked is not None:
        return None
    answer = seen.live.answer
    kafka = answer if isinstance(answer, KafkaNow) else None
    table = answer if isinstance(answer, DeltaNow) else None
    iceberg = answer if isinstance(answer, IcebergNow) else None
    of_either = table or iceberg
    return {
        "outcome": seen.outcome,
        "said": seen.said,
        "unit": None if seen.outcome is SourceOutcome.UNREACHED else "offsets" if kafka is not None else "files",
        "waiting": seen.waiting,
        "rows": seen.rows,
        "lost": seen.lost,
        "table_id": of_either.table_id if of_either is not None else None,
        "read_from": iceberg.read_from if iceberg is not None else None,
        "first_version": table.first if table is not None else None,
        "last_version": table.latest if table is not None else None,
        "topics": [
            {"topic": name, "id": topic.id, "partitions": list(topic.partitions)}
            for name, topic in sorted(kafka.topics.items() if kafka is not None else ())
        ],
        "partitions": [
            {
                "topic": one.part[0],
                "partition": one.part[1],
                "fate": one.fate,
                "from": one.start,
                "to": one.end,
                "earliest": one.now.earliest if one.now else None,
                "latest": one.now.latest if one.now else None,
                "waiting": one.waiting,
                "lost": one.lost,
            }
            for one in seen.parts
        ],
    }
