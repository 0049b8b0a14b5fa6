"""Reports of ``ckpt repair``: the fixes, and the cost of each; and of ``ckpt repair-async``."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from ckpt.advice import NO_ROWS, Advice, Do, Words, call, do, words
from ckpt.advice.calls import Value
from ckpt.changes.check_fix import Cost, find_failing, find_running
from ckpt.changes.fixes.advised import advise_instead, advise_put_back
from ckpt.changes.fixes.repair import Fix, FixName, RepairPlan
from ckpt.changes.fixes.repair_async import AsyncRepairPlan, Strategy
from ckpt.changes.plan import First
from ckpt.changes.steps import FileStep
from ckpt.inspection.verdict import spell
from ckpt.restart.findings import Severity
from ckpt.texts import plural
from ckpt.versions import Progress

from .blocks import Block, Heading, Item, Next, show_call
from .change import ChangeReport, start_anew
from .change_keys import ChangeDocument, ReplayKeys, WritingStepKeys
from .keys import Keys, of
from .page import forecast_cases, show_not_asked

_NAMED = 3  # how many files are named
_COSTS = {
    Cost.NOTHING: "no row is read again",
    Cost.UNFINISHED_AGAIN: "rows of an unfinished batch are read again",
    Cost.FINISHED_AGAIN: "rows of finished batches are read again",
    Cost.MAY_LOSE: "a sink that remembers batch ids may drop rows, and other sinks get some rows again",
}


class _Way(Keys, record=Fix, keys="name recommended does steps replay drops refused"):
    does: Annotated[str | None, lambda way: way.does or None]
    steps: Annotated[int, lambda way: len(way.plan.steps)]
    replay: Annotated[tuple[ReplayKeys, ...], lambda way: way.plan.replay or ()]
    drops: Annotated[bool, lambda way: way.cost is Cost.MAY_LOSE]
    refused: Annotated[str | None, of("plan.refused")]


class WaysDocument(ChangeDocument, record=RepairPlan, request="needed", result="chosen ways"):
    """The document of ``ckpt repair``."""

    chosen: Annotated[FixName | None, lambda plan: plan.chosen and plan.chosen.name]
    ways: tuple[_Way, ...]


class WaysReport(ChangeReport[RepairPlan]):
    """Fixes, and the one that was chosen."""

    keys = WaysDocument
    done = "REPAIRED: it now {report.afterwards}"
    planned = "afterwards it {report.afterwards}"
    verb = "REPAIR"
    stop = words("End the driver.")
    change = "repair"

    def forecasts(self) -> Iterator[Block]:
        if self.receipt.undone or not self.plan.steps:
            yield from ChangeReport.forecasts(self)
        elif not self.receipt.applied:
            yield Heading("Now")
            yield forecast_cases([f for f in self.plan.before if f.progress is Progress.SYNC])

    def steps(self) -> Iterator[Block]:
        chosen = self.plan.chosen
        if chosen is None or chosen.cost is None:
            yield from ChangeReport.steps(self)
            return
        yield Heading("Fix", f"{chosen.name}{', recommended' if chosen.recommended else ''}: {chosen.does}")
        yield Item(_name_files(chosen.plan.steps), 10, "  files   ")
        yield Item(_COSTS[chosen.cost], 10, "  rows    ")

    def own_part(self) -> Iterator[Block]:
        if self.plan.sound and not self.plan.steps:
            yield from show_not_asked(self.plan.inspection)
        others = [way for way in self.plan.ways if way is not self.plan.chosen and not self.receipt.applied]
        if others and self.plan.steps:
            yield Heading("Other fixes", str(words("use {--choose} to select a fix")))
            width = max(len(way.name) for way in others) + 4
            yield from (Item(_describe_cost(way), width, f"  {way.name}") for way in others)

    def options(self) -> dict[str, Value | None]:
        chosen = self.plan.chosen
        return {
            "choose": chosen.name.value if chosen is not None and not chosen.recommended else None,
            "query_id": self.plan.query_id,
            "leftovers": self.plan.leftovers or None,
        }

    def start(self) -> Advice:
        return start_anew(self.plan, self.rows)

    def next_if_refused(self) -> Iterator[Block]:
        return iter((Next(advise_instead(self.plan).steps),))

    def next_if_nothing(self) -> Iterator[Block]:
        """Advise what ``ckpt inspect`` does, but never to run this command again."""
        inspection = self.plan.inspection
        if not inspection.advice.repairs:
            return ChangeReport.next_if_nothing(self)
        running, failing = find_running(inspection), find_failing(inspection)
        if running and not failing and any(each.severity is Severity.ERROR for each in inspection.findings):
            return self.next_if_refused()
        if not running or not failing:
            return iter((Next(inspection.advice.without_repairs().steps),))
        start = words("Start the query with Spark {versions}, where it restarts.", versions=spell(running))
        versions = words("For Spark {versions}: ", versions=spell(failing))
        puts = (replace(put, what=versions + put.what) for put in advise_put_back(inspection))
        return iter((Next((do(Do.START, start, rows=NO_ROWS).or_(*puts),)),))


class RepairDocument(ChangeDocument, record=AsyncRepairPlan, request="strategy needed"):
    """The document of ``ckpt repair-async``."""

    strategy: Literal["fill", "rewind"] | None
    steps: tuple[WritingStepKeys, ...]


class RepairReport(ChangeReport[AsyncRepairPlan]):
    """Repair of the gaps of asynchronous progress tracking."""

    keys = RepairDocument
    done = "REPAIRED: without asynchronous progress tracking it now {report.afterwards}"
    planned = "afterwards the query {report.afterwards}, without asynchronous progress tracking"
    verb = "REPAIR"
    change = "repair"

    def about_steps(self) -> str:
        return f"{self.plan.strategy}: {self.plan.why}" if self.plan.strategy else ""

    def options(self) -> dict[str, Value | None]:
        return {"strategy": self.plan.strategy.value if self.plan.strategy is Strategy.REWIND else None}

    def start(self) -> Advice:
        return start_anew(self.plan, self.rows) if self.plan.first is First.SINK else super().start()

    def next_if_refused(self) -> Iterator[Block]:
        if self.plan.repairs is not None and self.plan.repairs.refused is not None:
            return WaysReport(self.plan.repairs, self.receipt).next_if_refused()
        return show_call(call("repair", self.plan.root).but(deep=self.deep), words("See the other fixes."))


def _describe_cost(way: Fix) -> str | Words:
    if way.cost is None:
        return words("not possible: see {fields}")
    again = f"{plural(way.batches, 'batch')} again; " if way.batches else ""
    return f"{again}{_COSTS[way.cost].partition(',')[0]}"


def _name_files(steps: Sequence[FileStep]) -> str | Words:
    """Few files by their names, many by how many of which folder."""
    if len(steps) <= _NAMED:
        return ", ".join(f"{step.action} {step.path}" for step in steps)
    counted = Counter((step.action, step.path.partition("/")[0]) for step in steps)
    parts = (f"{action} {count} of {folder}" for (action, folder), count in counted.items())
    return words("{counts}; see {fields}", counts=", ".join(parts))
