"""What ``ckpt repair`` adds to the report of a change: the fixes, and what each costs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ckpt.changes.draft import Cost
from ckpt.changes.fixes.repair import LOST_ID, Way, WaysPlan
from ckpt.changes.steps import Step
from ckpt.restart.diagnoses.logs import QUERY_ID
from ckpt.restart.findings import Severity
from ckpt.texts import quoted
from ckpt.versions import Progress

from .blocks import Block, Command, Heading, Item
from .change import ChangeReport, next_command, replay_entry, start_anew
from .document import Document
from .page import forecast_cases
from .text import plural

_NAMED = 3  # how many files are named
_COSTS = {
    Cost.NOTHING: "no row is read again",
    Cost.UNFINISHED_AGAIN: "rows of a batch that was not finished are read again",
    Cost.FINISHED_AGAIN: "rows of finished batches are read again",
    Cost.MAY_LOSE: "a sink that remembers batch ids may drop rows, others get some again",
}


@dataclass(frozen=True, slots=True)
class WaysReport(ChangeReport[WaysPlan]):
    """What ``ckpt repair`` plans or did."""

    query_id: str | None = None
    leftovers: bool = False

    verb = "REPAIR"
    stop = "end the driver"
    back = "the repair"

    def done(self) -> str:
        """The headline once it is applied."""
        return f"REPAIRED: it now {self.afterwards}"

    def planned(self) -> str:
        """What the headline of a plan says of the time after it."""
        return f"afterwards it {self.afterwards}"

    def own_results(self) -> Document:
        """The ways."""
        chosen = self.plan.chosen
        return {"chosen": chosen.name if chosen else None, "ways": [_entry(way) for way in self.plan.ways]}

    def forecasts(self) -> Iterator[Block]:
        """How it starts as it is; the headline says what comes after."""
        if self.receipt.undone or not self.plan.steps:
            yield from ChangeReport.forecasts(self)
        elif not self.receipt.applied:
            yield Heading("Now")
            yield forecast_cases([f for f in self.plan.before if f.progress is Progress.SYNC])

    def steps(self) -> Iterator[Block]:
        """The way that was chosen, in brief."""
        chosen = self.plan.chosen
        if chosen is None or chosen.cost is None:
            yield from ChangeReport.steps(self)
            return
        yield Heading("Fix", f"{chosen.name}{', recommended' if chosen.recommended else ''}: {chosen.does}")
        yield Item(_files(chosen.plan.steps), 10, "  files   ")
        yield Item(_COSTS[chosen.cost], 10, "  rows    ")

    def own_part(self) -> Iterator[Block]:
        """The other ways."""
        others = [way for way in self.plan.ways if way is not self.plan.chosen and not self.receipt.applied]
        if others and self.plan.steps:
            yield Heading("Others", "--choose takes one of them")
            width = max(len(way.name) for way in others) + 4
            yield from (Item(_told(way), width, f"  {way.name}") for way in others)

    def options(self) -> str:
        """What was asked for."""
        chosen, words = self.plan.chosen, []
        if chosen is not None and not chosen.recommended:
            words.append(f"--choose {chosen.name}")
        if self.query_id is not None:
            words.append(f"--query-id {quoted(self.query_id)}")
        if self.leftovers:
            words.append("--leftovers")
        return "".join(f" {word}" for word in words)

    def start(self) -> str:
        """What to do once it is applied."""
        return start_anew(self.plan)

    def next_if_refused(self) -> Iterator[Block]:
        """A remedy that does not lead back here, or else the copy of the checkpoint."""
        if self.plan.refused == LOST_ID and self.plan.found_id is not None:
            found = "it is that of the one query that has written to the sink, if that is this one"
            again = f"ckpt repair {self.path} --query-id {self.plan.found_id}"
            yield from next_command(found, again)
            return
        if self.plan.refused == LOST_ID:
            yield Item(QUERY_ID, 10, "Next", advice=True)
            yield Item("Then", 10)
            yield Command(f"ckpt repair {self.path} --query-id ID")
            return
        errors = [one for one in self.plan.inspection.findings if one.severity is Severity.ERROR]
        elsewhere = next((one.remedy for one in errors if one.remedy and "`ckpt repair " not in one.remedy), None)
        paths = ", ".join(dict.fromkeys(one.finding.path for one in errors[:_NAMED]))
        again = (
            f"put {paths} back from a copy of the checkpoint, and only that. Without a copy what is lost cannot be "
            f"recovered from these files: start the query with a new checkpoint, where `ckpt handoff {self.path}` or "
            f"`ckpt offsets show {self.path}` says; its state begins empty"
        )
        yield Item(elsewhere or again, 10, "Next", advice=True)


def _told(way: Way) -> str:
    if way.cost is None:
        return "not possible: see -o json"
    again = f"{plural(way.batches, 'batch')} again; " if way.batches else ""
    return f"{again}{_COSTS[way.cost].partition(',')[0]}"


def _files(steps: Sequence[Step]) -> str:
    """Few files by their names, many by how many of which folder."""
    if len(steps) <= _NAMED:
        return ", ".join(f"{step.action} {step.path}" for step in steps)
    counted = Counter((step.action, step.path.partition("/")[0]) for step in steps)
    parts = (f"{action} {count} of {folder}" for (action, folder), count in counted.items())
    return f"{', '.join(parts)}; -o json names them"


def _entry(way: Way) -> Document:
    return {
        "name": way.name,
        "recommended": way.recommended,
        "does": way.does or None,
        "steps": len(way.plan.steps),
        "replay": [replay_entry(replay) for replay in way.plan.replay or ()],
        "skipped": [],
        "drops": way.cost is Cost.MAY_LOSE,
        "refused": way.plan.refused,
    }
