"""Offsets of Kafka."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from ckpt.advice import Words
from ckpt.checkpoint.sources.book import BOOK, say
from ckpt.checkpoint.sources.ends import (
    BatchPlanned,
    CannotEndThere,
    LatestEnd,
    MovedEnd,
    RequestedEnd,
    Span,
    cut_json,
)
from ckpt.checkpoint.sources.kind import LONG, Advance, SourceKind, SourceType, Unit, whole_number
from ckpt.checkpoint.sources.starts import ReaderStart, StartFacts, StartingPoint
from ckpt.checkpoint.sources.unknown import UnknownOffset
from ckpt.errors import UsageError, one_line
from ckpt.formats.names import parse_java_int
from ckpt.model import Json
from ckpt.texts import plural_of

Partition = tuple[str, int]  # A topic, and the number of one of its partitions

_NAMED_PARTITIONS = 4  # in a text: more do not fit into a line
_LISTED = 5  # in an error


@dataclass(frozen=True, slots=True)
class KafkaOffset:
    """``{topic: {partition: next offset}}`` (Spark class ``KafkaSourceOffset``)."""

    partitions: Mapping[Partition, int]  # to the next offset to be read

    @property
    def topics(self) -> frozenset[str]:
        """The topics that it names."""
        return frozenset(topic for topic, _ in self.partitions)


NO_TOPIC_YET = UnknownOffset({})
"""The offset of a Kafka source whose subscription matched no topic yet (``KafkaSourceOffset`` without partitions)."""


class KafkaKind(SourceKind[KafkaOffset]):
    """Kafka, and whatever writes offsets of its shape."""

    name = SourceType.KAFKA
    record = KafkaOffset
    settable = True
    logs_start = True
    like_event_hubs = True

    def decode(self, value: Json) -> KafkaOffset | None:
        if not isinstance(value, dict) or not value:
            return None
        offsets: dict[Partition, int] = {}
        for topic, partitions in value.items():
            if not topic or not isinstance(partitions, dict) or not partitions:
                return None
            for key, number in partitions.items():
                partition, offset = parse_java_int(key), whole_number(number)
                if partition is None or offset is None or str(partition) != key or partition < 0 or offset < 0:
                    return None
                offsets[topic, partition] = offset
        return KafkaOffset(dict(sorted(offsets.items())))

    def advance(self, old: KafkaOffset, new: KafkaOffset) -> Advance:
        """Offsets of partitions that appear are not counted."""
        before, after = old.partitions, new.partitions
        back = [f"{topic}/{p} is gone, it was at {at}" for (topic, p), at in before.items() if (topic, p) not in after]
        both = [part for part in after if part in before]
        back += [f"{t}/{p} went from {before[t, p]} to {after[t, p]}" for t, p in both if after[t, p] < before[t, p]]
        amount = None if back else sum(after[part] - before[part] for part in both)
        lower = {topic for (topic, p), offset in before.items() if after.get((topic, p), -1) < offset}
        left = {topic: tuple(p for t, p in after if t == topic) for topic in sorted(lower & new.topics)}
        gone, came = (", ".join(sorted(topics)) for topics in (old.topics - new.topics, new.topics - old.topics))
        switched = (gone, came) if gone and came else None
        more = len(after.keys() - before.keys())
        return Advance(amount, Unit.OFFSETS, tuple(back), switched=switched, new_partitions=more, recreated=left)

    def to_json(self, offset: KafkaOffset) -> dict[str, Json]:
        return {"topics": _write_topics(offset.partitions), "partitions": len(offset.partitions)}

    def to_text(self, offset: KafkaOffset) -> str:
        parts = list(offset.partitions.items())
        named = [f"{topic}/{p}={number}" for (topic, p), number in parts[:_NAMED_PARTITIONS]]
        more = len(parts) - len(named)
        return " ".join(named) + (f" and {more} more {plural_of(more, 'partition')}" if more > 0 else "")

    def find_topics(self, offset: KafkaOffset) -> frozenset[str]:
        return offset.topics

    def list_reader_options(self, offset: KafkaOffset) -> dict[str, str]:
        return {"kafka.bootstrap.servers": "", "subscribe": ",".join(sorted(offset.topics))}

    def start_after(self, offset: KafkaOffset, facts: StartFacts) -> ReaderStart:
        """The log has the next offset to be read of every partition, which is what ``startingOffsets`` wants.

        The offsets of a recreated topic are those of other rows: it is read from its earliest, which is -2.
        """
        topics = _write_topics(offset.partitions)
        recreated = [topic for topic in topics if topic in facts.recreated]
        topics |= {topic: {str(partition): -2 for partition in facts.recreated[topic]} for topic in recreated}
        return ReaderStart(
            StartingPoint.EARLIEST if recreated else StartingPoint.EXACT,
            {"startingOffsets": json.dumps(topics, separators=(",", ":"), ensure_ascii=False)},
            without=("startingTimestamp", "startingOffsetsByTimestamp"),
            conditions=(
                *((say("kafka_event_hubs"),) if facts.event_hubs else ()),
                *(say("kafka_recreated", topic=topic) for topic in recreated),
                *map(say, ("kafka_every_partition", "kafka_kept", "kafka_other_rows")),
            ),
        )

    def parse_end(self, value: Json, what: str | Words) -> RequestedEnd:
        if not isinstance(value, dict) or not value:
            raise UsageError(BOOK.text("kafka_not_an_offset", what=what, value=cut_json(value)))
        kept: dict[Partition, int] = {}
        left_out = set()
        for topic, partitions in value.items():
            if not topic or not isinstance(partitions, dict) or not partitions:
                known = {"what": what, "topic": repr(one_line(topic)), "value": cut_json(partitions)}
                raise UsageError(BOOK.text("kafka_no_partitions", **known))
            for key, offset in partitions.items():
                if _NUMBER.fullmatch(key) is None or int(key) >= 2**31:
                    known = {"what": what, "number": repr(one_line(key)), "topic": one_line(topic)}
                    raise UsageError(BOOK.text("kafka_no_number", **known))
                if offset is None:
                    left_out.add((topic, int(key)))
                else:
                    kept[topic, int(key)] = _parse_offset(f"{one_line(topic)}/{key}", offset, what)
        return RequestedEnd(write_sorted(kept), frozenset(left_out))

    def shift_end(self, offset: KafkaOffset, shifts: Sequence[str]) -> RequestedEnd:
        moved = dict(offset.partitions)
        for word in shifts:
            shift = _SHIFT.fullmatch(word)
            if shift is None:
                raise UsageError(BOOK.text("kafka_no_shift", word=one_line(word)))
            part = shift["topic"], int(shift["partition"])
            if part not in moved:
                raise UsageError(BOOK.text("kafka_no_such_partition", word=one_line(word), names=list_parts(moved)))
            if moved[part] != offset.partitions[part]:
                raise UsageError(BOOK.text("kafka_shift_twice", names=list_parts([part])))
            moved[part] += int(shift["by"])
            if not 0 <= moved[part] <= LONG:
                now = offset.partitions[part]
                raise UsageError(BOOK.text("kafka_shift_too_far", word=one_line(word), end=moved[part], now=now))
        return RequestedEnd(write_sorted(moved))

    def move_end(self, latest: LatestEnd[KafkaOffset], new: RequestedEnd) -> MovedEnd:
        requested = self.decode(new.value)
        before, to = latest.offset.partitions, requested.partitions if requested is not None else {}
        start = latest.start.partitions if latest.start is not None else {}
        old = {(new.renamed.get(topic, topic), partition): offset for (topic, partition), offset in before.items()}
        _check_named(latest.index, old.keys(), to.keys(), new.left_out)
        renamed = set(new.renamed.values())
        back = {part: at for part, at in old.items() if to.get(part, at) < at and part[0] not in renamed}
        ahead = {part: at for part, at in to.items() if old.get(part, 0) < at and part[0] not in renamed}
        if not latest.committed:
            low = [part for part in to if to[part] < start.get(part, 0)]
            if to.keys() != before.keys() or low:
                name = "kafka_before_start" if low else "kafka_other_partitions"
                raise BatchPlanned(say(name, batch=latest.batch, names=list_parts(low)))
        behind = {part: old.get(part, 0) for part in ahead}
        skipped: list[Span] = [(write_sorted(behind), write_sorted(ahead))] if ahead else []
        repeated: list[Span] = [(write_sorted({part: to[part] for part in back}), write_sorted(back))] if back else []
        if new.left_out:
            repeated.append((None, write_sorted({part: old[part] for part in new.left_out})))
        return MovedEnd(tuple(skipped), tuple(repeated), tuple(_warn(before.keys(), to.keys(), new)))


_NUMBER = re.compile("0|[1-9][0-9]{0,9}")
_SHIFT = re.compile(rf"(?P<topic>[^/=]+)/(?P<partition>{_NUMBER.pattern})=(?P<by>[+-][0-9]{{1,18}})")
_KEPT_FOR_READERS = {-1: "the end (latest)", -2: "the beginning (earliest)"}


def is_kafka(offset: object) -> bool:
    """Tell whether an offset has the shape of Kafka's; it may name no partition yet."""
    return isinstance(offset, KafkaOffset) or offset == NO_TOPIC_YET


def _parse_offset(partition: str, offset: Json, what: str | Words) -> int:
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise UsageError(BOOK.text("kafka_not_whole", what=what, partition=partition, value=cut_json(offset)))
    known = {"what": what, "partition": partition, "offset": offset, "meaning": _KEPT_FOR_READERS.get(offset)}
    if offset in _KEPT_FOR_READERS:
        raise UsageError(BOOK.text("kafka_for_readers", **known))
    if not 0 <= offset <= LONG:
        raise UsageError(BOOK.text("kafka_impossible", **known))
    return offset


def _check_named(index: int, old: Set[Partition], to: Set[Partition], left_out: frozenset[Partition]) -> None:
    """Refuse a new end that leaves out partitions silently, or all of them."""
    unknown = sorted(left_out - old)
    if unknown:
        raise CannotEndThere(say("kafka_not_there", names=list_parts(unknown), source=index))
    missing = sorted(old - to - left_out)
    if missing:
        raise CannotEndThere(say("kafka_left_out", names=list_parts(missing)))
    if not to:
        raise CannotEndThere(say("kafka_none_left"))


def _warn(old: Set[Partition], to: Set[Partition], new: RequestedEnd) -> Iterator[Words]:
    if not new.said:
        yield BOOK.text("kafka_not_asked")
    for topic, name in new.renamed.items() if not new.said else ():
        yield BOOK.text("kafka_renamed", new=one_line(name), topic=one_line(topic))
    if new.left_out:
        yield BOOK.text("kafka_from_beginning", names=list_parts(sorted(new.left_out)))
    before, after = ({topic for topic, _ in partitions} for partitions in (old, to))
    if after - before:
        yield BOOK.text("kafka_subscribe", topics=one_line(", ".join(sorted(after - before))))
    if before - after:
        yield BOOK.text("kafka_subscribe_no_longer", topics=one_line(", ".join(sorted(before - after))))


def _write_topics(partitions: Mapping[Partition, int]) -> dict[str, Json]:
    topics: dict[str, dict[str, Json]] = {}
    for (topic, partition), offset in partitions.items():
        topics.setdefault(topic, {})[str(partition)] = offset
    return dict(topics)


def write_sorted(partitions: Mapping[Partition, int]) -> dict[str, Json]:
    """Write offsets of partitions as the log has them, in the order of their names."""
    return _write_topics(dict(sorted(partitions.items())))


def list_parts(partitions: Iterable[Partition]) -> str:
    """Name partitions in a few words: ``orders/0, orders/1 and 3 more``."""
    shown = [f"{topic}/{partition}" for topic, partition in sorted(partitions)]
    more = f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
    return one_line(", ".join(shown[:_LISTED]) + more)
