"""The parts of a forecast."""

from dataclasses import dataclass
from enum import StrEnum

from ckpt.checkpoint.sources.registry import SourceRange
from ckpt.restart.findings import Finding
from ckpt.versions import Progress, Spark


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
class Forecast:
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
