"""Rules for a start at the partitions that a Kafka source has now, as measured.

For each partition, with ``a`` where the next batch starts and ``b`` where it ends, if it was planned before: a new
batch fails if the partition ends before ``a`` or begins after it (``KafkaOffsetReader.getOffsetRangesFromResolved-
Offsets``, then ``KafkaDataConsumer``). A batch that runs again reads ``[a, b)`` without looking at the ends first: it
fails for the same reasons, and waits for rows that never come where the partition ends in between.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile

from ckpt.checkpoint.sources.kafka import NO_TOPIC_YET, KafkaOffset
from ckpt.checkpoint.sources.registry import Offset, SourceRange
from ckpt.live.outlook import RECREATED, Fate, PartOutlook
from ckpt.live.records import KafkaNow, Part, PartitionNow
from ckpt.restart import messages
from ckpt.versions import Rules


def foresee_partitions(reading: SourceRange, now: KafkaNow, *, passed: bool = False) -> tuple[PartOutlook, ...] | None:
    """Foresee each partition that the next batch reads, or would; None where its start is not known.

    ``passed``: that batch was planned, and the sink skips it without reading: what counts is the one after it.
    """
    start, end = _partitions_of(reading.start_offset), _partitions_of(reading.end_offset)
    if start is None or (reading.end is not None and end is None):
        return None
    known = start if end is None else end
    if passed and end is not None:
        outlooks = [replace(_foresee_known(part, end, None, now), later=True) for part in known]
    else:
        outlooks = [_foresee_known(part, start, end, now) for part in known]
    read = now.topics if now.subscribed is None else now.subscribed
    topics = [(topic, now.topics[topic].partitions) for topic in read if topic in now.topics]
    new = [(topic, number) for topic, numbers in topics for number in numbers if (topic, number) not in known]
    for part in new:
        fate = Fate.ADDED_LATE if now.partitions[part].earliest else Fate.ADDED
        outlooks.append(PartOutlook(part, fate, None, None, now.partitions[part], later=end is not None))
    recreated = {outlook.topic for outlook in outlooks if outlook.fate in RECREATED}
    for at, outlook in enumerate(outlooks):
        if outlook.fate is Fate.CONTINUES and outlook.topic in recreated:
            outlooks[at] = replace(outlook, fate=Fate.LOOKS_RECREATED)
    return tuple(sorted(outlooks, key=lambda outlook: outlook.part))


def _partitions_of(offset: Offset | None) -> Mapping[Part, int] | None:
    if offset == NO_TOPIC_YET:
        return {}
    return offset.partitions if isinstance(offset, KafkaOffset) else None


def _foresee_known(part: Part, start: Mapping[Part, int], end: Mapping[Part, int] | None, now: KafkaNow) -> PartOutlook:
    a, b, there = start.get(part), end[part] if end is not None else None, now.partitions.get(part)
    if now.subscribed is not None and part[0] not in now.subscribed:
        return PartOutlook(part, Fate.NOT_SUBSCRIBED, a, b, there, later=b is not None)
    if there is None:
        missing = part[0] not in now.topics or now.topics[part[0]].id is None
        return PartOutlook(part, Fate.NO_TOPIC if missing else Fate.GONE, a, b, None)
    if a is None:
        fate = Fate.ADDED_LATE if there.earliest else Fate.WAITS if b is not None and there.latest < b else Fate.ADDED
        return PartOutlook(part, fate, a, b, there)
    nothing = b is not None and a == b
    return PartOutlook(part, _choose_fate(a, None if nothing else b, there), a, b, there, later=nothing)


def _choose_fate(a: int, b: int | None, there: PartitionNow) -> Fate:
    if there.latest < a:
        return Fate.ENDS_EARLIER
    if there.earliest > a:
        return Fate.EXPIRED
    if b is not None and there.latest < b:
        return Fate.WAITS
    return Fate.LOOKS_RECREATED if there.younger is not None else Fate.CONTINUES


_ORDER = (Fate.NO_TOPIC, Fate.ADDED_LATE, Fate.GONE, Fate.NOT_SUBSCRIBED, Fate.ENDS_EARLIER, Fate.EXPIRED)
"""In which a start comes to them as it plans a new batch; the first one ends it."""


def find_words(failing: tuple[PartOutlook, ...], *, again: bool, rules: Rules) -> str | None:
    """Find words of Spark's message for partitions that fail in one batch, which runs again or is new."""
    if again:
        if any(outlook.fate is Fate.NO_TOPIC for outlook in failing):
            return None  # Kafka's client waits, or makes the topic again
        return _find_common(_find_unread_words(outlook, rules) for outlook in failing) or None
    first = next(fate for fate in _ORDER if any(outlook.fate is fate for outlook in failing))
    same = [outlook for outlook in failing if outlook.fate is first]
    match first:
        case Fate.NO_TOPIC:
            return messages.NO_TOPIC
        case Fate.ADDED_LATE:
            return _find_common(
                messages.ADDED_PARTITION.format(*outlook.part, outlook.now.earliest) for outlook in same if outlook.now
            )
        case Fate.GONE | Fate.NOT_SUBSCRIBED:
            return messages.partitions_deleted(rules)
        case Fate.ENDS_EARLIER:
            return _find_common(
                messages.OFFSET_CHANGED.format(outlook.begin, outlook.now.latest) for outlook in same if outlook.now
            )
    return _find_common(_find_unread_words(outlook, rules) for outlook in same)


def _find_unread_words(outlook: PartOutlook, rules: Rules) -> str:
    if outlook.fate is Fate.GONE:
        return messages.NO_POSITION.format(*outlook.part)
    ends = outlook.now.latest if outlook.fate is Fate.WAITS and outlook.now is not None else 0
    return messages.unread(max(outlook.begin, ends), rules)


def _find_common(texts: Iterator[str]) -> str:
    """Find what several messages have in common, of which any may come first."""
    first, *others = dict.fromkeys(texts)
    if not others:
        return first
    columns = takewhile(lambda column: len(set(column)) == 1, zip(first, *others, strict=False))
    return "".join(column[0] for column in columns).rstrip("0123456789")
