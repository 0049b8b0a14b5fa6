"""What a start makes of the partitions that a Kafka source has now (``ckpt.live``): the rules, as measured.

For each partition, with ``a`` where the next batch starts and ``b`` where it ends, if it was planned before: a new
batch fails if the partition ends before ``a`` or begins after it (``KafkaOffsetReader.getOffsetRangesFromResolved-
Offsets``, then ``KafkaDataConsumer``). A batch that runs again reads ``[a, b)`` without looking at the ends first: it
fails for the same reasons, and waits for rows that never come where the partition ends in between.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile

from ckpt.checkpoint.sources.offsets import NO_TOPIC_YET, KafkaOffset, decode
from ckpt.live.records import KafkaNow, Part, PartitionNow
from ckpt.model import Json
from ckpt.restart import messages
from ckpt.restart.forecast import SourceRange
from ckpt.versions import Rules


class Fate(StrEnum):
    """What the next start makes of a partition with ``failOnDataLoss``, worst last."""

    CONTINUES = "continues"
    ADDED = "added"  # read from its beginning
    LOOKS_RECREATED = "looks-recreated"  # continues, though the rows below are not those that were read
    EXPIRED = "expired"  # rows that were to be read next are gone: fails
    ENDS_EARLIER = "ends-earlier"  # it has fewer rows than were read: fails
    WAITS = "waits"  # it has fewer rows than were planned: waits for them, then fails
    GONE = "gone"  # the topic has fewer partitions: fails
    ADDED_LATE = "added-late"  # new, and its first rows are gone: fails
    NOT_SUBSCRIBED = "not-subscribed"  # the query no longer reads the topic: fails
    NO_TOPIC = "no-topic"  # fails

    @property
    def fails(self) -> bool:
        """Whether a start fails because of it."""
        return self not in (Fate.CONTINUES, Fate.ADDED, Fate.LOOKS_RECREATED)


RECREATED = (Fate.ENDS_EARLIER, Fate.WAITS, Fate.GONE, Fate.LOOKS_RECREATED)
"""Fates that show that the topic is another one, so that it is in all its partitions."""


@dataclass(frozen=True, slots=True)
class PartOutlook:
    """One partition and the next start."""

    part: Part
    fate: Fate
    start: int | None  # where the next batch starts; None: it is new
    end: int | None  # where it ends, if it was planned before
    now: PartitionNow | None  # None: it is not there
    later: bool = False  # not in the batch that runs first, which was planned before, but in the one after it

    @property
    def begin(self) -> int:
        """Where its next rows are looked for."""
        return 0 if self.start is None else self.end if self.later and self.end is not None else self.start

    @property
    def waiting(self) -> int:
        """Offsets that a start still reads: rows, and the gaps that compaction and transactions leave."""
        if self.fate is Fate.NOT_SUBSCRIBED:  # but for those of a batch that was planned
            return self.end - self.start if self.end is not None and self.start is not None else 0
        return self._unread

    @property
    def _unread(self) -> int:
        return max(0, self.now.latest - max(self.begin, self.now.earliest)) if self.now else 0

    @property
    def lost(self) -> int:
        """Offsets that a start with ``failOnDataLoss=false`` never reads: expired, of a new topic, of one given up."""
        if self.now is None:
            return 0
        match self.fate:
            case Fate.EXPIRED | Fate.ADDED_LATE:
                return self.now.earliest - self.begin
            case Fate.ENDS_EARLIER:
                return self.now.latest - self.now.earliest
            case Fate.NOT_SUBSCRIBED:
                return self._unread
            case Fate.WAITS | Fate.LOOKS_RECREATED:
                return max(0, self.begin - self.now.earliest)
        return 0


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
