"""Diagnosis, Finding and Forecast. Which diagnoses there are, ``ckpt.restart.diagnoses`` declares."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial

from ckpt.advice import Advice, Words
from ckpt.checkpoint.sources.registry import SourceRange
from ckpt.restart.book import BOOK
from ckpt.values import Record
from ckpt.versions import Progress, Spark


class Severity(StrEnum):
    """How bad a finding is for the query. Only warnings and errors make ``ckpt inspect`` exit with 1."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"  # stops a restart, loses data, or makes state unreadable

    @property
    def rank(self) -> int:
        """0 for a note, 2 for an error: for sorting and comparing."""
        return list(Severity).index(self)


class Asked(StrEnum):
    """The starts that the question was about: ``asked`` of ``inspect``."""

    SYNC = "sync"
    ASYNC = "async"
    REALTIME = "realtime"
    CONTINUOUS = "continuous"
    BOTH = "both"

    @property
    def in_micro_batches(self) -> bool:
        """False for a mode with a trigger of its own."""
        return self is Asked.BOTH or Progress(self.value).in_micro_batches


@dataclass(frozen=True, slots=True)
class Diagnosis(Record):
    """One kind of trouble, described once."""

    code: str
    name: str
    severity: Severity
    when_asked: tuple[tuple[Asked, Severity], ...] = ()  # where the severity depends on the progress mode
    texts: tuple[Words, Advice | None] | None = None  # of one that is not in ``words.toml``

    @property
    def meaning(self) -> Words:
        """The meaning of the diagnosis, for any checkpoint."""
        return (self.texts or _read_texts(self.code))[0]

    @property
    def advice(self) -> Advice | None:
        """The advice for any checkpoint; None if nothing has to be done."""
        return (self.texts or _read_texts(self.code))[1]

    @property
    def cause(self) -> Words | None:
        """The words of it in a verdict; None where those of a finding say it."""
        return None if self.texts else _read_texts(self.code)[2]

    @property
    def remedy(self) -> str | None:
        """The advice as text."""
        return None if self.advice is None else str(self.advice)

    def severity_for(self, progress: Asked) -> Severity:
        """How severe a finding is to somebody who asked about this progress mode."""
        return dict(self.when_asked).get(progress, self.severity)


def _declare(severity: Severity, title: str, when_asked: tuple[tuple[Asked, Severity], ...] = ()) -> Diagnosis:
    """Declare a diagnosis; ``title`` is its code and its name, such as ``CKPT101 unreadable-log-file``."""
    code, name = title.split()
    return Diagnosis(code, name, severity, when_asked)


note = partial(_declare, Severity.NOTE)
warning = partial(_declare, Severity.WARNING)
error = partial(_declare, Severity.ERROR)


@dataclass(frozen=True, slots=True)
class Finding(Record):
    """One diagnosis at one place of one checkpoint."""

    diagnosis: Diagnosis
    path: str  # relative to the checkpoint; "" is the checkpoint itself
    detail: str  # what was seen here, one line
    advice: Advice | None = None  # where this place knows better than the diagnosis
    minor: bool = False  # a note, whatever the diagnosis: about batches further back, or what is usual
    others: tuple[str, ...] = ()  # the files that have to come back with this one

    @property
    def remedy(self) -> str | None:
        """The advice as text."""
        return None if self.advice is None else str(self.advice)

    @property
    def advised(self) -> Advice | None:
        """The advice on it, of this place or else of its diagnosis, with its blanks; None if nothing has to be done."""
        return self.diagnosis.advice if self.advice is None else self.advice

    @property
    def key(self) -> tuple[str, str]:
        """Code and path, or the facts where it is about no file: a finding is reported once for each."""
        return self.diagnosis.code, self.path or self.detail


@cache
def _read_texts(code: str) -> tuple[Words, Advice | None, Words | None]:
    entry = BOOK.content["findings"][code]
    advice = BOOK.make_advice(entry["advice"], {}) if "advice" in entry else None
    cause = BOOK.make_words(entry["cause"], {}) if "cause" in entry else None
    return BOOK.make_words(entry["meaning"], {}), advice, cause


def worst(severities: Iterable[Severity]) -> Severity | None:
    """The highest of several severities, or None where there is none."""
    return max(severities, key=lambda severity: severity.rank, default=None)


class Outcome(StrEnum):
    """How the next start ends, as far as its first batch."""

    RESUMES = "resumes"
    STARTS_FRESH = "starts-fresh"
    FAILS_AT_START = "fails-at-start"  # before any batch is executed
    FAILS_IN_BATCH = "fails-in-batch"  # while a batch is executed
    FAILS_AT_COMMIT = "fails-at-commit"  # after a batch was executed, and its rows were written
    REFUSED = "refused"  # Spark does not offer this mode for this query
    UNKNOWN = "unknown"

    @property
    def runs(self) -> bool:
        """True if the query is running after its first batch."""
        return self in (Outcome.RESUMES, Outcome.STARTS_FRESH)


@dataclass(frozen=True, slots=True)
class Forecast(Record):
    """The next start of one Spark version in one progress mode."""

    spark: Spark
    progress: Progress
    outcome: Outcome
    batch_id: int | None = None  # of the batch that is run, or begun, first
    reexecutes: bool | None = None  # whether that batch had been planned before
    sources: tuple[SourceRange, ...] = ()
    error: str | None = None  # words that Spark's own message contains
    never_run: tuple[int, ...] = ()  # planned batches that no start will run or replay
    lost: tuple[int, ...] = ()  # those of them that had rows, or may have had
    because: tuple[Finding, ...] = ()
    if_lenient: int | None = None  # of an unknown outcome: with failOnDataLoss=false it runs this batch, else it fails
