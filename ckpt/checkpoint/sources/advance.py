"""How far a source went from one of its offsets to a later one, and whether it went back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ckpt.checkpoint.sources.offsets import (
    DeltaOffset,
    FileOffset,
    IcebergOffset,
    KafkaOffset,
    NumberOffset,
    RateMicroBatchOffset,
    decode,
    indexed,
)
from ckpt.model import Json, OffsetLog


class Unit(StrEnum):
    """What an advance is counted in."""

    OFFSETS = "offsets"  # Kafka: records, and the gaps that compaction and transaction marks leave
    VERSIONS = "versions"  # Delta: table versions
    FILES = "files"  # Iceberg, inside of one snapshot: its ids say nothing of their order
    ENTRIES = "log entries"  # file source: each names the files of one batch
    ROWS = "rows"  # rate-micro-batch
    STEPS = "steps"  # a bare number whose meaning is not known


@dataclass(frozen=True, slots=True)
class Advance:
    """How far one source went from one offset to a later one."""

    amount: int | None  # in ``unit``; None where it cannot be counted
    unit: Unit
    went_back: tuple[str, ...] = ()  # parts that are lower than before, or gone, one line each
    replaced: bool = False  # a Delta table with another id
    switched: tuple[str, str] | None = None  # Kafka topics that are gone, and those that came instead
    recreated: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Kafka topics whose offsets went back, and the partitions that they have afterwards: a topic's offsets only grow,
    and it never loses a partition, so another topic has the name now, or rows were taken from its end."""


def advance(before: Json, after: Json) -> Advance | None:
    """How far a source went between two of its offsets; None where that is not known."""
    match decode(before), decode(after):
        case KafkaOffset(old), KafkaOffset(new):
            return _kafka_advance(old, new)
        case DeltaOffset() as old_place, DeltaOffset() as new_place:
            return _delta_advance(old_place, new_place)
        case IcebergOffset() as old_files, IcebergOffset() as new_files:
            return _iceberg_advance(old_files, new_files)
        case FileOffset(old_entry), FileOffset(new_entry):
            return _number_advance(old_entry, new_entry, Unit.ENTRIES)
        case RateMicroBatchOffset(old_rows), RateMicroBatchOffset(new_rows):
            return _number_advance(old_rows, new_rows, Unit.ROWS)
        case NumberOffset(old_number), NumberOffset(new_number):
            return _number_advance(old_number, new_number, Unit.STEPS)
    return None


def advances(before: OffsetLog, after: OffsetLog) -> tuple[Advance | None, ...]:
    """How far each source of ``after`` went since ``before``, in the order of ``source_views``.

    Sources are matched by name in offset log v2, whose lines have no order, and by position in v1.
    """
    old = {source.name or index: source for index, source in indexed(before.sources)}
    found = []
    for index, source in indexed(after.sources):
        earlier = old.get(source.name or index)
        found.append(advance(earlier.value, source.value) if earlier is not None else None)
    return tuple(found)


def _kafka_advance(old: Mapping[tuple[str, int], int], new: Mapping[tuple[str, int], int]) -> Advance:
    """Partitions that appear are not counted: where Spark began to read them is not in the log."""
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


def _delta_advance(old: DeltaOffset, new: DeltaOffset) -> Advance:
    if old.table_id != new.table_id:
        return Advance(None, Unit.VERSIONS, replaced=True)
    back: list[str] = []
    if new.place < old.place:
        back.append(f"went from version {old.version} index {old.index} to {new.version} index {new.index}")
    if new.initial_snapshot and not old.initial_snapshot:
        back.append("reads the initial snapshot again")
    return Advance(None if back else new.version - old.version, Unit.VERSIONS, tuple(back))


def _iceberg_advance(old: IcebergOffset, new: IcebergOffset) -> Advance:
    if (old.snapshot, old.all_files) != (new.snapshot, new.all_files):
        return Advance(None, Unit.FILES)
    return _number_advance(old.position, new.position, Unit.FILES)


def _number_advance(old: int, new: int, unit: Unit) -> Advance:
    if new < old:
        return Advance(None, unit, (f"went from {old} to {new}",))
    return Advance(new - old, unit)
