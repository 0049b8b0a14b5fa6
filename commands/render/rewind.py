"""Report of ``ckpt rewind``."""

from dataclasses import dataclass
from typing import Annotated

from ckpt.changes.rewind.plan import Replayed, RewindPlan
from ckpt.changes.steps import FileContent
from ckpt.texts import plural, size

from .change import ChangeReport, start_anew
from .change_keys import ChangeBody, ChangeHead, ChangeTail, StepKeys
from .keys import Keys


class _Request(Keys):
    to_batch: Annotated[int | None, "the last batch that counts; null after an undo"]
    replayed: Annotated[Replayed, "as `--replay`"]
    needed: Annotated[bool, "there are files of later batches, or the batch cannot be gone back to"]


class _Result(Keys):
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
    stop = "end the driver"
    back = "the rewind"

    def about_steps(self) -> str:
        if self.plan.to_batch is None:
            return ""
        gone = [content.size for step in self.plan.steps if (content := FileContent.of(step.before)) is not None]
        return f"{plural(len(gone), 'file')}, {size(sum(gone))}: {self.plan.why}"

    def options(self) -> str:
        return f" --to-batch {self.plan.to_batch}" + " --replay new" * (self.plan.replayed is Replayed.NEW)

    def start(self) -> str:
        return start_anew(self.plan)
