"""What a start makes of the partitions that a Kafka source has now (``ckpt.live``): the rules, as measured.

For each partition, with ``a`` where the next batch starts and ``b`` where it ends, if it was planned before: a new
batch fails if the partition ends before ``a`` or begins after it (``KafkaOffsetReader.getOffsetRangesFromResolved-
Offsets``, then ``KafkaDataConsumer``). A batch that runs again reads ``[a, b)`` without looking at the ends first: it
fails for the same reasons, and waits for rows that never come where the partition ends in between.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from itertools import takewhile

from ckpt.checkpoint.sources.kafka import NO_TOPIC_YET, KafkaOffset
from ckpt.checkpoint.sources.registry import decode
from ckpt.live.outlook import RECREATED, Fate, PartOutlook
from ckpt.live.records import KafkaNow, Part, PartitionNow
from ckpt.model import Json
from ckpt.restart import messages
from ckpt.restart.forecast import SourceRange
from ckpt.versions import Rules


def outlooks(reading: SourceRange, now: KafkaNow, *, passed: bool = False) -> tuple[PartOutlook, ...] | None:
    """What becomes of each partition that the next batch reads, or would; None where its start is not known.

    ``passed``: that batch was planned, and the sink passes over it without reading: what counts is the one after it.
    """
    start, end = _partitions(reading.start), _partitions(reading.end)
    if start is None or (reading.end is not None and end is None):
        return None
    known = start if end is None else end
    if passed and end is not None:
        found = [replace(_known(part, end, None, now), later=True) for part in known]
    else:
        found = [_known(part, start, end, now) for part in known]
    read = now.topics if now.subscribed is None else now.subscribed
    new = [(topic, number) for topic in read for number in _numbers(now, topic) if (topic, number) not in known]
    found += [_added(part, now.partitions[part], later=end is not None) for part in new]
    recreated = {one.part[0] for one in found if one.fate in RECREATED}
    return tuple(sorted((_of_topic(one, recreated) for one in found), key=lambda one: one.part))


def _of_topic(one: PartOutlook, recreated: Set[str]) -> PartOutlook:
    if one.fate is Fate.CONTINUES and one.part[0] in recreated:
        return replace(one, fate=Fate.LOOKS_RECREATED)
    return one


def _partitions(value: Json) -> Mapping[Part, int] | None:
    if value == NO_TOPIC_YET:
        return {}
    offset = decode(value)
    return offset.partitions if isinstance(offset, KafkaOffset) else None


def _numbers(now: KafkaNow, topic: str) -> tuple[int, ...]:
    return now.topics[topic].partitions if topic in now.topics else ()


def _added(part: Part, now: PartitionNow, *, later: bool) -> PartOutlook:
    return PartOutlook(part, Fate.ADDED_LATE if now.earliest else Fate.ADDED, None, None, now, later)


def _known(part: Part, start: Mapping[Part, int], end: Mapping[Part, int] | None, now: KafkaNow) -> PartOutlook:
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
    return PartOutlook(part, _fate(a, None if nothing else b, there), a, b, there, later=nothing)


def _fate(a: int, b: int | None, there: PartitionNow) -> Fate:
    if there.latest < a:
        return Fate.ENDS_EARLIER
    if there.earliest > a:
        return Fate.EXPIRED
    if b is not None and there.latest < b:
        return Fate.WAITS
    return Fate.LOOKS_RECREATED if there.younger is not None else Fate.CONTINUES


_ORDER = (Fate.NO_TOPIC, Fate.ADDED_LATE, Fate.GONE, Fate.NOT_SUBSCRIBED, Fate.ENDS_EARLIER, Fate.EXPIRED)
"""In which a start comes to them as it plans a new batch; the first one ends it."""


def words(failing: tuple[PartOutlook, ...], *, again: bool, rules: Rules) -> str | None:
    """What Spark's message contains, of partitions that fail in the same batch, which runs again or is new."""
    if again:
        if any(one.fate is Fate.NO_TOPIC for one in failing):
            return None  # Kafka's client waits, or makes the topic again
        return _common(_unread(one, rules) for one in failing) or None
    first = next(fate for fate in _ORDER if any(one.fate is fate for one in failing))
    same = [one for one in failing if one.fate is first]
    match first:
        case Fate.NO_TOPIC:
            return messages.NO_TOPIC
        case Fate.ADDED_LATE:
            return _common(messages.added_partition(*one.part, one.now.earliest) for one in same if one.now)
        case Fate.GONE | Fate.NOT_SUBSCRIBED:
            return messages.partitions_deleted(rules)
        case Fate.ENDS_EARLIER:
            return _common(messages.offset_changed(one.begin, one.now.latest) for one in same if one.now)
    return _common(_unread(one, rules) for one in same)


def _unread(one: PartOutlook, rules: Rules) -> str:
    if one.fate is Fate.GONE:
        return messages.no_position(*one.part)
    at = one.begin if one.fate is not Fate.WAITS or one.now is None else max(one.begin, one.now.latest)
    return messages.unread(at, rules)


def _common(texts: Iterator[str]) -> str:
    """What several messages, of which any may come first, have in common."""
    first, *others = dict.fromkeys(texts)
    if not others:
        return first
    columns = takewhile(lambda column: len(set(column)) == 1, zip(first, *others, strict=False))
    return "".join(column[0] for column in columns).rstrip("0123456789")
