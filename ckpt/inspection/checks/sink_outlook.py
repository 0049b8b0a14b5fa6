"""Records of the next start's batches in a sink; ``checks.sink`` says how that is known."""

from dataclasses import dataclass
from enum import StrEnum

from ckpt.live.sink.records import SinkLog
from ckpt.restart.findings import Finding

Batches = tuple[int, int]
"""The first and the last of a row of batches."""


class SinkOutcome(StrEnum):
    """The outcome of the next start's batches in a sink."""

    CONTINUES = "continues"  # its first batch follows the newest one of the sink, and is written
    PASSES_OVER = "passes-over"  # its first batch runs again and is in the sink already; the next one is written
    DROPS = "drops"  # rows that the sink has not seen are dropped, because it knows their batch ids
    LACKS = "lacks"  # it is written, but batches before it are not in the sink
    WRITES_AGAIN = "writes-again"  # it is in the sink, and is written again
    UNKNOWN_QUERY = "unknown-query"  # it is written; the sink has no batch of this query
    UNKNOWN = "unknown"
    UNREACHED = "unreached"  # it was to be read, and could not be


_CERTAIN = (SinkOutcome.CONTINUES, SinkOutcome.PASSES_OVER, SinkOutcome.DROPS, SinkOutcome.LACKS)


@dataclass(frozen=True, slots=True)
class SinkOutlook:
    """A sink compared with a checkpoint."""

    log: SinkLog
    outcome: SinkOutcome
    said: str  # one sentence without a full stop
    next_batch: int | None = None  # that the next start runs first
    last_batch: int | None = None  # of this query that the sink has
    dropped: Batches | None = None  # batches with new rows that the sink will drop
    lacks: Batches | None = None  # batches that are committed and not in the sink
    query_id: str | None = None  # that ``metadata`` may have had, where it is lost
    needs_noop: bool = False  # one start into ``noop`` has to come first, or the query fails
    findings: tuple[Finding, ...] = ()

    @property
    def unread_batch(self) -> int | None:
        """The batch that runs again and that the sink passes over before a task reads it, as Delta and files do."""
        passes = self.outcome is SinkOutcome.PASSES_OVER and not self.needs_noop
        return self.next_batch if passes and not self.log.sink.computes_first else None

    @property
    def certain(self) -> bool:
        """True if the outcome is certain enough to say nothing of other sinks."""
        return self.outcome in _CERTAIN
