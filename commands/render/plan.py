"""A repair plan, and what came of it: as a page for a tired person, and as the JSON document of the contract."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.repair import Plan, Receipt, Replay, Strategy
from ckpt.shell import quoted_path
from ckpt.sources import advance
from ckpt.verdict import verdict
from ckpt.versions import Progress

from ..exits import Exit
from .blocks import Block, Heading, Item, Line, Page, page_of
from .change import (
    before_and_after,
    half_done,
    headline,
    next_section,
    refusal,
    step_entry,
    steps_section,
    trouble,
    undo_command,
    undone,
    warnings_section,
)
from .document import Document, checkpoint_entry, range_entry, restart_entry, tool
from .findings import next_advice
from .offsets import counted, offset
from .page import forecast_cases, title


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What ``ckpt repair-async`` plans or did."""

    plan: Plan
    receipt: Receipt

    @property
    def exit(self) -> Exit:
        """Whether something is to be done, and whether it could be done."""
        if self.receipt.problem or self.plan.refused:
            return Exit.FAILED
        if self.receipt.applied or self.receipt.undone:
            return Exit.OK
        return Exit.FOUND if self.plan.steps or not self.plan.inspection.sound else Exit.OK

    def document(self) -> Document:
        """All of it."""
        return _document(self.plan, self.receipt)

    def page(self) -> Page:
        """What came of it, the forecasts, the steps, and what to do."""
        plan, receipt = self.plan, self.receipt
        return page_of(
            title(plan.inspection),
            _headline(plan, receipt),
            _forecasts(plan, receipt),
            steps_section(plan.steps, receipt, f"{plan.strategy}: {plan.why}" if plan.strategy else ""),
            _read_again(plan),
            warnings_section(plan.warnings, receipt),
            _next(plan, receipt),
        )


def _document(plan: Plan, receipt: Receipt) -> Document:
    return {
        "ckpt": tool(),
        "checkpoint": checkpoint_entry(plan.inspection),
        "applied": receipt.applied,
        "backup": receipt.backup,
        "strategy": plan.strategy,
        "needed": plan.needed,
        "why": plan.why or None,
        "steps": [step_entry(step) for step in plan.steps],
        "before": [restart_entry(forecast) for forecast in plan.before],
        "after": [restart_entry(forecast) for forecast in plan.after],
        "replay": [_replay(replay) for replay in plan.replay],
        "warnings": list(plan.warnings),
        "refused": refusal(receipt, plan.refused),
        "undone": receipt.undone,
    }


def _replay(replay: Replay) -> dict[str, object]:
    return {
        "batch": replay.batch,
        "sources": [
            {**range_entry(one), "amount": grown.amount if grown else None, "unit": grown.unit if grown else None}
            for one in replay.sources
            for grown in [None if one.end is None else advance(one.start, one.end)]
        ],
        "finished": replay.finished,
    }


def _headline(plan: Plan, receipt: Receipt) -> Iterator[Block]:
    """What came of it, before anything else."""
    failed = trouble(receipt, plan.refused)
    bad = failed is not None or (not plan.steps and not plan.inspection.sound)
    waits = bool(plan.steps) and not receipt.applied
    yield from headline(failed or _outcome(plan, receipt), bad=bad, waits=waits)


def _outcome(plan: Plan, receipt: Receipt) -> str:
    afterwards = verdict(plan.starts_after) if plan.starts_after else ""
    afterwards = afterwards[:1].lower() + afterwards[1:]
    if receipt.applied:
        return f"REPAIRED: without asynchronous progress tracking it now {afterwards}"
    if receipt.undone:
        return undone(plan.steps, "the repair")
    if plan.steps:
        return f"A PLAN, nothing is changed yet: afterwards it {afterwards}, without asynchronous progress tracking"
    return f"{'NOTHING TO REPAIR' if plan.inspection.sound else 'ANOTHER TROUBLE'}: {plan.why}"


def _forecasts(plan: Plan, receipt: Receipt) -> Iterator[Block]:
    """How it starts now, and afterwards; asynchronous starts only where there is nothing to compare."""
    if not plan.after:
        yield forecast_cases(plan.before)
        return
    before, after = ([f for f in these if f.progress is Progress.SYNC] for these in (plan.before, plan.after))
    yield from before_and_after(before, after, receipt)


def _read_again(plan: Plan) -> Iterator[Block]:
    if not plan.strategy or not plan.steps:
        return
    yield Heading(
        "Again",
        "rows that the log knows of and that are read again"
        if plan.replay
        else "no row that the log knows of is read again",
    )
    for replay in plan.replay:
        yield Line(
            f"  batch {replay.batch}" + ("   rows of finished batches may be among them" if replay.finished else "")
        )
        for one in replay.sources:
            grown = None if one.end is None else advance(one.start, one.end)
            count = f": {counted(grown.amount, grown.unit)}" if grown and grown.amount is not None else ""
            end = "where nobody knows" if one.end is None else offset(one.end)
            yield Item(f"from {offset(one.start)} to {end}{count}", 7, f"    {one.index}  ")


def _next(plan: Plan, receipt: Receipt) -> Iterator[Block]:
    """What to do now; where there is nothing to repair, that is what ``ckpt inspect`` says."""
    nothing = not (plan.needed or plan.steps or plan.refused or receipt.problem or receipt.undone)
    yield from next_advice(plan.inspection) if nothing else next_section(*_next_step(plan, receipt))


def _next_step(plan: Plan, receipt: Receipt) -> tuple[str, str]:
    path = quoted_path(plan.inspection.checkpoint.uri)
    repair = f"ckpt repair-async {path}"
    if receipt.applied:
        return "start the query; or, before that, take the repair back with", undo_command(repair, receipt)
    if half_done(plan.steps, receipt):
        return "put back what was changed", undo_command(repair, receipt)
    if plan.steps and not receipt.undone:
        chosen = f" --strategy {plan.strategy}" if plan.strategy is Strategy.REWIND else ""
        accept = " --accept-replay" if plan.must_accept_replay else ""
        return "stop the query, then", f"{repair}{chosen}{accept} --apply"
    return "see what is there now", f"ckpt inspect {path}"
