"""Report of ``ckpt offsets commit``: a consumer group for each checkpoint."""

from collections.abc import Iterator
from typing import Annotated

from ckpt.advice import NO_ROWS, Do, do, words
from ckpt.changes.offsets.commit import CommittedGroup, OffsetsCommit
from ckpt.inspection.scan.scan import ScannedRoot
from ckpt.texts import instant, plural

from .blocks import Block, Heading, Headline, Next, Page, Table, Title, Tone, TooWide, bullets, page_of
from .document import DocumentKeys
from .keys import of
from .reports import Exit, Report


class OffsetsCommitDocument(DocumentKeys):
    """The document of ``ckpt offsets commit``."""

    roots: Annotated[tuple[ScannedRoot, ...], of("scan.roots")]
    groups: Annotated[tuple[CommittedGroup, ...], "one for each checkpoint with a Kafka source that answered"]
    problems: tuple[Annotated[str, "a root, checkpoint, source or group where nothing was committed, and why"], ...]


class OffsetsCommitReport(Report[OffsetsCommit]):
    """Groups that were committed to, and those that were refused."""

    keys = OffsetsCommitDocument

    @property
    def exit(self) -> Exit:
        return Exit.FAILED if self.record.problems else Exit.OK

    def page(self) -> Page:
        return page_of(self._show_groups(), self._show_problems(), self._show_next())

    def _show_groups(self) -> Iterator[Block]:
        committed = [group for group in self.record.groups if group.refused is None]
        scan = self.record.scan
        yield Title(
            ", ".join(root.uri for root in scan.roots),
            (plural(len(scan.checkpoints), "checkpoint"), instant(scan.ended_ms)),
        )
        yield Headline(
            f"COMMITTED to {plural(len(committed), 'consumer group')}" if committed else "NOTHING COMMITTED",
            Tone.GOOD if committed and not self.record.problems else Tone.WARNING,
        )
        if committed:
            rows = tuple((group.group, ", ".join(sorted(group.positions)), group.path) for group in committed)
            yield Table(rows, ("group", "topics", "checkpoint"), TooWide.DROP)

    def _show_problems(self) -> Iterator[Block]:
        if self.record.problems:
            yield Heading("Not committed", "")
            yield from bullets(self.record.problems)

    def _show_next(self) -> Iterator[Block]:
        if self.record.problems:
            solve = words("Solve each problem that is named above; what was committed stays.")
            yield Next((do(Do.CHANGE, solve, rows=NO_ROWS),))
