"""What ``ckpt offsets show`` says: what a batch reads of each source, and the reader options that begin at its end."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.migrate.handoff.positions import Position, Positions
from ckpt.texts import quoted_path

from ..exits import Exit
from .blocks import Block, Command, Heading, Headline, Item, Page, Tone, bullets, more, page_of
from .document import Document, ToolKeys, checkpoint_keys, grown_range
from .offsets import offset, range_text
from .page import title

_SHOWN = 20  # how many sources are named


@dataclass(frozen=True, slots=True)
class PositionsReport:
    """What ``ckpt offsets show`` says."""

    found: Positions

    @property
    def exit(self) -> Exit:
        """Whether there was something to show."""
        return Exit.FAILED if self.found.refused else Exit.OK

    def document(self) -> Document:
        """All of it."""
        found = self.found
        return {
            "ckpt": ToolKeys(),
            "checkpoint": checkpoint_keys(found.inspection),
            "batch": found.batch,
            "committed": found.committed,
            "sources": [_entry(one) for one in found.sources],
            "warnings": list(found.warnings),
            "refused": found.refused,
        }

    def page(self) -> Page:
        """The sources, what to know, and what can be done with it."""
        found = self.found
        return page_of(title(found.inspection), _headline(found), _sources(found), _warnings(found), _next(found))


def _entry(one: Position) -> Document:
    view = one.view
    return {
        "index": view.index,
        "name": view.name,
        "type": view.type,
        "from": one.start,
        "to": view.offset,
        "amount": (grown := grown_range(one.range))["amount"],
        "unit": grown["unit"],
        "rows": one.rows,
        "reader_option": dict(one.options),
        "conditions": list(one.conditions),
        "no_option": one.refused,
    }


def _headline(found: Positions) -> Iterator[Block]:
    if found.refused:
        yield Headline(f"NOTHING TO SHOW: {found.refused}", Tone.ERROR)
    else:
        yield Headline(f"BATCH {found.batch}, {'committed' if found.committed else 'not committed'}", Tone.PLAIN)


def _sources(found: Positions) -> Iterator[Block]:
    if not found.sources:
        return
    yield Heading("Sources", "what the batch reads, and the reader options that begin where it ends")
    for one in found.sources[:_SHOWN]:
        name = f" {one.view.name}" if one.view.name else ""
        text = range_text(one.range) if one.begins_known else f"from an unknown offset to {offset(one.view.offset)}"
        yield Item(text, 24, f"  {one.view.index}  {one.view.type}{name}  ")
        for key, value in one.options.items():
            yield Item(value, 7, f"     {key} = ")
        yield from (Item(text, 7, "     - ") for text in ([one.refused] if one.refused else one.conditions))
    yield from more(len(found.sources) - _SHOWN)


def _warnings(found: Positions) -> Iterator[Block]:
    if found.warnings:
        yield Heading("Mind")
        yield from bullets(found.warnings)


def _next(found: Positions) -> Iterator[Block]:
    path = quoted_path(found.inspection.checkpoint.uri)
    if found.refused or not found.committed:
        yield Item("see what the next start does", 10, "Next")
        yield Command(f"ckpt inspect {path}")
    else:
        yield Item("get the code of a new query that continues there", 10, "Next")
        yield Command(f"ckpt handoff {path} --batch {found.batch} --snippet python")
