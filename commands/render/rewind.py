"""Report of ``ckpt rewind``."""

from collections.abc import Iterator

from ckpt.advice import Advice, Code, Words, words
from ckpt.advice.calls import Value
from ckpt.changes.rewind.plan import Replayed, RewindPlan
from ckpt.changes.steps import FileContent
from ckpt.checkpoint.points import parse_point
from ckpt.live.sink.versions import SinkVersion
from ckpt.texts import plural, size

from .blocks import Block, Heading
from .change import ChangeReport, start_anew
from .change_keys import ChangeDocument
from .keys import Keys


class _TableKeys(Keys, record=SinkVersion, keys="number newest batch is_current others statement"): ...


class RewindDocument(
    ChangeDocument, record=RewindPlan, request="to_batch replayed needed", result="point table restores possible"
):
    """The document of ``ckpt rewind``."""

    table: _TableKeys | None


class RewindReport(ChangeReport[RewindPlan]):
    """Rewind to an earlier batch."""

    keys = RewindDocument
    done = "REWOUND to batch {report.plan.to_batch}: {report.afterwards}"
    planned = "afterwards the query has its state after batch {report.plan.to_batch}: {report.afterwards}"
    verb = "REWIND"
    stop = words("End the driver.")
    change = "rewind"

    def about_steps(self) -> str:
        if self.plan.to_batch is None:
            return ""
        gone = [content.size for step in self.plan.steps if (content := FileContent.of(step.before)) is not None]
        return f"{plural(len(gone), 'file')}, {size(sum(gone))}: {self.plan.why}"

    def options(self) -> dict[str, Value | None]:
        table, point = self.plan.table, parse_point(self.plan.point or "")
        return {
            "to_batch": self.plan.to_batch if table is None and point is None else None,
            "to_time": None if point is None else f"{point.time:%Y-%m-%dT%H:%M:%SZ}",
            "from_": self.plan.folder,
            "to_sink_version": None if table is None else table.number,
            "restore_sink": self.plan.restores or None,
            "replay": Replayed.NEW.value if self.plan.replayed is Replayed.NEW else None,
        }

    def first(self) -> tuple[Words, ...]:
        table = self.plan.table
        if table is None or self.plan.waits_for is None:
            return ()
        return (words("Run {statement} in a Spark session.", statement=Code(table.statement)),)

    def own_part(self) -> Iterator[Block]:
        """Say what becomes of the table."""
        table = self.plan.table
        if table is None or self.receipt.undone or not self.plan.steps:
            return
        how = "the table now has the rows of that version"
        if not table.is_current:
            how = "restored by ckpt" if self.plan.restores else "restore that version before you apply this plan"
            if self.receipt.applied:
                how = "restored"
        yield Heading("Table", f"{table.name}, whose last batch was {table.batch}; {how}")

    def start(self) -> Advice:
        return start_anew(self.plan, self.rows)
