"""The interface of a kind of source, and how far a source went from one of its offsets to a later one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from ckpt.model import Json


class SourceType(StrEnum):
    """The kinds of source whose offsets ckpt understands."""

    KAFKA = "kafka"
    DELTA = "delta"
    ICEBERG = "iceberg"
    FILE = "file"
    RATE = "rate"
    RATE_MICRO_BATCH = "rate-micro-batch"
    UNKNOWN = "unknown"


class Unit(StrEnum):
    """The unit in which an advance is counted."""

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


Record = TypeVar("Record")


class SourceKind(ABC, Generic[Record]):
    """One kind of source: recognises its offsets, and says everything that they mean."""

    record: type[Record]

    @abstractmethod
    def decode(self, value: Json) -> Record | None:
        """Read an offset strictly; None where it does not have exactly the shape of this kind."""

    @abstractmethod
    def type_of(self, offset: Record) -> SourceType:
        """Name the source that writes such an offset."""

    @abstractmethod
    def advance(self, old: Record, new: Record) -> Advance:
        """Count how far the source went between two offsets."""

    @abstractmethod
    def to_json(self, offset: Record) -> dict[str, Json]:
        """Return the ``decoded`` object of the JSON report."""

    @abstractmethod
    def to_text(self, offset: Record) -> str:
        """Describe the offset in a few words for a page."""


def advance_number(old: int, new: int, unit: Unit) -> Advance:
    """Count from one number to the next, which may not be lower."""
    if new < old:
        return Advance(None, unit, (f"went from {old} to {new}",))
    return Advance(new - old, unit)


def whole_number(value: Json) -> int | None:
    """Return a JSON value that is a whole number; None for any other, ``true`` and ``false`` included."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
