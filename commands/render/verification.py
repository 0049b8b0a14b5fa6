"""Report of ``ckpt state verify``: damaged files, and the batches that are left."""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated

from ckpt.advice import call, words
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.state.verify.verify import StateVerification
from ckpt.texts import batch_ranges, plural, size

from .blocks import Block, Heading, Headline, Item, Page, Tone, more, page_of, show_call
from .document import Document, DocumentKeys
from .inspection import CheckpointKeys, RestartKeys
from .keys import ForPeople, Keys, derive
from .page import forecast_cases, show_title
from .reports import Exit, Report
from .state import count_damaged, not_decoded

_SHOWN = 20  # damaged files that are named on a page


class _Damage(Keys):
    path: str
    kind: str
    detail: ForPeople


_KEYS = "checkpoint files bytes damages unknown reasons loadable restart"


class VerificationDocument(DocumentKeys, record=StateVerification, keys=_KEYS):
    """The document of ``ckpt state verify``."""

    checkpoint: CheckpointKeys
    damages: tuple[_Damage, ...]
    reasons: Annotated[
        tuple[ForPeople, ...], lambda verification: [verification.reasons[path] for path in verification.unknown]
    ]
    restart: tuple[RestartKeys, ...]


class VerificationReport(Report[StateVerification]):
    """Report of ``ckpt state verify``."""

    @cached_property
    def _inspection(self) -> Inspection:
        return inspect(self.record.checkpoint)

    @property
    def exit(self) -> Exit:
        return Exit.FOUND if self.record.damages else Exit.OK

    def document(self) -> Document:
        inspection = self._inspection
        return derive(VerificationDocument, self.record, checkpoint=inspection, restart=inspection.forecasts)

    def page(self) -> Page:
        return page_of(
            show_title(self._inspection),
            self._show_headline(),
            self._show_damages(),
            self._show_rows(),
            self._show_left(),
            self._show_next(),
        )

    def _show_headline(self) -> Iterator[Block]:
        verification = self.record
        read = f"{plural(verification.files, 'file')}, {size(verification.bytes)}"
        if verification.damages:
            yield Headline(f"DAMAGED: {count_damaged(verification.damages)}; every byte of {read} was read", Tone.ERROR)
        elif verification.unknown:
            yield Headline(f"NO DAMAGE FOUND in {read}; not all of it could be verified", Tone.NOTE)
        else:
            yield Headline(f"NO DAMAGE FOUND in any byte of {read}", Tone.GOOD)

    def _show_damages(self) -> Iterator[Block]:
        damages, unknown = self.record.damages, self.record.unknown
        damaged = [(damage.path, f"{damage.kind}: {damage.detail}") for damage in damages]
        unchecked = [(path, self.record.reasons[path]) for path in unknown]
        could_not = f"{plural(len(unknown), 'file')} that could not be checked"
        for name, fact, rows in (
            ("Damages", count_damaged(damages), damaged),
            ("Unknown", could_not, unchecked),
        ):
            if rows:
                yield Heading(name, fact)
            for path, why in rows[:_SHOWN]:
                yield Item(path, 2)
                yield Item(why, 4)
            yield from more(len(rows) - _SHOWN)

    def _show_rows(self) -> Iterator[Block]:
        state = self.record.checkpoint.state
        left = not_decoded(state.every_byte) if state and state.every_byte else ""
        if left:
            yield Heading("Rows", left)

    def _show_left(self) -> Iterator[Block]:
        spans = list(self.record.loadable)
        loadable = f"can be loaded as of {batch_ranges(spans)}" if spans else "cannot be loaded as of any batch"
        yield Heading("State", loadable)
        yield forecast_cases(self._inspection.counted)

    def _show_next(self) -> Iterator[Block]:
        if self.record.damages or not all(forecast.outcome.runs for forecast in self._inspection.counted):
            look = call("inspect", self.record.checkpoint.uri, deep=True)
            yield from show_call(look, words("See what the result means, and what to do."))
