"""The report of every command that changes a checkpoint: the same keys, the same sections, the same way to end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar, assert_never

from ckpt.changes.apply import Receipt
from ckpt.changes.check_fix import find_trouble
from ckpt.changes.plan import ChangePlan, First
from ckpt.changes.steps import FileContent, Step
from ckpt.errors import DISK_FULL
from ckpt.inspection.next_steps import NextStep, RowCost
from ckpt.restart.findings import Forecast
from ckpt.restart.legacy import to_words
from ckpt.restart.sinks import REMEMBERING
from ckpt.texts import plural, quote_path
from ckpt.versions import Progress

from ..arguments import as_options
from .blocks import (
    Block,
    Heading,
    Headline,
    Item,
    Line,
    Next,
    Page,
    Table,
    Tone,
    more,
    page_of,
    show_command,
    show_warnings,
)
from .findings import show_next
from .keys import Keys, derive
from .page import forecast_cases, range_text, show_title
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

    verb: ClassVar[str]  # "REPAIR"
    done: ClassVar[str]  # the headline once it is applied; {report} is this
    planned: ClassVar[str]  # part of the headline of a plan about the time after it, likewise
    back: ClassVar[str] = "this"  # what the page offers to undo
    stop: ClassVar[str] = "stop the query"  # what to do before the plan is applied
    modes: ClassVar[tuple[Progress, ...]] = tuple(Progress)  # that are shown where there is nothing to compare

    @property
    def plan(self) -> Planned:
        return self.record

    @property
    def afterwards(self) -> str:
        """Next start once the steps are done, as the rest of a sentence."""
        return lower(self.plan.verdict_after)

    def nothing(self) -> str:
        """The headline where nothing is to be done."""
        return f"{f'NOTHING TO {self.verb}' if self.plan.sound else 'OTHER PROBLEMS'}: {self.plan.why}"

    def about_steps(self) -> str:
        """Fact about all steps."""
        return ""

    def own_part(self) -> Iterator[Block]:
        """A part of the page that no other command has."""
        yield from ()

    def options(self) -> str:
        """Options of the request, which the command that applies this plan repeats, with a space before each."""
        return ""

    def start(self) -> str:
        """Advice once the change is applied."""
        return "start the query"

    def first(self) -> tuple[str, ...]:
        """Name what a person does elsewhere before the plan is applied."""
        return ()

    def next_if_nothing(self) -> Iterator[Block]:
        """Advice where nothing is to be done: that of ``ckpt inspect``."""
        return show_next(self.plan.inspection)

    def next_if_refused(self) -> Iterator[Block]:
        """Advice where there is no plan, though one is needed."""
        return show_command("see what is there now", self.look)

    @property
    def exit(self) -> Exit:
        if self.receipt.problem or self.plan.refused:
            return Exit.FAILED
        if self.changed:
            return Exit.OK
        return Exit.OK if self.plan.sound and not self.plan.steps else Exit.FOUND

    def document(self) -> Keys:
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

    def page(self) -> Page:
        receipt = self.receipt
        if receipt.problem and receipt.backup is None and self.plan.steps:
            return page_of(self._show_headline(), self._show_next())
        return page_of(
            show_title(self.plan.inspection),
            self._show_headline(),
            self.forecasts(),
            self.steps(),
            self._show_read_again(),
            self._show_warnings(),
            self.own_part(),
            self._show_next(),
        )

    @property
    def path(self) -> str:
        """The checkpoint, as a word of a shell command."""
        return quote_path(self.plan.root)

    @property
    def deep(self) -> str:
        """The option that has every byte of the state read again, with a space before it; empty if none was."""
        return " --deep" * self.plan.inspection.deep

    @property
    def look(self) -> str:
        """The command that shows what is there now."""
        return f"ckpt inspect {self.path}{self.deep}"

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
        return None if reason is None else as_options(reason)

    @property
    def _rows(self) -> RowCost:
        """The cost in rows once the plan is applied and the query started."""
        if self.plan.skips is not None:
            return RowCost.LEFT_OUT
        return RowCost.AGAIN if self.plan.replay or self.plan.repeats is not None else RowCost.NONE

    def _repeat_sink(self) -> str:
        """The sink that the plan is for, with a space before it."""
        sink = self.plan.sink
        return "" if sink is None else f" --sink {quote_path(sink.log.uri)}"

    def _repeat_acceptance(self) -> str:
        """Options that accept a loss, and name the backup: a folder that was refused is not named again."""
        words = " --accept-skip" * (self.plan.skips is not None) + " --accept-replay" * (self.plan.repeats is not None)
        if any(why in (self.receipt.problem or "") for why in ("`backup`", DISK_FULL)):
            return f"{words} --backup DIR"
        return words if self.backup is None else f"{words} --backup {quote_path(self.backup)}"

    def _show_headline(self) -> Iterator[Block]:
        """Trouble, a plan that waits, or success."""
        plan, receipt = self.plan, self.receipt
        if self._refusal is not None or not (plan.steps or plan.sound):
            tone = Tone.ERROR
        else:
            tone = Tone.WARNING if plan.steps and not receipt.applied else Tone.GOOD
        yield Headline(self._describe_outcome(), tone)

    def _describe_outcome(self) -> str:
        if self._refusal is not None:
            state = ", and everything is restored" if self.receipt.undone else ""
            return f"{'NO PLAN' if self.plan.refused else 'NOT DONE'}{state}: {self._refusal}"
        if self.receipt.applied:
            return self.done.format(report=self)
        if self.receipt.undone and self.plan.steps:
            return f"UNDONE: the checkpoint is as it was before ckpt {self.receipt.taken_back}"
        if self.receipt.undone:
            return "NOTHING TO UNDO: everything is as it was"
        return (
            f"A PLAN, nothing is changed yet: {self.planned.format(report=self)}" if self.plan.steps else self.nothing()
        )

    def forecasts(self) -> Iterator[Block]:
        """Forecasts without the steps, and with them; once an undo is done, the other way round."""
        if not self._after:
            yield forecast_cases([f for f in self.plan.before if f.progress in self.modes])
            return
        names = ("Before", "Now") if self.changed else ("Now", "After")
        for name, forecasts in zip(names, (self.plan.before, self._after), strict=True):
            yield Heading(name)
            yield forecast_cases([f for f in forecasts if f.progress is not Progress.ASYNC])

    def steps(self) -> Iterator[Block]:
        """Steps with their files."""
        steps = self.plan.steps
        if not steps:
            return
        yield Heading("Done" if self.changed else "Steps", self.about_steps())
        yield Table(tuple(map(_tabulate_step, steps[:_STEPS])))
        yield from more(len(steps) - _STEPS)

    def _show_read_again(self) -> Iterator[Block]:
        replays = self.plan.replay
        if replays is None or not self.plan.steps:
            return
        which = "rows that the log knows of and that are read again"
        yield Heading("Again", which if replays else "no row that the log knows of is read again")
        for replay in replays:
            finished = "   rows of finished batches may be among them" if replay.finished else ""
            yield Line(f"  batch {replay.batch}{finished}")
            yield from (Item(range_text(reading), 7, f"    {reading.index}  ") for reading in replay.sources)

    def _show_warnings(self) -> Iterator[Block]:
        """Warnings, none after an undo. The first one, to stop the query, is too late once the plan is applied."""
        shown = self.plan.warnings[1:] if self.receipt.applied else self.plan.warnings
        if not self.receipt.undone:
            yield from show_warnings(map(to_words, shown))

    def _show_next(self) -> Iterator[Block]:
        """Advice: what comes after a plan, a change or a refusal."""
        plan, receipt = self.plan, self.receipt
        command = f"ckpt {plan.command} {self.path}"
        undo = f"{command} --undo {quote_path(receipt.backup or '')}"
        half_done = bool(receipt.problem and receipt.backup and plan.steps) and not receipt.undone
        if receipt.applied:
            take_back = NextStep(f"or, before that, undo {self.back}", undo, RowCost.NONE, writes=True)
            after = plan.inspection_after
            if after is not None and find_trouble(after):
                left = NextStep("look at what is left before you start the query", self.look, self._rows)
                yield Next((left, take_back))
            else:
                yield Next((NextStep(self.start(), rows=self._rows), take_back))
        elif half_done:
            yield from show_command("undo what was changed", undo, writes=True)
        elif plan.steps and not receipt.undone:
            options = f"{self.options()}{self._repeat_sink()}{self.deep}{self._repeat_acceptance()}"
            again = f"{command}{options} --apply"
            yield Next(
                (NextStep("apply this plan", again, self._rows, writes=True, before=(self.stop, *self.first())),)
            )
        elif plan.refused:
            yield from self.next_if_refused()
        elif plan.needed or receipt.problem or receipt.undone:
            yield from show_command("see what is there now", self.look)
        else:
            yield from self.next_if_nothing()


def start_anew(plan: ChangePlan) -> str:
    """Advice once batches were rewound."""
    start = "start the query in a new driver"
    match plan.first:
        case First.NOTHING:
            return start
        case First.SINK if plan.sink is not None:
            return f"DO NOT start the query yet: first do what is said above about the sink; then {start}"
        case First.SINK:
            wait = f"DO NOT start the query yet with {REMEMBERING}: first do what is said above about it"
            return f"{wait}. With any other, {start}"
        case First.NOOP:
            sink = f"see with `ckpt preflight {quote_path(plan.inspection.checkpoint.uri)} --sink URI` that CKPT411 "
            other = "" if plan.sink is not None else f"{sink}is not there, if the sink is one that ckpt reads; then, "
            return (
                f"{other}in a new driver, start the query ONCE into noop, as described above; `ckpt preflight` says "
                "START when that is done, not before: then start it as usual"
            )
        case First.NOOP_IF_WRITTEN:
            find = "find out, as described above, whether the sink has the batch"
            return f"{find}; if so {start} ONCE into noop, and then as usual"
    assert_never(plan.first)


def _tabulate_step(step: Step) -> tuple[str, ...]:
    after = FileContent.of(step.after)
    size = "" if after is None else plural(after.size, "byte")
    return step.action, step.path, size, f"a copy of {step.source}" if step.source else ""
