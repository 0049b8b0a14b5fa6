"""Outlooks of the next start for sources that were asked."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ckpt.advice import Advice
from ckpt.live.records import LiveSource, Part, PartitionNow
from ckpt.restart.findings import Diagnosis, Finding, Outcome

NOT_IN_LOG = "the log does not show where the next batch starts"
"""Said of a source of which nothing can be judged."""


class Fate(StrEnum):
    """The outcome of the next start for a partition with ``failOnDataLoss``, worst last."""

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
        """True if a start fails because of the partition."""
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
    def topic(self) -> str:
        """Topic of the partition."""
        return self.part[0]

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


class SourceOutcome(StrEnum):
    """The outcome of the next start for a source that was asked."""

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
    lost: int | None = None  # files that are gone; of Kafka, offsets that ``failOnDataLoss=false`` never reads
    stop: Stop | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something in a table that a start comes to."""

    diagnosis: Diagnosis
    detail: str
    advice: Advice | None
    outcome: Outcome = Outcome.FAILS_AT_START
    error: str | None = None  # words that Spark's own message contains
    later: bool = False  # a batch runs before it
    runs: bool = False  # nothing fails
    skips: bool = False  # rows are left out


def judge_source(source: LiveSource, troubles: Sequence[Trouble], sentence: str) -> SourceOutlook:
    """Foresee what the next start makes of a source by its troubles, in the order in which it comes to them."""
    path = source.folder
    findings = tuple(Finding(trouble.diagnosis, path, trouble.detail, trouble.advice) for trouble in troubles)
    failing = [pair for pair in zip(troubles, findings, strict=True) if not pair[0].runs]
    stops = (Stop(trouble.outcome, trouble.error, (finding,)) for trouble, finding in failing if not trouble.later)
    skips = any(trouble.skips for trouble in troubles)
    outcome = SourceOutcome.FAILS if failing else SourceOutcome.SKIPS if skips else SourceOutcome.CONTINUES
    return SourceOutlook(source, outcome, sentence, findings=findings, stop=next(stops, None))


def move_end(index: int, offset: object) -> dict[str, Any]:
    """Give the parts of advice that moves the end of the latest batch of a source to an offset."""
    return {"source": index, "to": json.dumps(offset, separators=(",", ":"))}
