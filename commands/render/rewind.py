"""What ``ckpt rewind`` adds to the report of a change."""

from dataclasses import dataclass

from ckpt.changes.rewind.plan import Replayed, RewindPlan
from ckpt.changes.steps import FileContent

from .change import ChangeReport, start_anew
from .document import Document
from .text import plural, size


@dataclass(frozen=True, slots=True)
class RewindReport(ChangeReport[RewindPlan]):
    """What ``ckpt rewind`` plans or did."""

    verb = "REWIND"
    stop = "end the driver"
    back = "the rewind"

    def done(self) -> str:
        """The headline once it is applied."""
        return f"REWOUND to batch {self.plan.to_batch}: {self.afterwards}"

    def planned(self) -> str:
        """What the headline of a plan says of the time after it."""
        return f"afterwards the query stands as after batch {self.plan.to_batch}: {self.afterwards}"

    def own_request(self) -> Document:
        """Which batch, and what becomes of the one after it."""
        return {"to_batch": self.plan.to_batch, "replayed": self.plan.replayed}

    def own_results(self) -> Document:
        """The batches that can be gone back to."""
        return {"possible": [list(span) for span in self.plan.possible]}

    def about_steps(self) -> str:
        """What goes, and how much of it."""
        if self.plan.to_batch is None:
            return ""
        gone = [content.size for step in self.plan.steps if (content := FileContent.of(step.before)) is not None]
        return f"{plural(len(gone), 'file')}, {size(sum(gone))}: {self.plan.why}"

    def options(self) -> str:
        """All that was named."""
        return f" --to-batch {self.plan.to_batch}" + " --replay new" * (self.plan.replayed is Replayed.NEW)

    def start(self) -> str:
        """What to do once it is applied."""
        return start_anew(self.plan)
