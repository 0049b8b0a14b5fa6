"""The record of a rehearsal: the next batches of a query, run on a copy of its checkpoint (``ckpt.rehearse``)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ckpt.advice import Words
from ckpt.inspection.explain.explain import Explanation
from ckpt.inspection.preflight import Readiness
from ckpt.values import Record, Value

if TYPE_CHECKING:
    from ckpt.state.native.diff import UnitDiff


class RehearsalEnd(StrEnum):
    """The reason why a rehearsed query ended."""

    ENOUGH = "enough"  # it has run as many batches as were asked for
    NO_MORE_ROWS = "no-more-rows"  # it has read all that its sources had when it started
    FAILED = "failed"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class RehearsedBatch(Record):
    """A batch of a rehearsal, by Spark's own progress report."""

    batch: int
    rows_in: int  # of all sources
    rows_out: int | None  # None: Spark did not count them
    ms: int  # the whole trigger: planning, reading, state and logs


@dataclass(frozen=True, slots=True)
class RehearsedQuery(Record):
    """One query of a rehearsal."""

    end: RehearsalEnd
    batches: tuple[RehearsedBatch, ...]
    evolved: bool = False  # its copy was made by `ckpt.evolve`, and differs from the checkpoint; False: a plain copy
    refused: Words | None = None  # why `ckpt.evolve` refused, so that the query ran on a plain copy
    knows_less: tuple[Words, ...] = ()  # parts that know less than if the query had run from the beginning, and why
    error: str | None = None  # Spark's words, if it failed
    explanation: Explanation | None = None  # of that error
    state: "tuple[UnitDiff, ...]" = ()  # before the first and after the last of the batches, as `ckpt.state_diff`
    state_unknown: str | None = None  # why the two states were not compared
    preflight: Readiness | None = None  # of a plain copy, and where no batch of new rows ran
    again: int | None = None  # its sources had no new rows: it has read those of this batch once more

    @property
    def fails(self) -> bool:
        """Spark has refused the query, or a batch has failed."""
        return self.end is RehearsalEnd.FAILED


@dataclass(frozen=True, slots=True)
class Rehearsal(Value):
    """A query that was tried on a copy of a checkpoint, beside the old query where that was given too."""

    checkpoint: str
    spark: str  # the version that ran it
    new: RehearsedQuery
    old: RehearsedQuery | None

    @property
    def starts(self) -> bool:
        """A batch has run, and none has failed; on a copy that `ckpt.evolve` has made, if `new.evolved`.

        Whether its results are right is another question: see `new.preflight` and `new.refused`.
        """
        return bool(self.new.batches) and not self.new.fails
