"""What a repair would do, as a value."""

from dataclasses import dataclass
from enum import StrEnum

from ckpt.change.steps import Step
from ckpt.inspection import Inspection
from ckpt.restart.forecast import Forecast, SourceRange
from ckpt.versions import Progress


class Strategy(StrEnum):
    """How a synchronous start gets the two consecutive batches that it looks for."""

    FILL = "fill"  # write the missing one
    REWIND = "rewind"  # go back to the newest two there are
    AUTO = "auto"  # whichever reads less again


@dataclass(frozen=True, slots=True)
class Replay:
    """Rows that the next synchronous start reads though they may be in the sink already."""

    batch: int  # that reads them, first
    sources: tuple[SourceRange, ...]  # a range without an end goes on to where nobody knows
    finished: bool  # rows of other batches in the log, which are finished or may be, are among them


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done about one checkpoint, and what it leads to; ``steps`` is empty where nothing is to be done."""

    inspection: Inspection  # as it is
    needed: bool  # there is a gap that stops a synchronous start
    strategy: Strategy | None = None  # fill or rewind; None where there is no plan
    why: str = ""  # one line: why this strategy, why nothing is to be done
    steps: tuple[Step, ...] = ()
    reads_after: int | None = None  # the batch at whose end the next synchronous start begins to read
    after: tuple[Forecast, ...] = ()  # of the versions and modes of ``inspection``
    replay: tuple[Replay, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: str | None = None  # why there is no plan, though there is a gap

    @property
    def before(self) -> tuple[Forecast, ...]:
        """The forecasts as it is."""
        return self.inspection.forecasts

    @property
    def starts_after(self) -> tuple[Forecast, ...]:
        """What follows: synchronous starts with the versions that somebody may try."""
        tried = {f.spark for f in self.inspection.counted if f.progress is Progress.SYNC}
        return tuple(f for f in self.after if f.progress is Progress.SYNC and f.spark in tried)

    @property
    def must_accept_replay(self) -> bool:
        """Whether rows of finished batches are read again, which somebody has to agree to."""
        return any(one.finished for one in self.replay)
