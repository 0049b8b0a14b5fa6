"""A handoff: as a page for a tired person, and as the JSON document of the contract."""

from collections.abc import Iterator
from typing import Annotated

from ckpt.advice import NO_ROWS, Do, again, call, do, run, words
from ckpt.checkpoint.sources.starts import ReaderStart, StartingPoint
from ckpt.migrate.handoff.plan import Handoff, Later
from ckpt.migrate.handoff.starts import SourceStart
from ckpt.texts import instant, plural

from . import blocks
from .blocks import Block, Heading, Headline, Item, Line, Next, Page, Tone, bullets, more, page_of, show_warnings
from .book import BOOK
from .document import Document, DocumentKeys
from .inspection import CheckpointKeys, ReadRangeKeys, SourceKeys
from .keys import Keys, Sentences, as_json, derive, of
from .page import label_source, offset_text, show_ranges, show_title
from .reports import Exit, Report

_SHOWN = 10  # how many sources, later batches and files are named


class _Source(SourceKeys, record=ReaderStart, keys="begin options without seen conditions refused"): ...


class _Later(Keys, record=Later, keys="batch committed sources"):
    sources: tuple[ReadRangeKeys, ...]


_KEYS = """checkpoint batch exact doubts possible state_version watermark_ms sources later sinks warnings refused
snippet"""


class HandoffDocument(DocumentKeys, record=Handoff, keys=_KEYS):
    """The document of ``ckpt handoff``."""

    checkpoint: Annotated[CheckpointKeys, of("inspection")]
    doubts: Sentences
    sources: tuple[_Source, ...]
    later: tuple[_Later, ...]
    warnings: Sentences


class HandoffReport(Report[Handoff]):
    """Report of ``ckpt handoff``; requested code takes the place of the page."""

    @property
    def exit(self) -> Exit:
        if self.record.refused:
            return Exit.FAILED
        return Exit.OK if self.record.exact and not self.record.state_lost else Exit.FOUND

    def document(self) -> Document:
        starts = [derive(_Source, start.view, live=None, **as_json(start)) for start in self.record.sources]
        return derive(HandoffDocument, self.record, sources=starts)

    def page(self) -> Page:
        if self.record.snippet is not None:
            start = words("Start the new query with this code and a new checkpoint.")
            step = do(Do.START, start, rows=NO_ROWS if self.record.exact else again())
            return page_of([blocks.CodeBlock(self.record.snippet), Next((step,), shown=False)])
        parts = (_show_headline, _show_sources, _show_since, _show_watermark, _show_sinks)
        warnings = () if self.record.refused else show_warnings(self.record.warnings)
        end = (warnings, _show_next(self.record))
        return page_of(show_title(self.record.inspection), *(part(self.record) for part in parts), *end)


def _show_headline(handoff: Handoff) -> Iterator[Block]:
    if handoff.refused:
        yield Headline(f"NO HANDOFF: {handoff.refused}", Tone.ERROR)
    elif handoff.exact and not handoff.state_lost:
        last = "" if handoff.later else ", the last planned batch"
        text = f"A NEW QUERY CAN CONTINUE exactly after batch {handoff.batch}{last}"
        yield Headline(text, Tone.GOOD)
    else:
        begun = any(start.begin is StartingPoint.FROM_ZERO for start in handoff.sources)
        but = ["WITH EMPTY STATE"] if handoff.state_lost else []
        if not handoff.exact:
            but.append("NOT ALL SOURCES CAN: some START OVER" if begun else "MAY READ ROWS AGAIN")
        yield Headline(f"A NEW QUERY CAN CONTINUE after batch {handoff.batch}, but {', and '.join(but)}", Tone.WARNING)
    yield from bullets(handoff.doubts)


def _show_sources(handoff: Handoff) -> Iterator[Block]:
    if not handoff.sources:
        return
    yield Heading("Sources", f"for a new query that continues after batch {handoff.batch}")
    for start in handoff.sources[:_SHOWN]:
        yield from _show_start(start)
    yield from more(len(handoff.sources) - _SHOWN)


def _show_start(start: SourceStart) -> Iterator[Block]:
    where = offset_text(start.view.record)
    where = f"from zero (the old query was at {where})" if start.begin is StartingPoint.FROM_ZERO else where
    yield Item(f"{BOOK.text(f'begins_{start.begin}')}: {where}", 24, f"  {label_source(start.view)}")
    for key, value in start.options.items():
        yield Item(value, 7, f"     {key} = ")
    if start.options and start.without:
        yield Item(f"without {' and without '.join(start.without)}", 7)
    if start.begin is StartingPoint.EXACT and not start.options:
        yield Item(f"excludes {plural(len(start.seen), 'file')} that the old query had read:", 5)
        yield from (Line(f"       {path}") for path in start.seen[:_SHOWN])
        if len(start.seen) > _SHOWN:
            more_files = words("and {count} more: see {fields}", count=f"{len(start.seen) - _SHOWN:,}")
            yield Item(more_files, 7)
    for condition in start.conditions:
        yield Item(condition, 7, "     - ")


def _show_since(handoff: Handoff) -> Iterator[Block]:
    if handoff.refused:
        return
    if not handoff.later:
        yield Heading("Since", f"nothing was planned after batch {handoff.batch}")
        return
    yield Heading("Since", f"batches that the old query planned after batch {handoff.batch}")
    for later in handoff.later[:_SHOWN]:
        yield Line(f"  batch {later.batch}   {'committed' if later.committed else 'NOT COMMITTED'}")
        yield from show_ranges(later.sources)
    yield from more(len(handoff.later) - _SHOWN)


def _show_watermark(handoff: Handoff) -> Iterator[Block]:
    if handoff.watermark_ms:
        text = BOOK.text("watermark_of_old", at=instant(handoff.watermark_ms), ms=handoff.watermark_ms)
        yield Heading("Watermark", str(text))


def _show_sinks(handoff: Handoff) -> Iterator[Block]:
    if handoff.sinks and not handoff.refused:
        yield Heading("Sinks", "how they treat a new checkpoint")
        yield from (Item(sink.meaning, 4, f"  {sink.kind}: ") for sink in handoff.sinks)


def _show_next(handoff: Handoff) -> Iterator[Block]:
    path = handoff.inspection.checkpoint.uri
    if handoff.refused and handoff.possible and not handoff.sources:
        earlier = call("handoff", path).but(batch=handoff.possible[-1][1])
        yield Next((run(earlier, words("See how a new query continues after an earlier batch.")),))
    elif handoff.refused:
        yield Next(BOOK.advise("see_what_is_there", uri=path).steps)
    else:
        code = call("handoff", path).but(batch=handoff.batch, snippet="python")
        yield Next((run(code, words("Get the code that starts the sources after this batch.")),))
