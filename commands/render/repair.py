"""Report of ``ckpt repair-async``."""

from dataclasses import dataclass
from typing import Annotated, Literal

from ckpt.changes.fixes.repair_async import RepairPlan, Strategy

from .change import ChangeReport
from .change_keys import ChangeBody, ChangeHead, ChangeTail, ReplayKeys, WritingStepKeys
from .keys import Keys


class _Request(Keys):
    strategy: Annotated[Literal["fill", "rewind"] | None, "the one chosen; null if there is no plan"]
    needed: Annotated[bool, "there is a gap that stops a synchronous start"]


class RepairDocument(ChangeTail, ChangeBody, _Request, ChangeHead):
    """The document of ``ckpt repair-async``."""

    steps: Annotated[tuple[WritingStepKeys, ...], "in order"]
    replay: Annotated[tuple[ReplayKeys, ...], "rows that the log knows of and the next synchronous start reads again"]


@dataclass(frozen=True, slots=True)
class RepairReport(ChangeReport[RepairPlan]):
    """Repair of the gaps of asynchronous progress tracking."""

    keys = RepairDocument
    verb = "REPAIR"
    back = "the repair"

    def done(self) -> str:
        return f"REPAIRED: without asynchronous progress tracking it now {self.afterwards}"

    def planned(self) -> str:
        return f"afterwards it {self.afterwards}, without asynchronous progress tracking"

    def about_steps(self) -> str:
        return f"{self.plan.strategy}: {self.plan.why}" if self.plan.strategy else ""

    def options(self) -> str:
        return f" --strategy {self.plan.strategy}" if self.plan.strategy is Strategy.REWIND else ""
