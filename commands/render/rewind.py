"""Report of ``ckpt rewind``."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from ckpt.advice import Advice, Code, Words, words
from ckpt.advice.calls import Value
from ckpt.changes.rewind.plan import Replayed, RewindPlan
from ckpt.changes.steps import FileContent
from ckpt.texts import plural, size

from .blocks import Block, Heading
from .change import ChangeReport, start_anew
from .change_keys import ChangeBody, ChangeHead, ChangeTail, StepKeys
from .keys import Keys


class _Request(Keys):
    to_batch: Annotated[int | None, "the last batch that counts; null after an undo"]
    replayed: Annotated[Replayed, "as `--replay`"]
    needed: Annotated[bool, "there are files of later batches, or the batch cannot be gone back to"]


class _TableKeys(Keys):
    number: Annotated[int, "of the version, or the id of the snapshot"]
    newest: Annotated[int, "that the table has now"]
    batch: Annotated[int | None, "the newest of the query whose rows it had; null: none"]
    is_current: Annotated[bool, "the table has the rows of that version now"]
    others: Annotated[tuple[str, ...], "later commits of others, which a restore also removes"]
    statement: Annotated[str, "of SQL that restores it"]


class _Result(Keys):
    table: Annotated[_TableKeys | None, "the version of `--to-sink-version`; null without"]
    restores: Annotated[bool, "as `--restore-sink`, where that is needed"]
    possible: Annotated[
        tuple[Annotated[tuple[int, int], "`[first, last]`"], ...], "batches that can be gone back to, judging by names"
    ]


class RewindDocument(ChangeTail, _Result, ChangeBody, _Request, ChangeHead):
    """The document of ``ckpt rewind``."""

    steps: Annotated[tuple[StepKeys, ...], "in order"]


@dataclass(frozen=True, slots=True)
class RewindReport(ChangeReport[RewindPlan]):
    """Rewind to an earlier batch."""

    keys = RewindDocument
    done = "REWOUND to batch {report.plan.to_batch}: {report.afterwards}"
    planned = "afterwards the query stands as after batch {report.plan.to_batch}: {report.afterwards}"
    verb = "REWIND"
    stop = words("End the driver.")
    change = "rewind"

    def about_steps(self) -> str:
        if self.plan.to_batch is None:
            return ""
        gone = [content.size for step in self.plan.steps if (content := FileContent.of(step.before)) is not None]
        return f"{plural(len(gone), 'file')}, {size(sum(gone))}: {self.plan.why}"

    def options(self) -> dict[str, Value | None]:
        table = self.plan.table
        return {
            "to_batch": self.plan.to_batch if table is None else None,
            "to_sink_version": None if table is None else table.number,
            "restore_sink": self.plan.restores or None,
            "replay": Replayed.NEW.value if self.plan.replayed is Replayed.NEW else None,
        }

    def first(self) -> tuple[Words, ...]:
        table = self.plan.table
        if table is None or self.plan.waits_for is None:
            return ()
        return (words("Run {statement} in a session of Spark.", statement=Code(table.statement)),)

    def own_part(self) -> Iterator[Block]:
        """Say what becomes of the table."""
        table = self.plan.table
        if table is None or self.receipt.undone or not self.plan.steps:
            return
        how = "it has the rows of that version now"
        if not table.is_current:
            how = "restored by ckpt" if self.plan.restores else "to be restored before this plan is applied"
            if self.receipt.applied:
                how = "restored"
        yield Heading("Table", f"{table.name}, which had batch {table.batch} last; {how}")

    def start(self) -> Advice:
        return start_anew(self.plan, self.rows)
