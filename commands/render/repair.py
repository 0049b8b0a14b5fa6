"""What ``ckpt repair-async`` adds to the report of a change."""

from dataclasses import dataclass

from ckpt.changes.fixes.repair_async import RepairPlan, Strategy

from .change import ChangeReport
from .document import Document


@dataclass(frozen=True, slots=True)
class RepairReport(ChangeReport[RepairPlan]):
    """What ``ckpt repair-async`` plans or did."""

    verb = "REPAIR"
    back = "the repair"

    def done(self) -> str:
        """The headline once it is applied."""
        return f"REPAIRED: without asynchronous progress tracking it now {self.afterwards}"

    def planned(self) -> str:
        """What the headline of a plan says of the time after it."""
        return f"afterwards it {self.afterwards}, without asynchronous progress tracking"

    def own_request(self) -> Document:
        """The strategy."""
        return {"strategy": self.plan.strategy}

    def about_steps(self) -> str:
        """Which strategy was chosen, and why."""
        return f"{self.plan.strategy}: {self.plan.why}" if self.plan.strategy else ""

    def options(self) -> str:
        """The strategy where the default could take another one."""
        return f" --strategy {self.plan.strategy}" if self.plan.strategy is Strategy.REWIND else ""
