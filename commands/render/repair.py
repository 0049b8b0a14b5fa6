"""Report of ``ckpt repair-async``."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from ckpt.changes.fixes.repair_async import RepairPlan, Strategy

from .blocks import Block
from .change import ChangeReport, show_command
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

    def next_if_refused(self) -> Iterator[Block]:
        return show_command("see whether another fix helps, and what each costs", f"ckpt repair {self.path}")
