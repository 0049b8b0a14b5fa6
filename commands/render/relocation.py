"""A relocation, and what came of it: as a page for a tired person, and as the JSON document of the contract."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt.relocate import Plan, Receipt
from ckpt.shell import quoted_path
from ckpt.versions import Progress

from ..exits import Exit
from .blocks import Block, Heading, Page, bullets, page_of
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
from .document import Document, checkpoint_entry, restart_entry, tool
from .page import forecast_cases, title


@dataclass(frozen=True, slots=True)
class RelocationReport:
    """What ``ckpt relocate`` plans or did.

    ``checkpoint`` and ``to`` are what the user typed: the command to be copied repeats them.
    """

    plan: Plan
    receipt: Receipt
    checkpoint: str
    to: str | None

    @property
    def exit(self) -> Exit:
        """Whether something is to be done, and whether it could be done."""
        if self.receipt.problem or self.plan.refused:
            return Exit.FAILED
        if self.receipt.applied or self.receipt.undone:
            return Exit.OK
        return Exit.OK if self.plan.sound and not self.plan.steps else Exit.FOUND

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
            steps_section(plan.steps, receipt, _from_where(plan)),
            warnings_section(plan.warnings, receipt),
            _held(plan),
            next_section(*_next_step(plan, receipt, self.checkpoint, self.to)),
        )


def _document(plan: Plan, receipt: Receipt) -> Document:
    after = plan.after.forecasts if plan.after and (plan.steps or receipt.undone) else ()
    return {
        "ckpt": tool(),
        "checkpoint": checkpoint_entry(plan.inspection),
        "applied": receipt.applied,
        "backup": receipt.backup,
        "to": plan.to,
        "recorded": list(plan.recorded),
        "needed": plan.needed and not receipt.undone,
        "why": plan.why or None,
        "steps": [step_entry(step) for step in plan.steps],
        "before": [restart_entry(forecast) for forecast in plan.inspection.forecasts],
        "after": [restart_entry(forecast) for forecast in after],
        "held": [{"holder": one.holder, "folder": one.folder, "example": one.example} for one in plan.held],
        "warnings": list(plan.warnings),
        "refused": refusal(receipt, plan.refused),
        "undone": receipt.undone,
    }


def _headline(plan: Plan, receipt: Receipt) -> Iterator[Block]:
    failed = trouble(receipt, plan.refused)
    bad = failed is not None or not (plan.steps or plan.sound)
    waits = bool(plan.steps) and not receipt.applied
    yield from headline(failed or _outcome(plan, receipt), bad=bad, waits=waits)


def _outcome(plan: Plan, receipt: Receipt) -> str:
    afterwards = plan.after.verdict if plan.after else ""
    afterwards = f"opened as {plan.to}, it finds its schemas and {afterwards[:1].lower()}{afterwards[1:]}"
    if receipt.applied:
        return f"RELOCATED: {afterwards}"
    if receipt.undone:
        return undone(plan.steps, "the relocation")
    if plan.steps:
        return f"A PLAN, nothing is changed yet: afterwards, {afterwards}"
    other = "" if plan.sound else ", but something else is wrong"
    return f"NOTHING TO RELOCATE{other}: {plan.why}"


def _forecasts(plan: Plan, receipt: Receipt) -> Iterator[Block]:
    """How it starts, without asynchronous tracking: it refuses state, and only state is relocated."""
    before = [f for f in plan.inspection.forecasts if f.progress is Progress.SYNC]
    if plan.after is None or not (plan.steps or receipt.undone):
        yield forecast_cases(before)
        return
    after = [f for f in plan.after.forecasts if f.progress is Progress.SYNC]
    yield from before_and_after(before, after, receipt)


def _from_where(plan: Plan) -> str:
    """What the steps replace; after an undo only the files tell, and where nothing is recorded nothing is replaced."""
    if plan.to is None or not plan.recorded:
        return ""
    return f"operator metadata looks for its schemas under {plan.to}, no more under {plan.recorded[0]}"


def _held(plan: Plan) -> Iterator[Block]:
    """Other absolute paths, where no warning of a plan has named them."""
    if plan.held and not plan.warnings:
        yield Heading("Paths", "that stay as they are")
        yield from bullets(one.meaning for one in plan.held)


def _next_step(plan: Plan, receipt: Receipt, checkpoint: str, to: str | None) -> tuple[str, str]:
    path = quoted_path(checkpoint)
    relocate = f"ckpt relocate {path}"
    if receipt.applied:
        first = "start the query" if not plan.away else f"bring the checkpoint to {plan.to}, and start the query there"
        return f"{first}; or, before that, take this back with", undo_command(relocate, receipt)
    if half_done(plan.steps, receipt):
        return "put back what was changed", undo_command(relocate, receipt)
    if plan.steps and not receipt.undone:
        target = "" if to is None else f" --to {quoted_path(to)}"
        return "stop the query, then", f"{relocate}{target} --apply"
    if receipt.undone or plan.refused or not plan.sound:
        return "see what is there now", f"ckpt inspect {path}"
    return "start the query as usual", ""
