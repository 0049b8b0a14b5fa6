"""What ``ckpt prune`` adds to the report of a change."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.changes.prune.plan import PrunePlan
from ckpt.changes.prune.unneeded import Pruned, PruneReason
from ckpt.changes.steps import FileContent, Step, sidecar

from .blocks import Block, Heading, Table
from .change import ChangeReport
from .document import Document
from .text import plural, size

_WORDS = {
    PruneReason.OLD_VERSION: "state of versions that no start needs",
    PruneReason.KILLED_TASK: "state that a task wrote and no commit names",
    PruneReason.ORPHAN: "SST files that no snapshot names",
    PruneReason.TEMPORARY: "temporary files of interrupted writes",
}


@dataclass(frozen=True, slots=True)
class PruneReport(ChangeReport[PrunePlan]):
    """What ``ckpt prune`` plans or did; ``asked`` is how many batches the user wants to keep."""

    asked: int | None = None

    verb = "PRUNE"
    stop = "end the driver"
    back = "the files"

    def done(self) -> str:
        """The headline once it is applied."""
        return f"PRUNED {self._total()}: {self.afterwards}, as before"

    def planned(self) -> str:
        """What the headline of a plan says of the time after it."""
        return f"{self._total()} can go; afterwards it {self.afterwards}, as now"

    def _total(self) -> str:
        return f"{plural(len(self.plan.steps), 'file')}, {size(sum(map(_size, self.plan.steps)))}"

    def own_request(self) -> Document:
        """How much is kept."""
        return {"keep_batches": self.plan.keep_batches, "oldest_version": self.plan.oldest_version}

    def own_results(self) -> Document:
        """What goes, by kind."""
        return {
            "bytes": sum(map(_size, self.plan.steps)),
            "pruned": [
                {"kind": one.kind, "files": len(steps), "bytes": sum(map(_size, steps))}
                for one in self.plan.pruned
                for steps in [self._steps_of(one)]
            ],
        }

    def _steps_of(self, one: Pruned) -> list[Step]:
        wanted = {*one.paths, *map(sidecar, one.paths)}
        return [step for step in self.plan.steps if step.path in wanted]

    def about_steps(self) -> str:
        """Why they go; after an undo only the files say."""
        return self.plan.why

    def own_part(self) -> Iterator[Block]:
        """How much there is of each kind."""
        if self.plan.pruned:
            rows = ((one, self._steps_of(one)) for one in self.plan.pruned)
            yield Heading("Space", "the backup takes as much, until you delete it")
            yield Table(
                tuple(
                    (f"  {size(sum(map(_size, steps)))}", plural(len(steps), "file"), _WORDS[one.kind])
                    for one, steps in rows
                )
            )

    def options(self) -> str:
        """How many batches are kept, where that was asked for."""
        return "" if self.asked is None else f" --keep-batches {self.asked}"

    def start(self) -> str:
        """What to do once it is applied."""
        return "start the query; once it has run, delete the backup"


def _size(step: Step) -> int:
    content = FileContent.of(step.before)
    return content.size if content else 0
