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
    sha256: str | None


class _File(_OldFile):
    sha256: str


def count_bytes(step: FileStep) -> int:
    """Count the bytes that a step writes or removes."""
    content = FileContent.of(step.after) or FileContent.of(step.before)
    return content.size if content else 0


class StepKeys(Keys):
    """One step of a plan."""

    action: FileAction
    path: str
    bytes: Annotated[int, count_bytes]
    from_: Annotated[str | None, of("source")]
    before: Annotated[_OldFile | None, lambda step: FileContent.of(step.before)]
    after: Annotated[_File | None, lambda step: FileContent.of(step.after)]


class WritingStepKeys(StepKeys):
    """A step of a plan that has read each file which it changes."""

    before: Annotated[_File | None, lambda step: FileContent.of(step.before)]


class RemovalKeys(StepKeys):
    """A step of a plan that copies no file."""

    from_: Annotated[None, of("source")]


class ReplayKeys(Keys, record=Replay, keys="batch sources finished"):
    """Rows that are read again."""

    sources: tuple[ReadRangeKeys, ...]


class InSinkKeys(Keys, record=InSink, keys="kind rows says"):
    """The effect on rows in one kind of sink."""

    rows: Annotated[RowCost, of("rows.cost")]


class ReceiptKeys(Keys, record=Receipt, keys="applied undone backup problem other_backup steps undone_command"):
    """The receipt of a change."""

    steps: tuple[StepKeys, ...]


class ChangeDocument(DocumentKeys):
    """The document of a change: between its own keys those of the request, and those of the result."""

    checkpoint: Annotated[CheckpointKeys, of("inspection")]
    deep: Annotated[bool, of("inspection.deep")]
    not_read: Annotated[NotRead, of("inspection.not_read")]
    applied: bool
    backup: str | None
    why: str | None
    steps: tuple[StepKeys, ...]
    before: tuple[RestartKeys, ...]
    after: tuple[RestartKeys, ...]
    replay: tuple[ReplayKeys, ...]
    warnings: Annotated[Sentences, of("notices")]
    in_sinks: tuple[InSinkKeys, ...]
    refused: str | None
    undone: bool

    def __init_subclass__(cls, record: type[ChangePlan], request: str, result: str = "") -> None:
        names = [*key_types(ChangeDocument)]
        why, warnings = names.index("why"), names.index("warnings")
        super().__init_subclass__(record, " ".join((request, *names[why:warnings], result, *names[warnings:])))
