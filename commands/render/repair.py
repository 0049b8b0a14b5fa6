"""What ``ckpt repair-async`` adds to the report of a change."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.repair import RepairPlan, Strategy
from ckpt.verdict import verdict

from .blocks import Block
from .change import ChangeReport
from .document import Document
from .findings import next_advice


@dataclass(frozen=True, slots=True)
class RepairReport(ChangeReport[RepairPlan]):
    """What ``ckpt repair-async`` plans or did."""

    name = back = "the repair"

    def done(self) -> str:
        """The headline once it is applied."""
        return f"REPAIRED: without asynchronous progress tracking it now {self._afterwards}"

    def planned(self) -> str:
        """What the headline of a plan says of the time after it."""
        return f"afterwards it {self._afterwards}, without asynchronous progress tracking"

    @property
    def _afterwards(self) -> str:
        starts = self.plan.starts_after
        text = verdict(starts) if starts else ""
        return text[:1].lower() + text[1:]

    def nothing(self) -> str:
        """The headline where nothing is to be done."""
        return f"{'NOTHING TO REPAIR' if self.plan.sound else 'OTHER PROBLEMS'}: {self.plan.why}"

    def own_request(self) -> Document:
        """The strategy."""
        return {"strategy": self.plan.strategy}

    def about_steps(self) -> str:
        """Which strategy was chosen, and why."""
        return f"{self.plan.strategy}: {self.plan.why}" if self.plan.strategy else ""

    def options(self) -> str:
        """The strategy where the default could take another one, and what has to be accepted."""
        chosen = f" --strategy {self.plan.strategy}" if self.plan.strategy is Strategy.REWIND else ""
        return chosen + (" --accept-replay" if any(one.finished for one in self.plan.replay or ()) else "")

    def next_if_nothing(self) -> Iterator[Block]:
        """What ``ckpt inspect`` says."""
        return next_advice(self.plan.inspection)
