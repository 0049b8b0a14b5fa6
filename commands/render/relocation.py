"""Report of ``ckpt relocate``."""

from collections.abc import Iterator

from ckpt.advice import Advice, Do, advise, do, words
from ckpt.advice.calls import Value
from ckpt.changes.relocate.plan import RelocationPlan
from ckpt.versions import Progress

from .blocks import Block, Heading, Next, bullets
from .change import ChangeReport, lower
from .change_keys import ChangeDocument, WritingStepKeys


class RelocationDocument(ChangeDocument, record=RelocationPlan, request="to recorded needed", result="held"):
    """The document of ``ckpt relocate``."""

    steps: tuple[WritingStepKeys, ...]
    replay: tuple[()]
    in_sinks: tuple[()]


class RelocationReport(ChangeReport[RelocationPlan]):
    """New paths of schemas."""

    keys = RelocationDocument
    done = "RELOCATED: {report.afterwards}"
    planned = "afterwards, {report.afterwards}"
    verb = "RELOCATE"
    modes = (Progress.SYNC,)  # asynchronous tracking refuses state, and only state is relocated

    @property
    def afterwards(self) -> str:
        return f"opened as {self.plan.to}, it finds its schemas and {lower(self.plan.verdict_after)}"

    def about_steps(self) -> str:
        if self.plan.to is None or not self.plan.recorded:
            return ""
        return f"operator metadata looks for its schemas under {self.plan.to}, no longer under {self.plan.recorded[0]}"

    def own_part(self) -> Iterator[Block]:
        if self.plan.held and not self.plan.warnings:
            yield Heading("Paths", "that stay unchanged")
            yield from bullets(held.meaning for held in self.plan.held)

    def options(self) -> dict[str, Value | None]:
        return {"to": self.plan.named}

    def start(self) -> Advice:
        if not self.plan.away:
            return ChangeReport.start(self)
        there = words("Move the checkpoint to {to}, and start the query there.", to=self.plan.to or "")
        return advise(do(Do.START, there, rows=self.rows))

    def next_if_nothing(self) -> Iterator[Block]:
        return iter((Next((), words("Start the query as usual.")),)) if self.plan.sound else self.show_look()
