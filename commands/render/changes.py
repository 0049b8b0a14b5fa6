"""Reports of ``ckpt rewind``, ``relocate`` and ``prune``."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from ckpt.changes.prune.plan import Pruned, PrunePlan, PruneReason
from ckpt.changes.relocate.plan import OutsidePaths, RelocationPlan
from ckpt.changes.rewind.plan import Replayed, RewindPlan
from ckpt.changes.steps import FileContent, Step, sidecar
from ckpt.texts import plural, quote_path, size
from ckpt.versions import Progress

from .blocks import Block, Heading, Next, Table, bullets, show_command
from .change import ChangeReport, lower, start_anew
from .change_keys import ChangeBody, ChangeHead, ChangeTail, RemovalKeys, WritingStepKeys
from .document import CheckpointKeys, RestartKeys
from .keys import Keys, of


class _RewindRequest(Keys):
    to_batch: Annotated[int | None, "the last batch that counts; null after an undo"]
    replayed: Annotated[Replayed, "as `--replay`"]
    needed: Annotated[bool, "there are files of later batches, or the batch cannot be gone back to"]


class _RewindResult(Keys):
    possible: Annotated[
        tuple[Annotated[tuple[int, int], "`[first, last]`"], ...], "batches that can be gone back to, judging by names"
    ]


class RewindDocument(ChangeTail, _RewindResult, ChangeBody, _RewindRequest, ChangeHead):
    """The document of ``ckpt rewind``."""

    steps: Annotated[tuple[RemovalKeys, ...], "in order"]


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


class _RelocationRequest(Keys):
    to: Annotated[
        str | None,
        "the root from which Spark opens it, as Spark records it; null if no path is recorded, and after an undo",
    ]
    recorded: tuple[Annotated[str, "a root where operator metadata looked for schemas"], ...]
    needed: Annotated[bool, "operator metadata names schemas outside `to`"]


class _RelocationResult(Keys):
    held: Annotated[
        tuple[OutsidePaths, ...], "logs that name files outside the checkpoint by absolute path; never changed"
    ]


class RelocationDocument(ChangeTail, _RelocationResult, ChangeBody, _RelocationRequest, ChangeHead):
    """The document of ``ckpt relocate``."""

    checkpoint: Annotated[CheckpointKeys, "in its current location, before anything was changed", of("inspection")]
    steps: Annotated[tuple[WritingStepKeys, ...], "in order"]
    before: Annotated[tuple[RestartKeys, ...], "forecasts for its current location, without the steps"]
    after: Annotated[tuple[RestartKeys, ...], "forecasts for `to`, with the steps; empty if there are none"]
    replay: Annotated[tuple[()], "always empty: the same rows are read as before"]


@dataclass(frozen=True, slots=True)
class RelocationReport(ChangeReport[RelocationPlan]):
    """New paths of schemas; ``to`` is the URI as typed, which the command to be copied repeats."""

    to: str | None = None

    keys = RelocationDocument
    done = "RELOCATED: {report.afterwards}"
    planned = "afterwards, {report.afterwards}"
    modes = (Progress.SYNC,)  # asynchronous tracking refuses state, and only state is relocated

    @property
    def afterwards(self) -> str:
        return f"opened as {self.plan.to}, it finds its schemas and {lower(self.plan.verdict_after)}"

    def nothing(self) -> str:
        other = "" if self.plan.sound else ", but there is another problem"
        return f"NOTHING TO RELOCATE{other}: {self.plan.why}"

    def about_steps(self) -> str:
        if self.plan.to is None or not self.plan.recorded:
            return ""
        return f"operator metadata looks for its schemas under {self.plan.to}, no longer under {self.plan.recorded[0]}"

    def own_part(self) -> Iterator[Block]:
        if self.plan.held and not self.plan.warnings:
            yield Heading("Paths", "that stay unchanged")
            yield from bullets(held.meaning for held in self.plan.held)

    def options(self) -> str:
        return "" if self.to is None else f" --to {quote_path(self.to)}"

    def start(self) -> str:
        there = f"move the checkpoint to {self.plan.to}, and start the query there"
        return there if self.plan.away else "start the query"

    def next_if_nothing(self) -> Iterator[Block]:
        if self.plan.sound:
            yield Next((), "start the query as usual")
        else:
            yield from show_command("see what is there now", f"ckpt inspect {self.path}")


_WORDS = {
    PruneReason.OLD_VERSION: "state of versions that no start needs",
    PruneReason.KILLED_TASK: "state that a task wrote and no commit names",
    PruneReason.ORPHAN: "SST files that no snapshot names",
    PruneReason.TEMPORARY: "temporary files of interrupted writes",
}


def _size_of(step: Step) -> int:
    content = FileContent.of(step.before)
    return content.size if content else 0


def _find_steps(plan: PrunePlan, pruned: Pruned) -> list[Step]:
    wanted = {*pruned.paths, *map(sidecar, pruned.paths)}
    return [step for step in plan.steps if step.path in wanted]


class _PruneRequest(Keys):
    keep_batches: Annotated[
        int | None, "how many of the newest batches keep their state; null if the logs do not say, and after an undo"
    ]
    oldest_version: Annotated[int | None, "of state, that stays loadable"]
    needed: Annotated[bool, "there is something that could go"]


class _Pruned(Keys):
    kind: Annotated[
        PruneReason,
        "state of versions that no start needs; state that a task wrote and no commit names; SST files that no "
        "snapshot names; what interrupted writes left",
    ]
    files: int
    bytes: int


def _derive_pruned(plan: PrunePlan) -> list[_Pruned]:
    steps_by_kind = [(pruned.kind, _find_steps(plan, pruned)) for pruned in plan.pruned]
    return [_Pruned(kind=kind, files=len(steps), bytes=sum(map(_size_of, steps))) for kind, steps in steps_by_kind]


class _PruneResult(Keys):
    bytes: Annotated[int, "of all steps", lambda plan: sum(map(_size_of, plan.steps))]
    pruned: Annotated[tuple[_Pruned, ...], _derive_pruned]


class PruneDocument(ChangeTail, _PruneResult, ChangeBody, _PruneRequest, ChangeHead):
    """The document of ``ckpt prune``."""

    steps: Annotated[tuple[RemovalKeys, ...], "in order"]
    after: Annotated[tuple[RestartKeys, ...], "forecasts with the steps: the same; empty if there are none"]
    replay: Annotated[tuple[()], "always empty: the same rows are read as before"]


@dataclass(frozen=True, slots=True)
class PruneReport(ChangeReport[PrunePlan]):
    """Files that no restart needs; ``keep_batches`` is the user's number, if any."""

    keep_batches: int | None = None

    keys = PruneDocument
    done = "PRUNED {report.total}: {report.afterwards}, as before"
    planned = "{report.total} can go; afterwards it {report.afterwards}, as now"
    verb = "PRUNE"
    stop = "end the driver"
    back = "the files"

    @property
    def total(self) -> str:
        return f"{plural(len(self.plan.steps), 'file')}, {size(sum(map(_size_of, self.plan.steps)))}"

    def about_steps(self) -> str:
        return self.plan.why

    def own_part(self) -> Iterator[Block]:
        if self.plan.pruned:
            rows = ((pruned, _find_steps(self.plan, pruned)) for pruned in self.plan.pruned)
            yield Heading("Space", "the backup takes as much, until you delete it")
            yield Table(
                tuple(
                    (f"  {size(sum(map(_size_of, steps)))}", plural(len(steps), "file"), _WORDS[pruned.kind])
                    for pruned, steps in rows
                )
            )

    def options(self) -> str:
        return "" if self.keep_batches is None else f" --keep-batches {self.keep_batches}"

    def start(self) -> str:
        return "start the query; once it has run, delete the backup"
