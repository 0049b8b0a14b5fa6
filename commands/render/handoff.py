"""A handoff: as a page for a tired person, and as the JSON document of the contract."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.migrate.handoff.plan import Handoff
from ckpt.migrate.handoff.starts import Begin, SourceStart
from ckpt.texts import instant, quoted_path

from ..exits import Exit
from .blocks import Block, Code, Command, Heading, Headline, Item, Line, Page, Tone, bullets, more, page_of
from .document import Document, ToolKeys, checkpoint_keys, grown_range, source_keys
from .keys import as_json
from .offsets import offset, range_text
from .page import title
from .text import plural

_SHOWN = 10  # how many sources, later batches and files are named
_BEGINS = {
    Begin.EXACT: "continues exactly there",
    Begin.EARLIEST: "RECREATED, from its earliest rows; the old query was at",
    Begin.UNREAD: "nothing was read from it yet",
    Begin.FROM_ZERO: "STARTS OVER",
    Begin.REFUSED: "REFUSED",
}


@dataclass(frozen=True, slots=True)
class HandoffReport:
    """What ``ckpt handoff`` says; requested code takes the place of the page."""

    found: Handoff
    code: str | None = None

    @property
    def exit(self) -> Exit:
        """Whether rows are read again."""
        if self.found.refused:
            return Exit.FAILED
        return Exit.OK if self.found.exact else Exit.FOUND

    def document(self) -> Document:
        """All of it, and the code."""
        return _document(self.found, self.code)

    def page(self) -> Page:
        """What becomes of each source, and what to know; or the code alone, to be copied or piped."""
        if self.code is not None:
            return page_of([Code(self.code)])
        parts = (title(self.found.inspection), _headline(self.found))
        sections = (part(self.found) for part in (_sources, _since, _watermark, _sinks, _warnings, _next))
        return page_of(*parts, *sections)


def _document(found: Handoff, code: str | None) -> Document:
    return {
        "ckpt": ToolKeys(),
        "checkpoint": checkpoint_keys(found.inspection),
        "batch": found.batch,
        "exact": found.exact,
        "doubts": list(found.doubts),
        "possible": [list(span) for span in found.possible],
        "state_version": found.state_version,
        "watermark_ms": found.watermark_ms,
        "sources": [_source(start) for start in found.sources],
        "later": [
            {"batch": one.batch, "committed": one.committed, "sources": [grown_range(two) for two in one.sources]}
            for one in found.later
        ],
        "sinks": [{"kind": one.kind, "meaning": one.meaning} for one in found.sinks],
        "warnings": list(found.warnings),
        "refused": found.refused,
        "snippet": code,
    }


def _source(start: SourceStart) -> dict[str, object]:
    return {
        **as_json(source_keys(start.view)),
        "begin": start.begin,
        "options": dict(start.options),
        "without": list(start.without),
        "seen": list(start.seen),
        "conditions": list(start.conditions),
        "refused": start.refused,
    }


def _headline(found: Handoff) -> Iterator[Block]:
    if found.refused:
        yield Headline(f"NO HANDOFF: {found.refused}", Tone.ERROR)
    elif found.exact:
        said = f"A NEW QUERY CAN CONTINUE exactly after batch {found.batch}, the last that was planned"
        yield Headline(said, Tone.GOOD)
    else:
        begun = any(start.begin is Begin.FROM_ZERO for start in found.sources)
        but = "but NOT ALL SOURCES CAN: some START OVER" if begun else "but MAY READ ROWS AGAIN"
        yield Headline(f"A NEW QUERY CAN CONTINUE after batch {found.batch}, {but}", Tone.WARNING)
    yield from bullets(found.doubts)


def _sources(found: Handoff) -> Iterator[Block]:
    if not found.sources:
        return
    yield Heading("Sources", f"of the new query, to continue after batch {found.batch}")
    for start in found.sources[:_SHOWN]:
        yield from _start(start)
    yield from more(len(found.sources) - _SHOWN)


def _start(start: SourceStart) -> Iterator[Block]:
    name = f" {start.view.name}" if start.view.name else ""
    where = offset(start.view.offset)
    where = f"from zero (the old query was at {where})" if start.begin is Begin.FROM_ZERO else where
    yield Item(f"{_BEGINS[start.begin]}: {where}", 24, f"  {start.view.index}  {start.view.type}{name}  ")
    for key, value in start.options.items():
        yield Item(value, 7, f"     {key} = ")
    if start.options and start.without:
        yield Item(f"without {' and without '.join(start.without)}", 7)
    if start.begin is Begin.EXACT and not start.options:
        yield Item(f"leaves out {plural(len(start.seen), 'file')} that the old query had read:", 5)
        yield from (Line(f"       {path}") for path in start.seen[:_SHOWN])
        if len(start.seen) > _SHOWN:
            yield Line(f"       and {len(start.seen) - _SHOWN:,} more: see -o json")
    for condition in start.conditions:
        yield Item(condition, 7, "     - ")


def _since(found: Handoff) -> Iterator[Block]:
    if found.refused:
        return
    if not found.later:
        yield Heading("Since", f"nothing was planned after batch {found.batch}")
        return
    yield Heading("Since", f"what the old query planned after batch {found.batch}")
    for later in found.later[:_SHOWN]:
        yield Line(f"  batch {later.batch}   {'committed' if later.committed else 'NOT COMMITTED'}")
        yield from (Item(range_text(one), 7, f"    {one.index}  ") for one in later.sources)
    yield from more(len(found.later) - _SHOWN)


def _watermark(found: Handoff) -> Iterator[Block]:
    if found.watermark_ms:
        yield Heading(
            "Watermark",
            f"{instant(found.watermark_ms)} ({found.watermark_ms} ms) in the old query's next batch. A new query "
            "starts without one: drop rows with an earlier event time yourself, as the old query would have",
        )


def _sinks(found: Handoff) -> Iterator[Block]:
    if found.sinks and not found.refused:
        yield Heading("Sinks", "what a new checkpoint means for them")
        yield from (Item(sink.meaning, 4, f"  {sink.kind}: ") for sink in found.sinks)


def _warnings(found: Handoff) -> Iterator[Block]:
    if found.warnings and not found.refused:
        yield Heading("Mind")
        yield from bullets(found.warnings)


def _next(found: Handoff) -> Iterator[Block]:
    path = quoted_path(found.inspection.checkpoint.uri)
    if found.refused:
        yield Item("see what is there", 10, "Next")
        yield Command(f"ckpt inspect {path}")
    else:
        yield Item("get the code that starts the sources there", 10, "Next")
        yield Command(f"ckpt handoff {path} --batch {found.batch} --snippet python")
