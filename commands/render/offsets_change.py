"""Reports of ``ckpt offsets set``, ``import`` and ``export``."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from ckpt.advice import Call, call, words
from ckpt.changes.offsets.plan import OffsetsPlan
from ckpt.model import Json

from .blocks import Block, Heading, Item, show_call
from .change import ChangeReport
from .change_keys import ChangeDocument, ReplayKeys
from .document import Document
from .inspection import ReadRangeKeys
from .keys import Keys, of
from .page import offset_text, range_text
from .positions import PositionsReport


class _NewEnd(Keys):
    index: Annotated[int, of("range.index")]
    from_: Annotated[Json, "the end of the batch now", of("range.start")]
    to: Annotated[Json, "the new one", of("range.end")]


class _Skipped(Keys):
    batch: Annotated[int, "the batch that would have read them, or begun to", lambda plan: (plan.batch or 0) + 1]
    sources: Annotated[tuple[ReadRangeKeys, ...], of("skipped")]


class OffsetsDocument(ChangeDocument, record=OffsetsPlan, request="batch sources needed", result="skipped"):
    """The document of ``ckpt offsets set`` and ``ckpt offsets import``."""

    sources: Annotated[tuple[_NewEnd, ...], "those that change", of("moved")]
    needed: Annotated[bool, "the offsets are others than now"]
    replay: Annotated[
        tuple[ReplayKeys, ...],
        "what the first batch reads that was read before: of an uncommitted batch its whole range",
    ]
    skipped: Annotated[
        tuple[_Skipped, ...],
        "rows that the query then never reads: `--accept-skip`",
        lambda plan: (plan,) if plan.skipped else (),
    ]


@dataclass(frozen=True, slots=True)
class OffsetsReport(ChangeReport[OffsetsPlan]):
    """New ends of sources; ``typed`` is the call as the user typed it, whose words the next one repeats."""

    typed: Call | None = None

    keys = OffsetsDocument
    done = "SET: the query now {report.afterwards}"
    planned = "afterwards the query {report.afterwards}"
    verb = "SET"

    def nothing(self) -> str:
        return f"NOTHING TO SET: {self.plan.why}"

    def about_steps(self) -> str:
        ends = (
            f"source {end.index} ends at {offset_text(end.end_offset)} instead of {offset_text(end.start_offset)}"
            for end in (moved.range for moved in self.plan.moved)
        )
        return f"batch {self.plan.batch}: {'; '.join(ends)}" if self.plan.moved else ""

    def own_part(self) -> Iterator[Block]:
        if self.plan.skipped and self.plan.steps:
            yield Heading("Skipped", "rows that this query then never reads")
            yield from (Item(range_text(reading), 7, f"    {reading.index}  ") for reading in self.plan.skipped)

    @property
    def request(self) -> Call:
        typed = self.typed or self.plan.asked or call(self.plan.name)
        return Call(typed.name, (self.plan.root, *typed.arguments), typed.options).but(expect_batch=self.plan.batch)

    def next_if_nothing(self) -> Iterator[Block]:
        return show_call(call("offsets_show", self.plan.root), words("See where the sources stand."))


class OffsetsExportReport(PositionsReport):
    """Report of ``ckpt offsets export``: the document, or for people its content."""

    def document(self) -> Document:
        return self.record.document
