"""Report of ``ckpt offsets commit``: a consumer group for each checkpoint."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from ckpt.changes.offsets.commit import OffsetsCommit
from ckpt.inspection.next_steps import NextStep, RowCost
from ckpt.texts import instant

from ..exits import Exit
from .blocks import Block, Heading, Headline, Item, Next, Page, Table, Title, Tone, TooWide, page_of
from .document import DocumentKeys
from .fleet import RootKeys
from .keys import Keys, derive, of
from .text import plural


class _Group(Keys):
    path: Annotated[str, "of the checkpoint, as `ckpt inspect` takes it"]
    group: Annotated[str, "of consumers"]
    positions: Annotated[dict[str, Any], "object: the next offset by topic and partition"]
    refused: Annotated[str | None, "why nothing was committed"]


class OffsetsCommitDocument(DocumentKeys):
    """The document of ``ckpt offsets commit``."""

    roots: Annotated[tuple[RootKeys, ...], of("scan.roots")]
    groups: Annotated[tuple[_Group, ...], "one for each checkpoint with a Kafka source that answered"]
    problems: tuple[Annotated[str, "a root, checkpoint, source or group where nothing was committed, and why"], ...]


@dataclass(frozen=True, slots=True)
class OffsetsCommitReport:
    """Groups that were committed to, and those that were refused."""

    done: OffsetsCommit

    @property
    def exit(self) -> Exit:
        return Exit.FAILED if self.done.problems else Exit.OK

    def document(self) -> OffsetsCommitDocument:
        return derive(OffsetsCommitDocument, self.done)

    def page(self) -> Page:
        return page_of(self._show_groups(), self._show_problems(), self._show_next())

    def _show_groups(self) -> Iterator[Block]:
        committed = [group for group in self.done.groups if group.refused is None]
        scan = self.done.scan
        yield Title(
            ", ".join(root.uri for root in scan.roots),
            (plural(len(scan.checkpoints), "checkpoint"), instant(scan.ended_ms)),
        )
        yield Headline(
            f"COMMITTED to {plural(len(committed), 'consumer group')}" if committed else "NOTHING COMMITTED",
            Tone.GOOD if committed and not self.done.problems else Tone.WARNING,
        )
        if committed:
            rows = tuple((group.group, ", ".join(sorted(group.positions)), group.path) for group in committed)
            yield Table(rows, ("group", "topics", "checkpoint"), TooWide.DROP)

    def _show_problems(self) -> Iterator[Block]:
        if self.done.problems:
            yield Heading("Not committed", "")
            yield from (Item(problem, 4, "  - ") for problem in self.done.problems)

    def _show_next(self) -> Iterator[Block]:
        if self.done.problems:
            yield Next((NextStep("remove what is named above, then commit again", rows=RowCost.NONE),))
