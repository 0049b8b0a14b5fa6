"""What ``ckpt relocate`` adds to the report of a change."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.changes.relocate.plan import RelocationPlan
from ckpt.texts import quoted_path
from ckpt.versions import Progress

from .blocks import Block, Heading, Item, bullets
from .change import ChangeReport, next_command
from .document import Document
from .text import lower


@dataclass(frozen=True, slots=True)
class RelocationReport(ChangeReport[RelocationPlan]):
    """What ``ckpt relocate`` plans or did; ``to`` is what the user typed, which the command to be copied repeats."""

    to: str | None = None

    modes = (Progress.SYNC,)  # asynchronous tracking refuses state, and only state is relocated

    def done(self) -> str:
        """The headline once it is applied."""
        return f"RELOCATED: {self.afterwards}"

    def planned(self) -> str:
        """What the headline of a plan says of the time after it."""
        return f"afterwards, {self.afterwards}"

    @property
    def afterwards(self) -> str:
        """That its schemas are found, and what the next start does."""
        return f"opened as {self.plan.to}, it finds its schemas and {lower(self.plan.verdict_after)}"

    def nothing(self) -> str:
        """The headline where nothing is to be done."""
        other = "" if self.plan.sound else ", but there is another problem"
        return f"NOTHING TO RELOCATE{other}: {self.plan.why}"

    def own_request(self) -> Document:
        """Where to, and from where."""
        return {"to": self.plan.to, "recorded": list(self.plan.recorded)}

    def own_results(self) -> Document:
        """Other absolute paths."""
        held = [{"holder": one.holder, "folder": one.folder, "example": one.example} for one in self.plan.held]
        return {"held": held}

    def about_steps(self) -> str:
        """What the steps replace; after an undo only the files say, and without recorded paths nothing is replaced."""
        if self.plan.to is None or not self.plan.recorded:
            return ""
        return f"operator metadata looks for its schemas under {self.plan.to}, no longer under {self.plan.recorded[0]}"

    def own_part(self) -> Iterator[Block]:
        """Other absolute paths, where no warning of a plan has named them."""
        if self.plan.held and not self.plan.warnings:
            yield Heading("Paths", "that stay unchanged")
            yield from bullets(one.meaning for one in self.plan.held)

    def options(self) -> str:
        """The place that was named."""
        return "" if self.to is None else f" --to {quoted_path(self.to)}"

    def start(self) -> str:
        """Where to start the query."""
        there = f"move the checkpoint to {self.plan.to}, and start the query there"
        return there if self.plan.away else "start the query"

    def next_if_nothing(self) -> Iterator[Block]:
        """Start it, unless something else is wrong."""
        if self.plan.sound:
            yield Item("start the query as usual", 10, "Next")
        else:
            yield from next_command("see what is there now", f"ckpt inspect {self.path}")
