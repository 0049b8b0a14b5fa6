"""What ``ckpt state verify`` says: which files are damaged, and which batches that leaves."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ckpt.inspection.inspection import Inspection, inspect
from ckpt.state.verify.verify import StateVerification
from ckpt.texts import quoted_path

from ..exits import Exit
from .blocks import Block, Command, Heading, Headline, Item, Page, Tone, more, page_of
from .document import Document, ToolKeys, checkpoint_keys, restart_keys
from .page import forecast_cases, title
from .text import batch_ranges, damaged, not_decoded, plural, size

_SHOWN = 20  # damaged files that are named on a page


@dataclass(frozen=True)
class VerificationReport:
    """What was found in every byte."""

    found: StateVerification

    @cached_property
    def _inspection(self) -> Inspection:
        return inspect(self.found.checkpoint)

    @property
    def exit(self) -> Exit:
        """Whether something is damaged."""
        return Exit.FOUND if self.found.damages else Exit.OK

    def document(self) -> Document:
        """All of it."""
        found = self.found
        return {
            "ckpt": ToolKeys(),
            "checkpoint": checkpoint_keys(self._inspection),
            "files": found.files,
            "bytes": found.bytes,
            "damages": [{"path": one.path, "kind": one.kind, "detail": one.detail} for one in found.damages],
            "unknown": list(found.unknown),
            "reasons": [found.reasons[path] for path in found.unknown],
            "loadable": [list(span) for span in found.loadable],
            "restart": [restart_keys(one) for one in self._inspection.forecasts],
        }

    def page(self) -> Page:
        """How many files are damaged, which, and what is left."""
        return page_of(
            title(self._inspection), self._headline(), self._damages(), self._rows(), self._left(), self._next()
        )

    def _headline(self) -> Iterator[Block]:
        found = self.found
        read = f"{plural(found.files, 'file')}, {size(found.bytes)}"
        if found.damages:
            yield Headline(f"DAMAGED: {damaged(found.damages)}; every byte was read of {read}", Tone.ERROR)
        elif found.unknown:
            yield Headline(f"NO DAMAGE FOUND in {read}; not all of it could be verified", Tone.NOTE)
        else:
            yield Headline(f"NO DAMAGE FOUND in any byte of {read}", Tone.GOOD)

    def _damages(self) -> Iterator[Block]:
        damages, unknown = self.found.damages, self.found.unknown
        if damages:
            yield Heading("Damages", damaged(damages))
            for one in damages[:_SHOWN]:
                yield Item(one.path, 2)
                yield Item(f"{one.kind}: {one.detail}", 4)
            yield from more(len(damages) - _SHOWN)
        if unknown:
            yield Heading("Unknown", f"nothing tells whether {plural(len(unknown), 'file')} changed")
            for path in unknown[:_SHOWN]:
                yield Item(path, 2)
                yield Item(self.found.reasons[path], 4)
            yield from more(len(unknown) - _SHOWN)

    def _rows(self) -> Iterator[Block]:
        state = self.found.checkpoint.state
        left = not_decoded(state.every_byte) if state and state.every_byte else ""
        if left:
            yield Heading("Rows", left)

    def _left(self) -> Iterator[Block]:
        spans = list(self.found.loadable)
        yield Heading("State", f"that of {batch_ranges(spans)} can be loaded" if spans else "no batch's can be loaded")
        yield forecast_cases(self._inspection.counted)

    def _next(self) -> Iterator[Block]:
        if self.found.damages or not all(one.outcome.runs for one in self._inspection.counted):
            yield Item("what it means, and what to do", 10, "Next")
            yield Command(f"ckpt inspect {quoted_path(self.found.checkpoint.uri)} --deep")
