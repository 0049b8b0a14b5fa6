"""Source offsets: what the JSON of each kind of source means.

The log does not say which source wrote an offset, so its kind is derived from the shape of the JSON, strictly: whatever
does not fit exactly is of unknown kind and shown as is.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from ckpt.formats.names import java_int
from ckpt.model import Json, OffsetLog, SourceOffset


class SourceType(StrEnum):
    """The kinds of source whose offsets ckpt understands."""

    KAFKA = "kafka"
    DELTA = "delta"
    ICEBERG = "iceberg"
    FILE = "file"
    RATE = "rate"
    RATE_MICRO_BATCH = "rate-micro-batch"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KafkaOffset:
    """``{topic: {partition: next offset}}`` (Spark class ``KafkaSourceOffset``)."""

    partitions: Mapping[tuple[str, int], int]  # (topic, partition) to the next offset to be read


@dataclass(frozen=True, slots=True)
class DeltaOffset:
    """A place in a Delta table (``DeltaSourceOffset`` of delta-spark, serialized as version 1 or 3)."""

    table_id: str  # reservoirId
    version: int  # reservoirVersion
    index: int  # of the last file of the version that was read; negative: none of it yet
    initial_snapshot: bool  # isStartingVersion: still reading what was there when the query began

    @property
    def at_boundary(self) -> bool:
        """Whether nothing of ``version`` was read: ``startingVersion`` continues exactly there."""
        return self.index in _BASE_INDEXES.values() and not self.initial_snapshot

    @property
    def place(self) -> tuple[int, int]:
        """Version and index, by which two places in a table can be compared."""
        bases = _BASE_INDEXES.values()
        return self.version, min(bases) if self.index in bases else self.index

    @property
    def last_read(self) -> int:
        """The newest version of which something was read."""
        return self.version - 1 if self.at_boundary else self.version


@dataclass(frozen=True, slots=True)
class IcebergOffset:
    """A place in an Iceberg table (Iceberg class ``StreamingOffset``, version 1)."""

    snapshot: int | None  # None: the table had none, or none that counts
    position: int  # how many of its files were read
    all_files: bool  # scan_all_files: of the table as of the snapshot, not only of those that it added


@dataclass(frozen=True, slots=True)
class FileOffset:
    """``{"logOffset": n}``: entry n of ``sources/<k>`` was read (Spark class ``FileStreamSourceOffset``)."""

    log_offset: int


@dataclass(frozen=True, slots=True)
class RateMicroBatchOffset:
    """``{"offset": rows, "timestamp": ms}`` (Spark class ``RatePerMicroBatchStreamOffset``)."""

    rows: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class NumberOffset:
    """A bare number: seconds of a rate source, lines of a socket (Spark class ``LongOffset``)."""

    value: int
    rate: bool  # a rate source, which alone of these keeps ``sources/<k>/0``


Offset: TypeAlias = KafkaOffset | DeltaOffset | IcebergOffset | FileOffset | RateMicroBatchOffset | NumberOffset


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source as the latest offset file has it."""

    index: int
    name: str | None  # offset log v2
    type: SourceType
    offset: Json
    decoded: dict[str, Json]  # empty where the type is unknown
    well_formed: bool = True  # the offset could be read


NO_TOPIC_YET: dict[str, Json] = {}
"""The offset of a Kafka source whose subscription matched no topic yet (``KafkaSourceOffset`` without partitions)."""

_BASE_INDEXES = {1: -1, 3: -100}  # of each sourceVersion: DeltaSourceOffset.BASE_INDEX_V1 and BASE_INDEX_V3


def decode(value: Json, *, rate: bool = False) -> Offset | None:
    """Tell what an offset of the log means; None where its shape is not one ckpt knows.

    ``rate`` says that the checkpoint has ``sources/<k>/0`` for this source, so that a bare number is a rate
    source's.
    """
    number = _whole(value)
    if number is not None:
        return NumberOffset(number, rate)
    if not isinstance(value, dict) or not value:
        return None
    return _delta(value) or _iceberg(value) or _file(value) or _rate_micro_batch(value) or _kafka(value)


def is_kafka(value: Json) -> bool:
    """Whether an offset has the shape of Kafka's; it may name no partition yet."""
    return value == NO_TOPIC_YET or isinstance(decode(value), KafkaOffset)


def source_type(offset: Offset | None) -> SourceType:
    """The kind of source that writes such an offset."""
    match offset:
        case KafkaOffset():
            return SourceType.KAFKA
        case DeltaOffset():
            return SourceType.DELTA
        case IcebergOffset():
            return SourceType.ICEBERG
        case FileOffset():
            return SourceType.FILE
        case RateMicroBatchOffset():
            return SourceType.RATE_MICRO_BATCH
        case NumberOffset(rate=True):
            return SourceType.RATE
        case NumberOffset() | None:
            return SourceType.UNKNOWN


def source_views(log: OffsetLog, rate_sources: Collection[int] = ()) -> tuple[SourceView, ...]:
    """Every source of an offset file, in the order of the query.

    Offset log v2 names its sources and keeps no order; without names of their own they are called by their
    index. ``rate_sources`` are the k for which ``sources/<k>`` holds a file ``0`` and nothing else.
    """
    views = []
    for index, source in indexed(log.sources):
        offset = decode(source.value, rate=index in rate_sources)
        views.append(
            SourceView(index, source.name, source_type(offset), source.value, _shown(offset), source.well_formed)
        )
    return tuple(views)


def in_order(log: OffsetLog) -> tuple[SourceOffset, ...]:
    """The sources of an offset file in the order of ``source_views``."""
    return tuple(source for _, source in indexed(log.sources))


def value_of(log: OffsetLog | None, index: int) -> Json:
    """The offset of a source in a batch; None where it has none there."""
    sources = in_order(log) if log is not None else ()
    return sources[index].value if index < len(sources) else None


def indexed(sources: tuple[SourceOffset, ...]) -> list[tuple[int, SourceOffset]]:
    """Sources with their numbers, in the order of these where their names say them."""
    numbers = [_index(source.name) for source in sources]
    if None in numbers:
        return list(enumerate(sources))
    return sorted(((n or 0, source) for n, source in zip(numbers, sources, strict=True)), key=lambda pair: pair[0])


def _index(name: str | None) -> int | None:
    return int(name) if name is not None and name.isdecimal() and name.isascii() and len(name) < 10 else None


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _kafka(value: dict[str, Json]) -> KafkaOffset | None:
    found: dict[tuple[str, int], int] = {}
    for topic, partitions in value.items():
        if not topic or not isinstance(partitions, dict) or not partitions:
            return None
        for key, number in partitions.items():
            partition, offset = java_int(key), _whole(number)
            if partition is None or offset is None or str(partition) != key or partition < 0 or offset < 0:
                return None
            found[topic, partition] = offset
    return KafkaOffset(dict(sorted(found.items())))


def _delta(value: dict[str, Json]) -> DeltaOffset | None:
    table_id, initial = value.get("reservoirId"), value.get("isStartingVersion")
    version, index = _whole(value.get("reservoirVersion")), _whole(value.get("index"))
    if not isinstance(table_id, str) or not isinstance(initial, bool) or version is None or index is None:
        return None
    known = _whole(value.get("sourceVersion")) in _BASE_INDEXES
    return DeltaOffset(table_id, version, index, initial) if known else None


def base_index(value: Mapping[str, Json]) -> int:
    """The index that is the beginning of a version, in offsets of Delta that are written as this one is."""
    return _BASE_INDEXES[1 if value.get("sourceVersion") == 1 else 3]


def _iceberg(value: dict[str, Json]) -> IcebergOffset | None:
    snapshot, position = _whole(value.get("snapshot_id")), _whole(value.get("position"))
    all_files = value.get("scan_all_files")
    if snapshot is None or position is None or not isinstance(all_files, bool) or _whole(value.get("version")) != 1:
        return None
    return IcebergOffset(None if snapshot == -1 else snapshot, position, all_files)


def _file(value: dict[str, Json]) -> FileOffset | None:
    number = _whole(value.get("logOffset"))
    return FileOffset(number) if number is not None and len(value) == 1 else None


def _rate_micro_batch(value: dict[str, Json]) -> RateMicroBatchOffset | None:
    rows, timestamp = _whole(value.get("offset")), _whole(value.get("timestamp"))
    if rows is None or timestamp is None or len(value) != 2:
        return None
    return RateMicroBatchOffset(rows, timestamp)


def _shown(offset: Offset | None) -> dict[str, Json]:
    """The ``decoded`` object of the JSON report."""
    match offset:
        case KafkaOffset(partitions):
            topics: dict[str, dict[str, Json]] = {}
            for (topic, partition), number in partitions.items():
                topics.setdefault(topic, {})[str(partition)] = number
            return {"topics": dict(topics), "partitions": len(partitions)}
        case DeltaOffset():
            return {
                "table_id": offset.table_id,
                "version": offset.version,
                "index": offset.index,
                "initial_snapshot": offset.initial_snapshot,
                "at_boundary": offset.at_boundary,
            }
        case IcebergOffset():
            snapshot = None if offset.snapshot is None else str(offset.snapshot)  # more digits than a double has
            return {"snapshot_id": snapshot, "position": offset.position, "scan_all_files": offset.all_files}
        case FileOffset(number):
            return {"log_offset": number}
        case RateMicroBatchOffset(rows, timestamp):
            return {"rows": rows, "timestamp_ms": timestamp}
        case NumberOffset(value, rate=True):
            return {"seconds": value}
        case NumberOffset(value):
            return {"number": value}
        case None:
            return {}
