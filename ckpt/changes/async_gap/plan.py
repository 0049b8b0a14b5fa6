"""What a repair would do, as a value."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from ckpt.changes.plan import ChangePlan
from ckpt.restart.forecast import Forecast
from ckpt.versions import Progress


class Strategy(StrEnum):
    """How a synchronous start gets the two consecutive batches that it looks for."""

    FILL = "fill"  # write the missing one
    REWIND = "rewind"  # go back to the newest two there are
    AUTO = "auto"  # whichever reads less again


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlan(ChangePlan):
    """A repair of a gap that stops a synchronous start."""

    command: ClassVar[str] = "repair-async"

    strategy: Strategy | None = None  # fill or rewind; None where there is no plan
    reads_after: int | None = None  # the batch at whose end the next synchronous start begins to read

    @property
    def starts_after(self) -> tuple[Forecast, ...]:
        """What follows: synchronous starts with the versions that somebody may try."""
        tried = {f.spark for f in self.inspection.counted if f.progress is Progress.SYNC}
        return tuple(f for f in self.after if f.progress is Progress.SYNC and f.spark in tried)
