"""Reports of the commands of ``ckpt offsets``: positions of sources, new ends of a batch, consumer groups."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from ckpt.advice import NO_ROWS, Call, Do, call, do, words
from ckpt.changes.offsets.commit import CommittedGroup, OffsetsCommit
from ckpt.changes.offsets.exchange import Position, Positions
from ckpt.changes.offsets.plan import OffsetsPlan
from ckpt.inspection.scan.scan import ScannedRoot
from ckpt.model import Json
from ckpt.texts import instant, plural

from . import blocks
from .change import ChangeReport
from .change_keys import ChangeDocument
from .document import Document, DocumentKeys
from .inspection import CheckpointKeys, ReadRangeKeys, SourceReadKeys
from .keys import Keys, Sentences, of
from .page import label_source, offset_text, range_text, show_ranges, show_title
from .reports import Report

_SHOWN = 20  # how many sources are named


class _Position(SourceReadKeys, record=Position, keys="rows"):
    to: Annotated[Json, of("view.offset")]
    reader_option: Annotated[Mapping[str, str], of("options")]
    conditions: Sentences
    no_option: Annotated[str | None, of("refused")]


class PositionsDocument(DocumentKeys, record=Positions, keys="checkpoint batch committed sources warnings refused"):
    """The document of ``ckpt offsets show``."""

    checkpoint: Annotated[CheckpointKeys, of("inspection")]
    sources: tuple[_Position, ...]


class PositionsReport(Report[Positions]):
    """Report of ``ckpt offsets show``."""

    keys = PositionsDocument

    def page(self) -> blocks.Page:
        parts = (_show_headline, _show_sources, lambda shown: blocks.show_warnings(shown.warnings), _show_next)
        return blocks.page_of(show_title(self.record.inspection), *(part(self.record) for part in parts))


def _show_headline(positions: Positions) -> Iterator[blocks.Block]:
    if positions.refused:
        yield blocks.Headline(f"NOTHING TO SHOW: {positions.refused}", blocks.Tone.ERROR)
    else:
        done = "committed" if positions.committed else "not committed"
        yield blocks.Headline(f"BATCH {positions.batch}, {done}", blocks.Tone.PLAIN)


def _show_sources(positions: Positions) -> Iterator[blocks.Block]:
    if not positions.sources:
        return
    yield blocks.Heading("Sources", "what the batch reads, and reader options that start where the batch ends")
    for source in positions.sources[:_SHOWN]:
        end = offset_text(source.view.record)
        text = range_text(source.range) if source.begins_known else f"from an unknown offset to {end}"
        yield blocks.Item(text, 24, f"  {label_source(source.view)}")
        for key, value in source.options.items():
            yield blocks.Item(value, 7, f"     {key} = ")
        yield from (
            blocks.Item(text, 7, "     - ") for text in ([source.refused] if source.refused else source.conditions)
        )
    yield from blocks.more(len(positions.sources) - _SHOWN)


def _show_next(positions: Positions) -> Iterator[blocks.Block]:
    inspection, path = positions.inspection, positions.inspection.checkpoint.uri
    here = call("offsets_show", path).but(batch=positions.batch)
    led_here = (rated.advice for rated in inspection.troubles if rated.advice and here in rated.advice.calls)
    begin_anew = all(source.begins_anew for source in positions.sources)
    if advice := next(led_here, None):
        yield blocks.Next(advice.without({here}).steps)
    elif positions.refused or not (inspection.sound and positions.committed and begin_anew):
        yield from blocks.show_call(call("inspect", path), words("See what the next start does."))
    else:
        code = call("handoff", path).but(batch=positions.batch, snippet="python")
        yield from blocks.show_call(code, words("Get the code of a new query that continues after this batch."))


class _NewEnd(Keys):
    index: Annotated[int, of("range.index")]
    from_: Annotated[Json, of("range.start")]
    to: Annotated[Json, of("range.end")]


class _Skipped(Keys):
    batch: Annotated[int, lambda plan: (plan.batch or 0) + 1]
    sources: Annotated[tuple[ReadRangeKeys, ...], of("skipped")]


class OffsetsDocument(ChangeDocument, record=OffsetsPlan, request="batch sources needed", result="skipped"):
    """The document of ``ckpt offsets set`` and ``ckpt offsets import``."""

    sources: Annotated[tuple[_NewEnd, ...], of("moved")]
    skipped: Annotated[tuple[_Skipped, ...], lambda plan: (plan,) if plan.skipped else ()]


@dataclass(frozen=True, slots=True)
class OffsetsReport(ChangeReport[OffsetsPlan]):
    """New ends of sources; ``typed`` is the call as the user typed it, whose words the next one repeats."""

    typed: Call | None = None

    keys = OffsetsDocument
    done = "SET: the query now {report.afterwards}"
    planned = "afterwards the query {report.afterwards}"
    verb = "SET"

    def about_steps(self) -> str:
        ends = (
            f"source {end.index} ends at {offset_text(end.end_offset)} instead of {offset_text(end.start_offset)}"
            for end in (moved.range for moved in self.plan.moved)
        )
        return f"batch {self.plan.batch}: {'; '.join(ends)}" if self.plan.moved else ""

    def own_part(self) -> Iterator[blocks.Block]:
        if self.plan.skipped and self.plan.steps:
            yield blocks.Heading("Skipped", "rows that this query will never read")
            yield from show_ranges(self.plan.skipped)

    @property
    def request(self) -> Call:
        typed = self.typed or self.plan.asked or call(self.plan.name)
        return Call(typed.name, (self.plan.root, *typed.arguments), typed.options).but(expect_batch=self.plan.batch)

    def next_if_nothing(self) -> Iterator[blocks.Block]:
        return blocks.show_call(call("offsets_show", self.plan.root), words("See the positions of the sources."))


class OffsetsExportReport(PositionsReport):
    """Report of ``ckpt offsets export``: the document, or for people its content."""

    def document(self) -> Document:
        return self.record.document


class OffsetsCommitDocument(DocumentKeys):
    """The document of ``ckpt offsets commit``."""

    roots: Annotated[tuple[ScannedRoot, ...], of("scan.roots")]
    groups: tuple[CommittedGroup, ...]
    problems: tuple[str, ...]


class OffsetsCommitReport(Report[OffsetsCommit]):
    """Groups that were committed to, and those that were refused."""

    keys = OffsetsCommitDocument

    def page(self) -> blocks.Page:
        return blocks.page_of(self._show_groups(), self._show_problems(), self._show_next())

    def _show_groups(self) -> Iterator[blocks.Block]:
        committed = [group for group in self.record.groups if group.refused is None]
        scan = self.record.scan
        yield blocks.Title(
            ", ".join(root.uri for root in scan.roots),
            (plural(len(scan.checkpoints), "checkpoint"), instant(scan.ended_ms)),
        )
        yield blocks.Headline(
            f"COMMITTED to {plural(len(committed), 'consumer group')}" if committed else "NOTHING COMMITTED",
            blocks.Tone.GOOD if committed and not self.record.problems else blocks.Tone.WARNING,
        )
        if committed:
            rows = tuple((group.group, ", ".join(sorted(group.positions)), group.path) for group in committed)
            yield blocks.Table(rows, ("group", "topics", "checkpoint"), blocks.TooWide.DROP)

    def _show_problems(self) -> Iterator[blocks.Block]:
        if self.record.problems:
            yield blocks.Heading("Not committed", "")
            yield from blocks.bullets(self.record.problems)

    def _show_next(self) -> Iterator[blocks.Block]:
        if self.record.problems:
            solve = words("Fix each problem named above; committed groups stay committed.")
            yield blocks.Next((do(Do.CHANGE, solve, rows=NO_ROWS),))
