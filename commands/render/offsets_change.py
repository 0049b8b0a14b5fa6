"""What ``ckpt offsets set`` and ``ckpt offsets import`` add to the report of a change."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.changes.offsets.exchange import document_of
from ckpt.changes.offsets.plan import OffsetsPlan
from ckpt.migrate.handoff.positions import Positions
from ckpt.texts import quoted

from ..exits import Exit
from .blocks import Block, Heading, Item, Page
from .change import ChangeReport, next_command
from .document import Document, grown_range
from .offsets import offset, range_text
from .positions import PositionsReport


@dataclass(frozen=True, slots=True)
class OffsetsReport(ChangeReport[OffsetsPlan]):
    """What is planned or was done; ``typed`` is what the user asked for, which the command to be copied repeats."""

    typed: tuple[str, ...] = ()

    verb = "SET"

    def done(self) -> str:
        """The headline once it is applied."""
        return f"SET: the query now {self.afterwards}"

    def planned(self) -> str:
        """What the headline of a plan says of the time after it."""
        return f"afterwards the query {self.afterwards}"

    def nothing(self) -> str:
        """The headline where nothing is to be done."""
        return f"NOTHING TO SET: {self.plan.why}"

    def own_request(self) -> Document:
        """Whose end changes, from where to where."""
        sources = [
            {"index": one.place.index, "from": one.place.view.offset, "to": one.new.value} for one in self.plan.moved
        ]
        return {"batch": self.plan.batch, "sources": sources}

    def own_results(self) -> Document:
        """Rows that the query never reads."""
        plan, ranges = self.plan, [grown_range(one) for one in self.plan.skipped]
        return {"skipped": [{"batch": (plan.batch or 0) + 1, "sources": ranges}] if ranges else []}

    def about_steps(self) -> str:
        """The new ends."""
        ends = (
            f"source {one.place.index} ends at {offset(one.new.value)} instead of {offset(one.place.view.offset)}"
            for one in self.plan.moved
        )
        return f"batch {self.plan.batch}: {'; '.join(ends)}" if self.plan.moved else ""

    def own_part(self) -> Iterator[Block]:
        """What is left out."""
        if self.plan.skipped and self.plan.steps:
            yield Heading("Skipped", "rows that this query then never reads")
            yield from (Item(range_text(one), 7, f"    {one.index}  ") for one in self.plan.skipped)

    def options(self) -> str:
        """What was typed, and the batch that the plan is for."""
        words = (*self.typed, "--batch", str(self.plan.batch))
        return "".join(f" {word if word.startswith('--') else quoted(word)}" for word in words)

    def next_if_nothing(self) -> Iterator[Block]:
        """See where it stands."""
        yield from next_command("see where the sources stand", f"ckpt offsets show {self.path}")


@dataclass(frozen=True, slots=True)
class OffsetsExportReport:
    """What ``ckpt offsets export`` prints: the document, or for people what is in it."""

    found: Positions
    exit = Exit.OK

    def document(self) -> Document:
        """The document that is imported."""
        return document_of(self.found)

    def page(self) -> Page:
        """What ``ckpt offsets show`` says of the batch."""
        return PositionsReport(self.found).page()
