"""What somebody wants the end of a batch to be: offsets as they typed them, checked before anything is planned.

Spark takes most mistakes in an offset silently, and reads other rows than were meant.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ckpt.checkpoint.sources.delta import DeltaOffset
from ckpt.checkpoint.sources.files import FileOffset
from ckpt.checkpoint.sources.iceberg import IcebergOffset
from ckpt.checkpoint.sources.kafka import KafkaOffset
from ckpt.checkpoint.sources.rate_micro_batch import RateMicroBatchOffset
from ckpt.checkpoint.sources.registry import Offset, decode
from ckpt.errors import UsageError
from ckpt.model import Json
from ckpt.storage.base import one_line

_SHIFT = re.compile(r"(?P<topic>[^/=]+)/(?P<partition>0|[1-9][0-9]{0,9})=(?P<by>[+-][0-9]{1,18})")
_LARGEST = 2**63 - 1  # a Long
_KEPT_FOR_READERS = {-1: "the end (latest)", -2: "the beginning (earliest)"}


@dataclass(frozen=True, slots=True)
class RequestedEnd:
    """The new end of one source; of Kafka without the partitions that are to be left out."""

    value: Json
    left_out: frozenset[tuple[str, int]] = frozenset()  # partitions of Kafka that were given as null
    renamed: Mapping[str, str] = field(default_factory=dict)  # topics of Kafka that moved: what each is called now

    @property
    def text(self) -> str:
        """As it is written into an offset file."""
        return json.dumps(self.value, separators=(",", ":"), ensure_ascii=False)


def parse_json(text: str, what: str) -> Json:
    """JSON that somebody typed. Raises UsageError, which begins with ``what``."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            names = [name for name, _ in pairs]
            raise UsageError(f"{what} names {one_line(next(n for n in names if names.count(n) > 1))} twice")
        return value

    def never(word: str) -> NoReturn:
        raise UsageError(f"{what} holds {word}, which is not JSON")

    try:
        value: Json = json.loads(text, object_pairs_hook=once, parse_constant=never)
        json.dumps(value, ensure_ascii=False).encode()  # not half of a character
    except (ValueError, RecursionError) as error:
        place = f" at character {error.pos + 1}: {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
        raise UsageError(f"{what} is not JSON{place}") from error
    return value


def wanted(value: Json, like: Offset, what: str = "`to`") -> RequestedEnd:
    """A new end for a source that is at ``like``.

    Raises UsageError, which begins with ``what``, where it is no offset of that kind of source.
    """
    if isinstance(like, KafkaOffset):
        return _kafka(value, what)
    _must_be(like, value, what)
    return RequestedEnd(value)


def shifted(like: Offset, shifts: Sequence[str]) -> RequestedEnd:
    """The end of a Kafka source, with some partitions moved: ``topic/partition=+n`` or ``-n``. Raises UsageError."""
    if not isinstance(like, KafkaOffset):
        raise UsageError("`shift` moves partitions of Kafka, and this source is not Kafka: give its offset with `to`")
    moved = dict(like.partitions)
    for word in shifts:
        found = _SHIFT.fullmatch(word)
        if found is None:
            raise UsageError(f"`shift` {one_line(word)} is not TOPIC/PARTITION=+N or TOPIC/PARTITION=-N")
        part = found["topic"], int(found["partition"])
        if part not in moved:
            raise UsageError(f"`shift` {one_line(word)}: the source has no such partition; it has {names(moved)}")
        if moved[part] != like.partitions[part]:
            raise UsageError(f"`shift` names {names([part])} twice")
        moved[part] += int(found["by"])
        if not 0 <= moved[part] <= _LARGEST:
            raise UsageError(
                f"`shift` {one_line(word)} leads to {moved[part]}: the partition is at {like.partitions[part]}"
            )
    return RequestedEnd(as_json(moved))


def as_json(partitions: Mapping[tuple[str, int], int]) -> dict[str, Json]:
    """Offsets of Kafka as the log has them."""
    topics: dict[str, dict[str, Json]] = {}
    for (topic, partition), offset in sorted(partitions.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return dict(topics)


def names(parts: Sequence[tuple[str, int]] | Mapping[tuple[str, int], int], most: int = 5) -> str:
    """Partitions in a few words: ``orders/0, orders/1 and 3 more``."""
    shown = [f"{topic}/{partition}" for topic, partition in sorted(parts)]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return one_line(", ".join(shown[:most]) + more)


def _kafka(value: Json, what: str) -> RequestedEnd:
    if not isinstance(value, dict) or not value:
        raise UsageError(f'{what} is not offsets of Kafka, such as {{"topic":{{"0":12}}}}: {_shown(value)}')
    kept: dict[tuple[str, int], int] = {}
    left_out = set()
    for topic, partitions in value.items():
        if not topic or not isinstance(partitions, dict) or not partitions:
            raise UsageError(f"{what} has no partitions for topic {one_line(topic)!r}: {_shown(partitions)}")
        for key, offset in partitions.items():
            if re.fullmatch("0|[1-9][0-9]{0,9}", key) is None or int(key) >= 2**31:
                raise UsageError(f"{what} names partition {one_line(key)!r} of {one_line(topic)}, which is no number")
            if offset is None:
                left_out.add((topic, int(key)))
            else:
                kept[topic, int(key)] = _kafka_offset(f"{one_line(topic)}/{key}", offset, what)
    return RequestedEnd(as_json(kept), frozenset(left_out))


def _kafka_offset(where: str, offset: Json, what: str) -> int:
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise UsageError(f"{what} gives {where} the offset {_shown(offset)}, which is no whole number")
    if offset in _KEPT_FOR_READERS:
        raise UsageError(
            f"{what} gives {where} the offset {offset}: that means {_KEPT_FOR_READERS[offset]} in reader options only; "
            "from an offset log the batch would fail. Give the number that the broker has"
        )
    if not 0 <= offset <= _LARGEST:
        raise UsageError(f"{what} gives {where} the offset {offset}, which no partition has")
    return offset


_SHAPES: Mapping[type, tuple[str, Callable[[Any], bool]]] = {
    FileOffset: ('of a file source, such as {"logOffset":12}', lambda one: one.log_offset >= 0),
    RateMicroBatchOffset: (
        'of a rate-micro-batch source, such as {"offset":120,"timestamp":1700000000000}',
        lambda one: 0 <= one.rows <= _LARGEST and 0 <= one.timestamp_ms <= _LARGEST,
    ),
    DeltaOffset: (
        "of a Delta source: all five keys as `ckpt offsets show` prints them, with another reservoirVersion and index",
        lambda one: 0 <= one.version <= _LARGEST,
    ),
    IcebergOffset: (
        "of an Iceberg source: all four keys as `ckpt offsets show` prints them, with another snapshot_id and "
        "position, and scan_all_files false",
        lambda one: 0 <= (one.snapshot or -1) <= _LARGEST and 0 <= one.position < 2**31 and not one.all_files,
    ),
}
_KEYS: Mapping[type, set[str]] = {
    DeltaOffset: {"sourceVersion", "reservoirId", "reservoirVersion", "index", "isStartingVersion"},
    IcebergOffset: {"version", "snapshot_id", "position", "scan_all_files"},
}


def _must_be(like: Offset, value: Json, what: str) -> None:
    shape, valid = _SHAPES[type(like)]
    found = decode(value)
    right = type(found) is type(like) and valid(found)
    if type(like) in _KEYS:
        right = right and isinstance(value, dict) and value.keys() == _KEYS[type(like)]
    if not right:
        raise UsageError(f"{what} is not an offset {shape}: {_shown(value)}")


def _shown(value: Json) -> str:
    text = one_line(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 120 else f"{text[:120]}..."
