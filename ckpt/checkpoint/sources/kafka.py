"""Offsets of Kafka."""

from collections.abc import Mapping
from dataclasses import dataclass

from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType, Unit, whole_number
from ckpt.formats.names import java_int
from ckpt.model import Json
from ckpt.texts import plural_of

_NAMED_PARTITIONS = 4  # in a text: more do not fit into a line


@dataclass(frozen=True, slots=True)
class KafkaOffset:
    """``{topic: {partition: next offset}}`` (Spark class ``KafkaSourceOffset``)."""

    partitions: Mapping[tuple[str, int], int]  # (topic, partition) to the next offset to be read


NO_TOPIC_YET: dict[str, Json] = {}
"""The offset of a Kafka source whose subscription matched no topic yet (``KafkaSourceOffset`` without partitions)."""


class KafkaKind(SourceKind[KafkaOffset]):
    """Kafka, and whatever writes offsets of its shape."""

    record = KafkaOffset

    def decode(self, value: Json) -> KafkaOffset | None:
        if not isinstance(value, dict) or not value:
            return None
        offsets: dict[tuple[str, int], int] = {}
        for topic, partitions in value.items():
            if not topic or not isinstance(partitions, dict) or not partitions:
                return None
            for key, number in partitions.items():
                partition, offset = java_int(key), whole_number(number)
                if partition is None or offset is None or str(partition) != key or partition < 0 or offset < 0:
                    return None
                offsets[topic, partition] = offset
        return KafkaOffset(dict(sorted(offsets.items())))

    def type_of(self, offset: KafkaOffset) -> SourceType:
        return SourceType.KAFKA

    def advance(self, old: KafkaOffset, new: KafkaOffset) -> Advance:
        """Partitions that appear are not counted: where Spark began to read them is not in the log."""
        return _advance(old.partitions, new.partitions)

    def to_json(self, offset: KafkaOffset) -> dict[str, Json]:
        topics: dict[str, dict[str, Json]] = {}
        for (topic, partition), number in offset.partitions.items():
            topics.setdefault(topic, {})[str(partition)] = number
        return {"topics": dict(topics), "partitions": len(offset.partitions)}

    def to_text(self, offset: KafkaOffset) -> str:
        parts = list(offset.partitions.items())
        named = [f"{topic}/{p}={number}" for (topic, p), number in parts[:_NAMED_PARTITIONS]]
        more = len(parts) - len(named)
        return " ".join(named) + (f" and {more} more {plural_of(more, 'partition')}" if more > 0 else "")


def is_kafka(value: Json) -> bool:
    """Whether an offset has the shape of Kafka's; it may name no partition yet."""
    return value == NO_TOPIC_YET or KafkaKind().decode(value) is not None


def _advance(old: Mapping[tuple[str, int], int], new: Mapping[tuple[str, int], int]) -> Advance:
    back = [f"{topic}/{p} is gone, it was at {old[topic, p]}" for topic, p in old if (topic, p) not in new]
    both = [part for part in new if part in old]
    back += [f"{t}/{p} went from {old[t, p]} to {new[t, p]}" for t, p in both if new[t, p] < old[t, p]]
    amount = None if back else sum(new[part] - old[part] for part in both)
    lower = {topic for (topic, p), offset in old.items() if new.get((topic, p), -1) < offset}
    left = {topic: tuple(p for other, p in new if other == topic) for topic in sorted(lower & {t for t, _ in new})}
    before, after = ({topic for topic, _ in partitions} for partitions in (old, new))
    gone, came = (", ".join(sorted(topics)) for topics in (before - after, after - before))
    switched = (gone, came) if gone and came else None
    return Advance(amount, Unit.OFFSETS, tuple(back), switched=switched, recreated=left)
