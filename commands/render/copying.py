"""What ``ckpt copy`` says once it is done."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ckpt.copies.copy.copy import CheckpointCopy
from ckpt.texts import quoted_path

from ..exits import Exit
from .blocks import Block, Command, Heading, Headline, Item, Page, Tone, page_of
from .document import Document, ToolKeys, checkpoint_keys
from .page import forecast_cases, title
from .text import plural


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What was copied; ``source`` is the original as it was typed."""

    done: CheckpointCopy
    source: str
    exit = Exit.OK

    def document(self) -> Document:
        """All of it."""
        done = self.done
        return {
            "ckpt": ToolKeys(),
            "checkpoint": replace(checkpoint_keys(done.inspection), path=self.source),
            "to": done.to,
            "batch": done.batch,
            "files": done.files,
            "bytes": done.bytes,
            "query_id": done.query_id,
            "new_id": done.new_id,
            "sinks": [{"kind": kind, "meaning": meaning} for kind, meaning in done.sinks.items()],
        }

    def page(self) -> Page:
        """That it is complete, how it starts, and what sinks make of it."""
        return page_of(
            title(self.done.inspection),
            self._headline(),
            [forecast_cases(self.done.inspection.forecasts)],
            self._sinks(),
            self._next(),
        )

    def _headline(self) -> Iterator[Block]:
        done = self.done
        size = f"{plural(done.files, 'file')}, {plural(done.bytes, 'byte')}"
        yield Headline(f"COPIED to {done.to} as of batch {done.batch}, and checked: {size}", Tone.GOOD)

    def _sinks(self) -> Iterator[Block]:
        own = "has a query id of its own" if self.done.new_id else "has the query id of the original"
        yield Heading("Sinks", f"the copy {own}. If both write to the same sink, it")
        yield from (Item(meaning, 4, f"  {kind}: ") for kind, meaning in self.done.sinks.items())

    def _next(self) -> Iterator[Block]:
        yield Item("see how a query starts on the copy; give it a sink of its own while the original runs", 10, "Next")
        yield Command(f"ckpt inspect {quoted_path(self.done.to)}")
