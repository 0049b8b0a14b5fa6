"""What the next start makes of a source that was asked."""

from dataclasses import dataclass
from enum import StrEnum

from ckpt.findings import Finding
from ckpt.live.records import LiveSource
from ckpt.restart.forecast import Outcome
from ckpt.restart.kafka_source import PartOutlook


class SourceOutcome(StrEnum):
    """What the next start makes of a source that was asked."""

    CONTINUES = "continues"
    FAILS = "fails"  # also one that waits first
    SKIPS = "skips"  # it runs, and rows are never read
    UNKNOWN = "unknown"
    UNREACHED = "unreached"  # it was to be asked, and could not be


@dataclass(frozen=True, slots=True)
class Stop:
    """How a source ends the next start in its first batch."""

    outcome: Outcome
    error: str | None  # words that Spark's own message contains
    because: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class SourceOutlook:
    """One source that was asked about, and the next start."""

    live: LiveSource
    outcome: SourceOutcome = SourceOutcome.UNKNOWN
    said: str = ""  # one sentence without a full stop
    parts: tuple[PartOutlook, ...] = ()  # of Kafka
    findings: tuple[Finding, ...] = ()
    waiting: int | None = None  # offsets or files that wait to be read; None where that is not known
    rows: int | None = None  # the rows in these files, if that is known
    lost: int | None = (
        None  # of Kafka, offsets that a start with ``failOnDataLoss=false`` never reads; files that are gone
    )
    stop: Stop | None = None


def plural(count: int, word: str) -> str:
    """The word for so many."""
    return word if count == 1 else f"{word}s"
