"""Reports of ``ckpt repair``: the fixes, and the cost of each; and of ``ckpt repair-async``."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from ckpt.changes.check_fix import Cost, find_failing, find_running
from ckpt.changes.fixes.repair import LOST_ID, Way, WayName, WaysPlan
from ckpt.changes.fixes.repair_async import RepairPlan, Strategy
from ckpt.changes.plan import First
from ckpt.changes.steps import Step
from ckpt.inspection.inspection import RatedFinding
from ckpt.inspection.next_steps import NextStep, RowCost, drop_repairs, needs_copy, split_remedy
from ckpt.inspection.verdict import spell
from ckpt.restart.diagnoses.logs import QUERY_ID
from ckpt.restart.findings import Severity
from ckpt.texts import plural, quote_word
from ckpt.versions import Progress

from .blocks import Block, Heading, Item, Next, show_command
from .change import ChangeReport, start_anew
from .change_keys import ChangeBody, ChangeHead, ChangeTail, ReplayKeys, WritingStepKeys
from .keys import Keys, of
from .page import forecast_cases, show_not_asked

_NAMED = 3  # how many files are named
_COSTS = {
    Cost.NOTHING: "no row is read again",
    Cost.UNFINISHED_AGAIN: "rows of a batch that was not finished are read again",
    Cost.FINISHED_AGAIN: "rows of finished batches are read again",
    Cost.MAY_LOSE: "a sink that remembers batch ids may drop rows, others get some again",
}


class _Request(Keys):
    needed: Annotated[bool, "something is wrong that a fix may help with"]


class _Way(Keys):
    name: WayName
    recommended: bool
    does: Annotated[str | None, "for people; its words are not fixed", lambda way: way.does or None]
    steps: Annotated[int, "how many files it changes", lambda way: len(way.plan.steps)]
    replay: Annotated[tuple[ReplayKeys, ...], "as `replay`", lambda way: way.plan.replay or ()]
    drops: Annotated[bool, "a sink that remembers batch ids drops rows", lambda way: way.cost is Cost.MAY_LOSE]
    refused: Annotated[str | None, "why it is not possible", of("plan.refused")]


class _Result(Keys):
    chosen: Annotated[WayName | None, "the way that the steps are", lambda plan: plan.chosen and plan.chosen.name]
    ways: Annotated[tuple[_Way, ...], "all there are, cheapest first where they cost alike"]


class WaysDocument(ChangeTail, _Result, ChangeBody, _Request, ChangeHead):
    """The document of ``ckpt repair``."""


@dataclass(frozen=True, slots=True)
class WaysReport(ChangeReport[WaysPlan]):
    """Fixes, and the one that was chosen."""

    keys = WaysDocument
    done = "REPAIRED: it now {report.afterwards}"
    planned = "afterwards it {report.afterwards}"
    verb = "REPAIR"
    stop = "end the driver"
    back = "the repair"

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
            yield Heading("Others", "--choose takes one of them")
            width = max(len(way.name) for way in others) + 4
            yield from (Item(_describe_cost(way), width, f"  {way.name}") for way in others)

    def options(self) -> str:
        chosen = self.plan.chosen
        choose = f" --choose {chosen.name}" if chosen is not None and not chosen.recommended else ""
        query_id = "" if self.plan.query_id is None else f" --query-id {quote_word(self.plan.query_id)}"
        return choose + query_id + " --leftovers" * self.plan.leftovers

    def start(self) -> str:
        return start_anew(self.plan)

    def next_if_refused(self) -> Iterator[Block]:
        if self.plan.refused == LOST_ID and self.plan.found_id is not None:
            text = "only one query has written to the sink: if it is this one, this is its id"
            yield from show_command(text, f"{self.again} --query-id {self.plan.found_id}")
            return
        if self.plan.refused == LOST_ID:
            yield Next(
                (
                    NextStep(QUERY_ID),
                    NextStep(
                        "then write it again, with the old id for ID:",
                        f"{self.again} --query-id ID",
                    ),
                )
            )
            return
        if not self._errors:
            yield Next(drop_repairs(self.plan.inspection.advice.all_steps()))
            return
        remedies = [rated.remedy for rated in self._errors if rated.remedy]
        elsewhere = next((remedy for remedy in remedies if "`ckpt repair" not in remedy), None)
        others = drop_repairs(split_remedy(remedies[0])) if remedies else ()
        again = (
            f"put {self._paths} back from a copy of the checkpoint, and only that. Without a copy, what is lost cannot "
            f"be recovered from these files: start the query with a new checkpoint, at the offsets that `ckpt handoff "
            f"{self.path}` or `ckpt offsets show {self.path}` prints; its state begins empty"
        )
        yield Next(split_remedy(elsewhere) if elsewhere else (NextStep(again, stop=not others), *others))

    @property
    def again(self) -> str:
        """The command that was run, to be run once more."""
        return f"ckpt repair {self.path}{self.deep}"

    def next_if_nothing(self) -> Iterator[Block]:
        """Advice of ``ckpt inspect``, but never to run this command again."""
        inspection = self.plan.inspection
        steps = tuple(inspection.advice.all_steps())
        if not any(step.call is not None and step.call.name == "repair" for step in steps):
            return ChangeReport.next_if_nothing(self)
        running, failing = find_running(inspection), find_failing(inspection)
        if running and not failing and self._errors:
            return self.next_if_refused()
        if not running or not failing:
            return iter((Next(drop_repairs(steps)),))
        start = (
            f"start the query with Spark {spell(running)}, where it restarts. For Spark {spell(failing)} put "
            f"{self._paths} back from a copy of the checkpoint, and only that"
        )
        return iter((Next((NextStep(start, rows=RowCost.NONE),)),))

    @property
    def _errors(self) -> list[RatedFinding]:
        return [rated for rated in self.plan.inspection.findings if rated.severity is Severity.ERROR]

    @property
    def _paths(self) -> str:
        """The first places that are wrong."""
        lost = [rated for rated in self._errors if needs_copy(rated.remedy or "")] or self._errors
        return ", ".join(dict.fromkeys(rated.finding.path for rated in lost[:_NAMED]))


class _AsyncRequest(Keys):
    strategy: Annotated[Literal["fill", "rewind"] | None, "the one chosen; null if there is no plan"]
    needed: Annotated[bool, "there is a gap that stops a synchronous start"]


class RepairDocument(ChangeTail, ChangeBody, _AsyncRequest, ChangeHead):
    """The document of ``ckpt repair-async``."""

    steps: Annotated[tuple[WritingStepKeys, ...], "in order"]
    replay: Annotated[tuple[ReplayKeys, ...], "rows that the log knows of and the next synchronous start reads again"]


class RepairReport(ChangeReport[RepairPlan]):
    """Repair of the gaps of asynchronous progress tracking."""

    keys = RepairDocument
    done = "REPAIRED: without asynchronous progress tracking it now {report.afterwards}"
    planned = "afterwards it {report.afterwards}, without asynchronous progress tracking"
    verb = "REPAIR"
    back = "the repair"

    def about_steps(self) -> str:
        return f"{self.plan.strategy}: {self.plan.why}" if self.plan.strategy else ""

    def options(self) -> str:
        return f" --strategy {self.plan.strategy}" if self.plan.strategy is Strategy.REWIND else ""

    def start(self) -> str:
        return start_anew(self.plan) if self.plan.first is First.SINK else super().start()

    def next_if_refused(self) -> Iterator[Block]:
        return show_command("see whether another fix helps, and what each costs", f"ckpt repair {self.path}{self.deep}")


def _describe_cost(way: Way) -> str:
    if way.cost is None:
        return "not possible: see -o json"
    again = f"{plural(way.batches, 'batch')} again; " if way.batches else ""
    return f"{again}{_COSTS[way.cost].partition(',')[0]}"


def _name_files(steps: Sequence[Step]) -> str:
    """Few files by their names, many by how many of which folder."""
    if len(steps) <= _NAMED:
        return ", ".join(f"{step.action} {step.path}" for step in steps)
    counted = Counter((step.action, step.path.partition("/")[0]) for step in steps)
    parts = (f"{action} {count} of {folder}" for (action, folder), count in counted.items())
    return f"{', '.join(parts)}; -o json names them"
