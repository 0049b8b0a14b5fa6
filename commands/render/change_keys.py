"""The keys of every document about a change."""

from typing import Annotated

from ckpt.advice import RowCost
from ckpt.changes.apply import Receipt
from ckpt.changes.plan import ChangePlan, Replay
from ckpt.changes.steps import FileAction, FileContent, FileStep
from ckpt.model import NotRead
from ckpt.restart.sinks import InSink

from .document import DocumentKeys
from .inspection import CheckpointKeys, ReadRangeKeys, RestartKeys
from .keys import Keys, Sentences, key_types, of


class _OldFile(Keys):
    bytes: Annotated[int, of("size")]
    sha256: Annotated[
        str | None,
        "SHA-256 of the content, in hexadecimal; null if the plan only removes the file, and so need not read it",
    ]


class _File(_OldFile):
    sha256: Annotated[str, "SHA-256 of the content, in hexadecimal"]


def _count_bytes(step: FileStep) -> int:
    content = FileContent.of(step.after) or FileContent.of(step.before)
    return content.size if content else 0


class StepKeys(Keys):
    """One step of a plan."""

    action: FileAction
    path: Annotated[str, "relative to the checkpoint"]
    bytes: Annotated[int, "of the content written or removed", _count_bytes]
    from_: Annotated[str | None, "the file of this checkpoint that content is copied from", of("source")]
    before: Annotated[
        _OldFile | None, "the file before the step; null if none", lambda step: FileContent.of(step.before)
    ]
    after: Annotated[_File | None, "the file after the step; null if removed", lambda step: FileContent.of(step.after)]


class WritingStepKeys(StepKeys):
    """A step of a plan that has read each file which it changes."""

    before: Annotated[_File | None, "the file before the step; null if none", lambda step: FileContent.of(step.before)]


class RemovalKeys(StepKeys):
    """A step of a plan that copies no file."""

    from_: Annotated[None, of("source")]


class ReplayKeys(Keys, record=Replay, keys="batch sources finished"):
    """Rows that are read again."""

    sources: tuple[ReadRangeKeys, ...]


class InSinkKeys(Keys, record=InSink, keys="kind rows says"):
    """The effect on rows in one kind of sink."""

    rows: Annotated[RowCost, "the effect on them", of("rows.cost")]


class ReceiptKeys(Keys, record=Receipt, keys="applied undone backup problem other_backup steps undone_command"):
    """The receipt of a change."""

    steps: tuple[StepKeys, ...]


class ChangeDocument(DocumentKeys):
    """The document of a change: between its own keys those of the request, and those of the result."""

    checkpoint: Annotated[CheckpointKeys, "before any change", of("inspection")]
    deep: Annotated[bool, "every byte of the state was read, with `--deep`", of("inspection.deep")]
    not_read: Annotated[NotRead, of("inspection.not_read")]
    applied: bool
    backup: Annotated[str | None, "the folder with the original files"]
    why: Annotated[str | None, "for people; the wording may change"]
    steps: Annotated[tuple[StepKeys, ...], "in order"]
    before: Annotated[tuple[RestartKeys, ...], "forecasts without the steps"]
    after: Annotated[tuple[RestartKeys, ...], "forecasts with them"]
    replay: Annotated[tuple[ReplayKeys, ...], "rows that the query reads again, as far as the log records them"]
    warnings: Annotated[Sentences, of("notices")]
    in_sinks: Annotated[tuple[InSinkKeys, ...], "how each kind of sink treats the rows; one entry if a sink was named"]
    refused: Annotated[str | None, "why there is no plan, or why the plan was not carried out"]
    undone: Annotated[bool, "everything is restored"]

    def __init_subclass__(cls, record: type[ChangePlan], request: str, result: str = "") -> None:
        super().__init_subclass__(record, f"{request} {result}")
        names = [*key_types(ChangeDocument)]
        why, warnings = names.index("why"), names.index("warnings")
        cls.order = (*names[:why], *request.split(), *names[why:warnings], *result.split(), *names[warnings:])
