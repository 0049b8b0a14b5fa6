"""Report of ``ckpt sql``: the rows of an answer."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ckpt.model import Json
from ckpt.texts import plural

from .blocks import Block, Headline, Page, Tone, page_of
from .document import DocumentKeys
from .reports import Report
from .rows import tabulate_rows

if TYPE_CHECKING:
    from ckpt.tables.answers import Answer  # noqa: F401  (named by a base)


class AnswerDocument(DocumentKeys, record="ckpt.tables.answers:Answer", keys="columns rows problems"):
    """The document of ``ckpt sql``."""

    rows: tuple[Json, ...]


class AnswerReport(Report["Answer"]):
    """Report of ``ckpt sql``."""

    keys = AnswerDocument

    def page(self) -> Page:
        return page_of(self._show_rows())

    def _show_rows(self) -> Iterator[Block]:
        yield Headline(plural(len(self.record.rows), "row"), Tone.PLAIN)
        if self.record.rows:
            yield tabulate_rows(self.record.rows)
