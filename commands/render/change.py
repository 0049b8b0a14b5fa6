"""The report of every command that changes a checkpoint: the same keys, the same sections, the same way to end."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar, assert_never

from ckpt.changes.apply import Receipt
from ckpt.changes.plan import ChangePlan, First, Replay
from ckpt.changes.steps import FileContent, Step
from ckpt.errors import DISK_FULL
from ckpt.model import Json
from ckpt.restart.forecast import Forecast
from ckpt.restart.sinks import REMEMBERING
from ckpt.texts import quoted_path
from ckpt.versions import Progress

from ..arguments import as_options
from ..exits import Exit
from .blocks import Block, Command, Heading, Headline, Item, Line, Page, Table, Tone, bullets, more, page_of
from .document import Document, ToolKeys, checkpoint_keys, grown_range, restart_keys
from .findings import next_advice
from .offsets import range_text
from .page import forecast_cases, title
from .text import lower, plural

_STEPS = 12  # how many steps are named

Planned = TypeVar("Planned", bound=ChangePlan)


@dataclass(frozen=True, slots=True)
class ChangeReport(ABC, Generic[Planned]):
    """A plan and what came of it; a command adds its words, and what it alone has to say."""

    plan: Planned
    receipt: Receipt
    backup: str | None = field(default=None, kw_only=True)  # that was named, and is named again to apply the plan

    verb: ClassVar[str]  # "REPAIR"
    back: ClassVar[str] = "this"  # what the page offers to take back
    stop: ClassVar[str] = "stop the query"  # what to do before the plan is applied
    modes: ClassVar[tuple[Progress, ...]] = tuple(Progress)  # that are shown where there is nothing to compare

    @abstractmethod
    def done(self) -> str:
        """The headline once it is applied."""

    @abstractmethod
    def planned(self) -> str:
        """What the headline of a plan says of the time after it."""

    @property
    def afterwards(self) -> str:
        """What the next start does once the steps are done, as the rest of a sentence."""
        return lower(self.plan.verdict_after)

    def nothing(self) -> str:
        """The headline where nothing is to be done."""
        return f"{f'NOTHING TO {self.verb}' if self.plan.sound else 'OTHER PROBLEMS'}: {self.plan.why}"

    def own_request(self) -> Document:
        """Keys of the document that say what was asked for."""
        return {}

    def own_results(self) -> Document:
        """Keys of the document that say what else was found."""
        return {}

    def about_steps(self) -> str:
        """What is said of all steps."""
        return ""

    def own_part(self) -> Iterator[Block]:
        """A part of the page that no other command has."""
        yield from ()

    def options(self) -> str:
        """What was asked for, which the command that applies this plan repeats, with a space before it."""
        return ""

    def start(self) -> str:
        """What to do once the change is applied."""
        return "start the query"

    def next_if_nothing(self) -> Iterator[Block]:
        """What to do where nothing is to be done: what ``ckpt inspect`` says."""
        return next_advice(self.plan.inspection)

    def next_if_refused(self) -> Iterator[Block]:
        """What to do where there is no plan, though one is needed."""
        return next_command("see what is there now", f"ckpt inspect {self.path}")

    @property
    def exit(self) -> Exit:
        """Whether something is to be done, and whether it could be done."""
        if self.receipt.problem or self.plan.refused:
            return Exit.FAILED
        if self.changed:
            return Exit.OK
        return Exit.OK if self.plan.sound and not self.plan.steps else Exit.FOUND

    def document(self) -> Document:
        """All of it."""
        plan, receipt = self.plan, self.receipt
        return {
            "ckpt": ToolKeys(),
            "checkpoint": checkpoint_keys(plan.inspection),
            "applied": receipt.applied,
            "backup": receipt.backup,
            **self.own_request(),
            "needed": plan.needed,
            "why": plan.why or None,
            "steps": [_step_entry(step) for step in plan.steps],
            "before": [restart_keys(forecast) for forecast in plan.before],
            "after": [restart_keys(forecast) for forecast in self._after],
            "replay": [replay_entry(replay) for replay in plan.replay or ()],
            **self.own_results(),
            "warnings": list(plan.warnings),
            "refused": self._refusal,
            "undone": receipt.undone,
        }

    def page(self) -> Page:
        """What came of it, the forecasts, the steps, and what to do; if nothing was done, why, and what to do."""
        receipt = self.receipt
        if receipt.problem and receipt.backup is None and self.plan.steps:
            return page_of(self._headline(), self._next())
        return page_of(
            title(self.plan.inspection),
            self._headline(),
            self.forecasts(),
            self.steps(),
            self._read_again(),
            self._warnings(),
            self.own_part(),
            self._next(),
        )

    @property
    def path(self) -> str:
        """The checkpoint, as a word of a shell command."""
        return quoted_path(self.plan.inspection.checkpoint.uri)

    @property
    def changed(self) -> bool:
        """Whether files were changed, by the plan or by taking it back."""
        return self.receipt.applied or self.receipt.undone

    @property
    def _after(self) -> Sequence[Forecast]:
        return self.plan.after if self.plan.steps or self.receipt.undone else ()

    @property
    def _refusal(self) -> str | None:
        """Why there is no plan, or why it was not carried out; None if nothing went wrong."""
        reason = self.receipt.problem or self.plan.refused
        return None if reason is None else as_options(reason)

    def _sink(self) -> str:
        """The sink that the plan is for, with a space before it."""
        seen = self.plan.sink
        return "" if seen is None else f" --sink {quoted_path(seen.log.uri)}"

    def _accepted(self) -> str:
        """What is to be accepted, and where the backup goes: a folder that was refused is not named again."""
        words = " --accept-skip" * (self.plan.skips is not None) + " --accept-replay" * (self.plan.repeats is not None)
        if any(why in (self.receipt.problem or "") for why in ("`backup`", DISK_FULL)):
            return f"{words} --backup DIR"
        return words if self.backup is None else f"{words} --backup {quoted_path(self.backup)}"

    def _headline(self) -> Iterator[Block]:
        """What came of it: trouble, a plan that waits, or all is well."""
        plan, receipt = self.plan, self.receipt
        if self._refusal is not None or not (plan.steps or plan.sound):
            tone = Tone.ERROR
        else:
            tone = Tone.WARNING if plan.steps and not receipt.applied else Tone.GOOD
        yield Headline(self._outcome(), tone)

    def _outcome(self) -> str:
        if self._refusal is not None:
            state = ", and everything is restored" if self.receipt.undone else ""
            return f"{'NO PLAN' if self.plan.refused else 'NOT DONE'}{state}: {self._refusal}"
        if self.receipt.applied:
            return self.done()
        if self.receipt.undone and self.plan.steps:
            return f"UNDONE: the checkpoint is as it was before ckpt {self.receipt.taken_back}"
        if self.receipt.undone:
            return "NOTHING TO UNDO: everything is as it was"
        return f"A PLAN, nothing is changed yet: {self.planned()}" if self.plan.steps else self.nothing()

    def forecasts(self) -> Iterator[Block]:
        """How it starts without the steps, and with them; once an undo is done, the other way round."""
        if not self._after:
            yield forecast_cases([f for f in self.plan.before if f.progress in self.modes])
            return
        names = ("Before", "Now") if self.changed else ("Now", "After")
        for name, forecasts in zip(names, (self.plan.before, self._after), strict=True):
            yield Heading(name)
            yield forecast_cases([f for f in forecasts if f.progress is Progress.SYNC])

    def steps(self) -> Iterator[Block]:
        """What is done to which files."""
        steps = self.plan.steps
        if not steps:
            return
        yield Heading("Done" if self.changed else "Steps", self.about_steps())
        yield Table(tuple(map(_step_row, steps[:_STEPS])))
        yield from more(len(steps) - _STEPS)

    def _read_again(self) -> Iterator[Block]:
        replays = self.plan.replay
        if replays is None or not self.plan.steps:
            return
        which = "rows that the log knows of and that are read again"
        yield Heading("Again", which if replays else "no row that the log knows of is read again")
        for replay in replays:
            finished = "   rows of finished batches may be among them" if replay.finished else ""
            yield Line(f"  batch {replay.batch}{finished}")
            yield from (Item(range_text(one), 7, f"    {one.index}  ") for one in replay.sources)

    def _warnings(self) -> Iterator[Block]:
        """None once all is as it was. The first is to stop the query, and too late once it is done."""
        shown = self.plan.warnings[1:] if self.receipt.applied else self.plan.warnings
        if shown and not self.receipt.undone:
            yield Heading("Mind")
            yield from bullets(shown, advice=True)

    def _next(self) -> Iterator[Block]:
        """What to do now; a command is on its own line, to be copied."""
        plan, receipt = self.plan, self.receipt
        command = f"ckpt {plan.command} {self.path}"
        undo = f"{command} --undo {quoted_path(receipt.backup or '')}"
        half_done = bool(receipt.problem and receipt.backup and plan.steps) and not receipt.undone
        if receipt.applied:
            yield from next_command(f"{self.start()}; or, before that, take {self.back} back with", undo)
        elif half_done:
            yield from next_command("undo what was changed", undo)
        elif plan.steps and not receipt.undone:
            yield from next_command(
                f"{self.stop}, then", f"{command}{self.options()}{self._sink()}{self._accepted()} --apply"
            )
        elif plan.refused:
            yield from self.next_if_refused()
        elif plan.needed or receipt.problem or receipt.undone:
            yield from next_command("see what is there now", f"ckpt inspect {self.path}")
        else:
            yield from self.next_if_nothing()


def start_anew(plan: ChangePlan) -> str:
    """What to do once batches were taken back."""
    start = "start the query in a new driver"
    match plan.first:
        case First.NOTHING:
            return start
        case First.SINK if plan.sink is not None:
            return f"DO NOT start the query yet: do first what is said of the sink above; then {start}"
        case First.SINK:
            wait = f"DO NOT start the query yet with {REMEMBERING}: do first what is said of it above"
            return f"{wait}. With any other, {start}"
        case First.NOOP:
            return (
                "in a new driver, start the query ONCE into noop as said above; `ckpt preflight` says START "
                "when that is done, not before: then start it as usual"
            )
        case First.NOOP_IF_WRITTEN:
            return f"see above whether the sink has the batch; if so {start} ONCE into noop, and then as usual"
    assert_never(plan.first)


def next_command(text: str, command: str) -> Iterator[Block]:
    """What to do now, with the command for it."""
    yield Item(text, 10, "Next")
    yield Command(command)


def _step_row(step: Step) -> tuple[str, ...]:
    after = FileContent.of(step.after)
    size = "" if after is None else plural(after.size, "byte")
    return step.action, step.path, size, f"a copy of {step.source}" if step.source else ""


def _step_entry(step: Step) -> dict[str, Json]:
    before, after = FileContent.of(step.before), FileContent.of(step.after)
    moved = after or before
    return {
        "action": step.action,
        "path": step.path,
        "bytes": moved.size if moved else 0,
        "from": step.source,
        "before": _content_entry(before),
        "after": _content_entry(after),
    }


def _content_entry(content: FileContent | None) -> Json:
    return None if content is None else {"bytes": content.size, "sha256": content.sha256}


def replay_entry(replay: Replay) -> Document:
    """Rows that are read again, as JSON."""
    return {
        "batch": replay.batch,
        "sources": [grown_range(one) for one in replay.sources],
        "finished": replay.finished,
    }
