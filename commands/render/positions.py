"""Report of ``ckpt offsets show``: each source's range in a batch, and the reader options that begin at its end."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from ckpt.advice import call, words
from ckpt.changes.offsets.exchange import Position, Positions
from ckpt.checkpoint.sources.kind import SourceType
from ckpt.model import Json

from .blocks import Block, Heading, Headline, Item, Page, Tone, more, page_of, show_call, show_warnings
from .document import DocumentKeys
from .inspection import CheckpointKeys
from .keys import Keys, Sentences, of
from .page import offset_text, range_text, show_title
from .reports import Exit, Report

_SHOWN = 20  # how many sources are named


class _Position(
    Keys, record=Position, keys="index name type from_ to amount unit rows reader_option conditions no_option"
):
    index: Annotated[int, of("view.index")]
    name: Annotated[str | None, "offset log v2 names sources", of("view.name")]
    type: Annotated[SourceType, "a plugin of `ckpt.sources` may name others", of("view.type")]
    from_: Annotated[
        Json,
        "the offset at which the batch begins; null for the beginning of the source, or if it is not in the log (see "
        "`warnings`)",
        of("range.start"),
    ]
    to: Annotated[Json, "the offset at which it ends", of("view.offset")]
    amount: Annotated[
        int | None,
        "how far the batch advances the source",
        lambda source: getattr(source.range.advance, "amount", None),
    ]
    unit: Annotated[str | None, "what the amount counts", lambda source: getattr(source.range.advance, "unit", None)]
    reader_option: Annotated[
        Mapping[str, str],
        "object: options of `DataStreamReader` with which a reader begins where the batch ends, all strings; empty if "
        "none says it",
        of("options"),
    ]
    conditions: Annotated[Sentences, "what else must be true, and ckpt cannot see"]
    no_option: Annotated[str | None, "why no option says it", of("refused")]


class PositionsDocument(DocumentKeys, record=Positions, keys="checkpoint batch committed sources warnings refused"):
    """The document of ``ckpt offsets show``."""

    checkpoint: Annotated[CheckpointKeys, of("inspection")]
    sources: Annotated[tuple[_Position, ...], "in the order of the query"]
    warnings: Sentences


class PositionsReport(Report[Positions]):
    """Report of ``ckpt offsets show``."""

    keys = PositionsDocument

    @property
    def exit(self) -> Exit:
        return Exit.FAILED if self.record.refused else Exit.OK

    def page(self) -> Page:
        parts = (_show_headline, _show_sources, lambda shown: show_warnings(shown.warnings), _show_next)
        return page_of(show_title(self.record.inspection), *(part(self.record) for part in parts))


def _show_headline(positions: Positions) -> Iterator[Block]:
    if positions.refused:
        yield Headline(f"NOTHING TO SHOW: {positions.refused}", Tone.ERROR)
    else:
        done = "committed" if positions.committed else "not committed"
        yield Headline(f"BATCH {positions.batch}, {done}", Tone.PLAIN)


def _show_sources(positions: Positions) -> Iterator[Block]:
    if not positions.sources:
        return
    yield Heading("Sources", "what the batch reads, and the reader options that begin where it ends")
    for source in positions.sources[:_SHOWN]:
        name = f" {source.view.name}" if source.view.name else ""
        end = offset_text(source.view.record)
        text = range_text(source.range) if source.begins_known else f"from an unknown offset to {end}"
        yield Item(text, 24, f"  {source.view.index}  {source.view.type}{name}  ")
        for key, value in source.options.items():
            yield Item(value, 7, f"     {key} = ")
        yield from (Item(text, 7, "     - ") for text in ([source.refused] if source.refused else source.conditions))
    yield from more(len(positions.sources) - _SHOWN)


def _show_next(positions: Positions) -> Iterator[Block]:
    path = positions.inspection.checkpoint.uri
    if positions.refused or not positions.committed:
        yield from show_call(call("inspect", path), words("See what the next start does."))
    else:
        code = call("handoff", path).but(batch=positions.batch, snippet="python")
        yield from show_call(code, words("Get the code of a new query that continues there."))
