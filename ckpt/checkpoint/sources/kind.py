"""The interface of a kind of source, and how far a source went from one of its offsets to a later one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from ckpt.advice import Words
from ckpt.checkpoint.sources.book import BOOK, say
from ckpt.checkpoint.sources.ends import CannotEndThere, LatestEnd, MovedEnd, RequestedEnd, cut_json
from ckpt.checkpoint.sources.starts import ReaderStart, StartFacts, StartingPoint
from ckpt.errors import UsageError
from ckpt.formats.extract import whole_number as whole_number  # for plugins too
from ckpt.model import Json

LONG = 2**63 - 1  # the largest number that Spark keeps in a ``Long``


class SourceType(StrEnum):
    """The kinds of source whose offsets ckpt understands."""

    KAFKA = "kafka"
    DELTA = "delta"
    ICEBERG = "iceberg"
    FILE = "file"
    RATE = "rate"
    RATE_MICRO_BATCH = "rate-micro-batch"
    CLOUD_FILES = "cloudFiles"  # Auto Loader; from here on known by the shape of their offsets alone
    KINESIS = "kinesis"
    PUB_SUB = "pubsub"
    PULSAR = "pulsar"
    PAIMON = "paimon"
    HUDI = "hudi"
    COSMOS = "cosmos.oltp.changeFeed"
    MONGODB = "mongodb"
    SEQUENTIAL_UNION = "sequential-union"
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
    unit: str  # a Unit, or the word of a plugin, in the plural
    went_back: tuple[str, ...] = ()  # parts that are lower than before, or gone, one line each
    replaced: bool = False  # a Delta table with another id
    switched: tuple[str, str] | None = None  # Kafka topics that are gone, and those that came instead
    new_partitions: int = 0  # of Kafka: where Spark began to read them is not in the log
    recreated: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Kafka topics whose offsets went back, and the partitions that they have afterwards: a topic's offsets only grow,
    and it never loses a partition, so another topic has the name now, or rows were taken from its end."""


Record = TypeVar("Record")


class SourceKind(ABC, Generic[Record]):
    """One kind of source: recognises its offsets, and says everything that they mean."""

    name: str  # a SourceType, or a plugin's own: the name of the format in Spark
    record: type[Record]
    settable: bool = False  # `ckpt offsets set` can give it another end
    logs_start: bool = False  # batch 0 begins where ``sources/<k>/0`` says
    like_event_hubs: bool = False  # offsets of Azure Event Hubs look the same
    at_path: bool = False  # a reader needs the option ``path``
    reads_files: bool = False  # a reader needs their format and schema as well, and may leave out single files
    _not_an_offset: str = "not_an_offset"  # the text that refuses a typed end

    @abstractmethod
    def decode(self, value: Json) -> Record | None:
        """Read an offset strictly; None where it does not have exactly the shape of this kind."""

    def ignore_more(self, value: dict[str, Json]) -> Record | None:
        """Read an offset with members that no offset of this kind has; None where the source does not ignore them."""
        return None

    def type_of(self, offset: Record) -> str:
        """Name the source that writes such an offset."""
        return self.name

    @abstractmethod
    def advance(self, old: Record, new: Record) -> Advance | None:
        """Count how far the source went between two offsets; None where that is not known."""

    def count_rows(self, old: Record | None, new: Record) -> int | None:
        """Count the rows between two offsets where that is certain; without ``old``, since the source's beginning."""
        return None

    @abstractmethod
    def to_json(self, offset: Record) -> dict[str, Json]:
        """Return the ``decoded`` object of the JSON report."""

    @abstractmethod
    def to_text(self, offset: Record) -> str:
        """Describe the offset in a few words for a page."""

    def find_topics(self, offset: Record) -> frozenset[str]:
        """Find the topics that an offset names, where the source has topics."""
        return frozenset()

    def list_reader_options(self, offset: Record) -> dict[str, str]:
        """List options that a reader needs besides where it begins; empty are those that the offset does not say."""
        return {}

    def start_after(self, offset: Record, facts: StartFacts) -> ReaderStart:
        """Say how a new query begins to read exactly after an offset."""
        return ReaderStart(
            StartingPoint.REFUSED, refused=f"ckpt knows no reader option of {self.name} that starts there"
        )

    def parse_end(self, value: Json, what: str | Words) -> RequestedEnd:
        """Check an offset that somebody typed.

        Raises UsageError, which begins with ``what``, where it is no offset of this kind of source.
        """
        offset = self.decode(value)
        if offset is None or not self._can_end_at(offset, value):
            raise UsageError(BOOK.text(self._not_an_offset, what=what, kind=self.name, value=cut_json(value)))
        return RequestedEnd(value)

    def _can_end_at(self, offset: Record, value: Json) -> bool:
        return True

    def shift_end(self, offset: Record, shifts: Sequence[str]) -> RequestedEnd:
        """Move parts of an offset as somebody typed it, such as ``topic/partition=+n``. Raises UsageError."""
        raise UsageError(BOOK.text("shift_is_for_kafka"))

    def move_end(self, latest: LatestEnd[Record], new: RequestedEnd) -> MovedEnd:
        """Say what another end of the latest batch leads to. Raises CannotEndThere."""
        raise CannotEndThere(say("end_not_known", kind=self.name))


def advance_number(old: int, new: int, unit: str) -> Advance:
    """Count from one number to the next, which may not be lower."""
    if new < old:
        return Advance(None, unit, (f"went from {old} to {new}",))
    return Advance(new - old, unit)
