"""The report of every command that changes a checkpoint: the same keys, the same sections, the same way to end."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

from ckpt import advice
from ckpt.advice import Advice, Call, Do, Hole, RowsEffect, Step, Words, advise, call, do, run, words
from ckpt.advice.calls import Value
from ckpt.changes.apply import ChangeResult, Receipt
from ckpt.changes.check_fix import find_trouble
from ckpt.changes.plan import ChangePlan
from ckpt.changes.steps import FileContent, FileStep
from ckpt.restart.findings import Forecast
from ckpt.texts import plural
from ckpt.versions import Progress

from . import blocks
from .book import BOOK
from .change_keys import ReceiptKeys
from .document import Document
from .findings import show_next
from .keys import Keys, derive
from .page import forecast_cases, show_ranges, show_title
from .reports import Exit, Report

_STEPS = 12  # how many steps are named

Planned = TypeVar("Planned", bound=ChangePlan)


def lower(sentence: str) -> str:
    """A sentence as the rest of another one."""
    return sentence[:1].lower() + sentence[1:]


@dataclass(frozen=True)
class ChangeReport(Report[Planned]):
    """A plan and what came of it; a command adds its words, and what it alone has to say."""

    receipt: Receipt
    backup: str | None = field(default=None, kw_only=True)  # that was named, and is named again to apply the plan

    keys: ClassVar[type[Keys]]
    verb: ClassVar[str]  # "REPAIR"
    done: ClassVar[str]  # the headline once it is applied; {report} is this
    planned: ClassVar[str]  # part of the headline of a plan about the time after it, likewise
    change: ClassVar[str] = "change"  # that the page offers to undo
    stop: ClassVar[Words] = words("Stop the query.")  # what to do before the plan is applied
    modes: ClassVar[tuple[Progress, ...]] = tuple(Progress)  # that are shown where there is nothing to compare

    @classmethod
    def of_value(cls, value: ChangeResult[Planned]) -> "ChangeReport[Planned]":
        return cls(*value)

    @property
    def plan(self) -> Planned:
        return self.record

    @property
    def afterwards(self) -> str:
        """Next start once the steps are done, as the rest of a sentence."""
        return lower(self.plan.verdict_after)

    def about_steps(self) -> str:
        """Fact about all steps."""
        return ""

    def own_part(self) -> Iterator[blocks.Block]:
        """A part of the page that no other command has."""
        yield from ()

    def options(self) -> dict[str, Value | None]:
        """Arguments of the request, which the call that applies this plan repeats; None is one that was not named."""
        return {}

    @property
    def request(self) -> Call:
        """The call that planned this, as far as it says what is planned."""
        return call(self.plan.name, self.plan.root).but(**self.options())

    def start(self) -> Advice:
        """Advise what to do once the change is applied."""
        return advise(do(Do.START, words("Start the query."), rows=self.rows))

    def first(self) -> tuple[Words, ...]:
        """Name what a person does elsewhere before the plan is applied."""
        return ()

    def next_if_nothing(self) -> Iterator[blocks.Block]:
        """Advise what ``ckpt inspect`` does, where nothing is to be done."""
        return show_next(self.plan.inspection)

    def next_if_refused(self) -> Iterator[blocks.Block]:
        """Advise what helps where there is no plan, though one is needed."""
        return iter((blocks.Next(self.plan.instead.steps),)) if self.plan.instead else self.show_look()

    @property
    def exit(self) -> Exit:
        if self.receipt.problem or self.plan.refused:
            return Exit.FAILED
        if self.changed:
            return Exit.OK
        return Exit.OK if self.plan.sound and not self.plan.steps else Exit.FOUND

    def document(self) -> Document:
        plan, receipt = self.plan, self.receipt
        return derive(
            self.keys,
            plan,
            applied=receipt.applied,
            backup=receipt.backup,
            why=plan.why or None,
            after=tuple(self._after),
            replay=plan.replay or (),
            refused=self._refusal,
            undone=receipt.undone,
        )

    def page(self) -> blocks.Page:
        receipt = self.receipt
        if receipt.problem and receipt.backup is None and self.plan.steps:
            return blocks.page_of(self._show_headline(()), self._show_next())
        after = [step for block in self._show_next() if isinstance(block, blocks.Next) for step in block.steps]
        return blocks.page_of(
            self._show_headline(after),
            show_title(self.plan.inspection),
            self.forecasts(),
            self.steps(),
            self._show_read_again(),
            self._show_warnings(),
            self.own_part(),
            self._show_next(),
        )

    @property
    def deep(self) -> bool | None:
        """The argument that has every byte of the state read again; None where none was read."""
        return self.plan.inspection.deep or None

    @property
    def look(self) -> Call:
        """The call that shows what is there now."""
        return call("inspect", self.plan.root).but(deep=self.deep)

    @property
    def changed(self) -> bool:
        """True once files were changed, by the plan or by its undo."""
        return self.receipt.applied or self.receipt.undone

    @property
    def _after(self) -> Sequence[Forecast]:
        return self.plan.after if self.plan.steps or self.receipt.undone else ()

    @property
    def _refusal(self) -> str | None:
        """Why there is no plan, or why it was not carried out; None if nothing went wrong."""
        reason = self.receipt.problem or self.plan.refused
        return None if reason is None else str(reason)

    @property
    def rows(self) -> RowsEffect:
        """The effect of the plan on rows, once it is applied and the query started."""
        return self.plan.rows_effect

    @property
    def _repeated(self) -> Call:
        """The request with what the plan asks to accept; a refused folder for the backup is not."""
        sink = self.plan.sink
        return self.request.but(
            sink=None if sink is None else sink.log.uri,
            deep=self.deep,
            accept_skip=self.plan.skips is not None or None,
            accept_replay=self.plan.repeats is not None or None,
            backup=Hole.DIR if self.receipt.other_backup else self.backup,
            apply=True,
        )

    def _show_headline(self, steps: Iterable[Step]) -> Iterator[blocks.Block]:
        """Trouble, a plan that waits, or success; what is wrong now, and the command of the first step."""
        plan, receipt = self.plan, self.receipt
        if self._refusal is not None or not (plan.steps or plan.sound):
            tone = blocks.Tone.ERROR
        else:
            tone = blocks.Tone.WARNING if plan.steps and not receipt.applied else blocks.Tone.GOOD
        cause = None if self.changed else plan.inspection.cause
        label = "Cause" if plan.steps or self._refusal is not None else "Another problem"
        yield from blocks.show_outcome(
            self._describe_outcome(), tone, steps, f"{label}: {cause.words}" if cause else ""
        )

    def _describe_outcome(self) -> str:
        if self._refusal is not None:
            state = ", and everything is restored" if self.receipt.undone else ""
            return f"{'NO PLAN' if self.plan.refused else 'NOT DONE'}{state}: {self._refusal}"
        if self.receipt.applied:
            return self.done.format(report=self)
        if self.receipt.undone and self.plan.steps:
            return f"UNDONE: the checkpoint is as it was before ckpt {self.receipt.undone_command}"
        if self.receipt.undone:
            return "NOTHING TO UNDO: the original files are in place"
        if self.plan.steps:
            return f"A PLAN, nothing is changed yet: {self.planned.format(report=self)}"
        return f"NOTHING TO {self.verb}: {self.plan.why}"

    def forecasts(self) -> Iterator[blocks.Block]:
        """Forecasts without the steps, and with them; once an undo is done, the other way round."""
        if not self._after:
            yield forecast_cases([f for f in self.plan.before if f.progress in self.modes])
            return
        names = ("Before", "Now") if self.changed else ("Now", "After")
        for name, forecasts in zip(names, (self.plan.before, self._after), strict=True):
            yield blocks.Heading(name)
            yield forecast_cases([f for f in forecasts if f.progress is not Progress.ASYNC])

    def steps(self) -> Iterator[blocks.Block]:
        """Steps with their files."""
        steps = self.plan.steps
        if not steps:
            return
        yield blocks.Heading("Done" if self.changed else "Steps", self.about_steps())
        yield blocks.Table(tuple(map(_tabulate_step, steps[:_STEPS])))
        yield from blocks.more(len(steps) - _STEPS)

    def _show_read_again(self) -> Iterator[blocks.Block]:
        replays = self.plan.replay
        if replays is None or not self.plan.steps:
            return
        yield blocks.Heading("Replayed rows", "those that the log records" if replays else "none that the log records")
        for replay in replays:
            finished = "   may include rows of finished batches" if replay.finished else ""
            yield blocks.Line(f"  batch {replay.batch}{finished}")
            yield from show_ranges(replay.sources)

    def _show_warnings(self) -> Iterator[blocks.Block]:
        """Warnings, none after an undo. The first one, to stop the query, is too late once the plan is applied."""
        shown = self.plan.notices[1:] if self.receipt.applied else self.plan.notices
        if not self.receipt.undone:
            yield from blocks.show_warnings(shown)

    def _show_next(self) -> Iterator[blocks.Block]:
        """Advise what comes after a plan, a change or a refusal."""
        plan, receipt = self.plan, self.receipt
        undo = call(plan.name, plan.root, undo=receipt.backup or "")
        half_done = bool(receipt.problem and receipt.backup and plan.steps) and not receipt.undone
        if receipt.applied:
            after, start = plan.inspection_after, self.start()
            if after is not None and find_trouble(after):
                left = words("Before you start the query, check which problems are left.")
                start = advise(run(self.look, left, rows=self.rows))
            first, *others = start.steps
            back = words("Undo the {change} before you start the query.", change=self.change)
            undoing = run(undo, back, writes=True)
            yield blocks.Next((first.or_(undoing), *others))
        elif half_done:
            yield from blocks.show_call(undo, words("Undo the changes."), writes=True)
        elif plan.steps and not receipt.undone:
            before, apply = (self.stop, *self.first()), words("Apply this plan.")
            yield blocks.Next((run(self._repeated, apply, rows=self.rows, writes=True, before=before),))
        elif plan.refused:
            yield from self.next_if_refused()
        elif plan.needed or receipt.problem or receipt.undone:
            yield from self.show_look()
        else:
            yield from self.next_if_nothing()

    def show_look(self) -> Iterator[blocks.Block]:
        """Advise to look at the checkpoint as it is."""
        return blocks.show_call(self.look, words("Check the checkpoint's current state."))


class ReceiptReport(Report[Receipt]):
    """The receipt of a change."""

    keys = ReceiptKeys

    def page(self) -> blocks.Page:
        receipt = self.record
        if receipt.problem:
            restored = ", and everything is restored" if receipt.undone else ""
            head = blocks.Headline(f"NOT DONE{restored}: {receipt.problem}", blocks.Tone.ERROR)
        elif receipt.applied:
            head = blocks.Headline("DONE", blocks.Tone.GOOD)
        else:
            head = blocks.Headline("UNDONE" if receipt.undone else "NOTHING WAS CHANGED", blocks.Tone.NOTE)
        kept = words("the backup, for {--undo}: {backup}", backup=receipt.backup or "")
        return blocks.page_of([head, *([blocks.Item(kept)] if receipt.backup else [])])


def start_anew(plan: ChangePlan, rows: RowsEffect) -> Advice:
    """Advise how to start a query whose batches were rewound."""
    sink = plan.sink.log.uri if plan.sink is not None else None
    name = f"start_{plan.first}" if sink is None else f"{plan.first}_asked"
    about = BOOK.advise(name, uri=plan.inspection.checkpoint.uri, sink=sink)
    return Advice(tuple(_count_rows(step, rows) for step in about.steps))


def _count_rows(step: advice.Step, rows: RowsEffect) -> advice.Step:
    """Give the steps that a person does the plan's effect on rows."""
    others = tuple(_count_rows(other, rows) for other in step.alternatives)
    return replace(step, rows=rows if step.call is None else step.rows, alternatives=others)


def _tabulate_step(step: FileStep) -> tuple[str, ...]:
    after = FileContent.of(step.after)
    size = "" if after is None else plural(after.size, "byte")
    return step.action, step.path, size, f"a copy of {step.source}" if step.source else ""
