"""Report of ``ckpt copy``."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from ckpt.advice import NO_ROWS, Do, call, do, words
from ckpt.checkpoint.pipelines import parse_flow
from ckpt.migrate.handoff.plan import SinkMeaning
from ckpt.new.copy.copy import CheckpointCopy
from ckpt.storage.locations import find_parent
from ckpt.texts import plural

from .blocks import Block, Heading, Headline, Item, Next, Page, Tone, bullets, page_of, show_call
from .book import BOOK
from .document import Document, DocumentKeys
from .inspection import CheckpointKeys
from .keys import derive
from .page import forecast_cases, show_title
from .reports import Exit, Report

_SHOWN = 5  # files


_KEYS = "checkpoint to batch files bytes linked query_id new_id planned wrong_checksums sinks points removed"


class CopyDocument(DocumentKeys, record=CheckpointCopy, keys=_KEYS):
    """The document of ``ckpt copy``."""

    checkpoint: CheckpointKeys
    sinks: Annotated[tuple[SinkMeaning, ...], lambda copy: [SinkMeaning(*sink) for sink in copy.sinks.items()]]


@dataclass(frozen=True)
class CopyReport(Report[CheckpointCopy]):
    """A copy that was made or planned; ``source`` is the original as it was typed."""

    source: str
    rule: str | None = None  # the value of `--keep`

    @classmethod
    def of_value(cls, value: CheckpointCopy) -> "CopyReport":
        return cls(value, value.inspection.checkpoint.uri)

    @property
    def exit(self) -> Exit:
        return Exit.FOUND if self.record.wrong_checksums else Exit.OK

    def document(self) -> Document:
        checkpoint = derive(CheckpointKeys, self.record.inspection, path=self.source)
        return derive(CopyDocument, self.record, checkpoint=checkpoint)

    def page(self) -> Page:
        return page_of(
            show_title(self.record.inspection),
            self._show_headline(),
            self._show_wrong(),
            self._show_points(),
            [forecast_cases(self.record.inspection.forecasts)],
            [] if self.record.points else self._show_sinks(),
            self._show_next(),
        )

    def _show_headline(self) -> Iterator[Block]:
        done = self.record
        size = f"{plural(done.files, 'file')}, {plural(done.bytes, 'byte')}"
        size += f", {done.linked:,} of them taken from an earlier copy" if done.linked else ""
        if done.planned:
            yield Headline(f"PLANNED: copy to {done.to} as of batch {done.batch}: {size}", Tone.GOOD)
        elif done.wrong_checksums:
            yield Headline(f"COPIED to {done.to} as of batch {done.batch}, WITH DAMAGED STATE: {size}", Tone.WARNING)
        else:
            yield Headline(f"COPIED to {done.to} as of batch {done.batch}, and checked: {size}", Tone.GOOD)

    def _show_wrong(self) -> Iterator[Block]:
        if wrong := self.record.wrong_checksums:
            fits = "does not match its checksum file" if len(wrong) == 1 else "do not match their checksum files"
            yield Heading("Damage", f"{plural(len(wrong), 'file')} of state {fits}; the original has the same damage")
            yield from bullets(wrong, _SHOWN)

    def _show_points(self) -> Iterator[Block]:
        for what, names in (("Points", self.record.points), ("Removed", self.record.removed)):
            yield from [Heading(what, plural(len(names), "point")), *bullets(names[::-1], _SHOWN)] if names else []

    def _show_sinks(self) -> Iterator[Block]:
        own = "has its own query id" if self.record.new_id else "has the original's query id"
        yield Heading("Sinks", f"the copy {own}. If both queries write to the same sink, that sink")
        yield from (Item(meaning, 4, f"  {kind}: ") for kind, meaning in self.record.sinks.items())

    def _show_next(self) -> Iterator[Block]:
        if self.record.planned:
            copy = call("copy", self.source, self.record.to, batch=self.record.batch)
            if self.rule is not None:
                copy = call("copy", self.source, find_parent(self.record.to) or "", keep=self.rule)
            adopts = words("Stop the query for good, then let the flow take over its checkpoint.")
            copies = words("Copy it. The query may keep running; stop it first only if it will continue on the copy.")
            text = copies if parse_flow(self.record.to) is None else adopts
            yield from show_call(copy.but(new_id=self.record.new_id or None), text, writes=True)
            return
        if parse_flow(self.record.to) is not None and not self.record.wrong_checksums:
            yield Next((do(Do.START, BOOK.text("adopted"), rows=NO_ROWS),))
            return
        damaged = bool(self.record.wrong_checksums)
        look = call("inspect", self.record.to).but(deep=damaged or None)
        yield from show_call(look, BOOK.text("damaged_copy" if damaged else "sound_copy"))
