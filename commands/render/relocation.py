"""A relocation, and what came of it: as a page for a tired person, and as the JSON document of the contract."""

import json

from ckpt.relocate import Plan, Receipt
from ckpt.restart.versions import Progress
from ckpt.shell import quoted_path

from .change import (
    before_and_after,
    half_done,
    headline,
    next_section,
    step_entry,
    steps_section,
    trouble,
    undo_command,
    undone,
    warnings_section,
)
from .document import checkpoint_entry, restart_entry, tool
from .layout import Page, for_standard_output
from .page import forecast_lines, title
from .text import printable


def relocation_document(plan: Plan, receipt: Receipt) -> str:
    """The whole report, indented, keys in the order of the contract."""
    after = plan.after.forecasts if plan.after and (plan.steps or receipt.undone) else ()
    report = {
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
        "refused": receipt.problem or plan.refused,
        "undone": receipt.undone,
    }
    return json.dumps(report, indent=2)


def relocation_page(plan: Plan, receipt: Receipt, checkpoint: str, to: str | None) -> str:
    """The whole report, for the terminal or pipe that standard output is.

    ``checkpoint`` and ``to`` are what the user typed: the command to be copied repeats them.
    """
    layout = for_standard_output()
    parts = (
        title(plan.inspection, layout),
        _headline(plan, receipt, layout),
        _forecasts(plan, receipt, layout),
        steps_section(plan.steps, receipt, layout, _from_where(plan)),
        warnings_section(plan.warnings, receipt, layout),
        _held(plan, layout),
        next_section(*_next_step(plan, receipt, checkpoint, to), layout),
    )
    return "\n\n".join(part for part in parts if part)


def _headline(plan: Plan, receipt: Receipt, layout: Page) -> str:
    failed = trouble(receipt, plan.refused)
    bad = failed is not None or not (plan.steps or plan.sound)
    waits = bool(plan.steps) and not receipt.applied
    return headline(failed or _outcome(plan, receipt), layout, bad=bad, waits=waits)


def _outcome(plan: Plan, receipt: Receipt) -> str:
    afterwards = plan.after.verdict if plan.after else ""
    afterwards = f"opened as {plan.to}, it finds its schemas and {afterwards[:1].lower()}{afterwards[1:]}"
    if receipt.applied:
        return printable(f"RELOCATED: {afterwards}")
    if receipt.undone:
        return undone(plan.steps, "the relocation")
    if plan.steps:
        return printable(f"A PLAN, nothing is changed yet: afterwards, {afterwards}")
    other = "" if plan.sound else ", but something else is wrong"
    return printable(f"NOTHING TO RELOCATE{other}: {plan.why}")


def _forecasts(plan: Plan, receipt: Receipt, layout: Page) -> str:
    """How it starts, without asynchronous tracking: it refuses state, and only state is relocated."""
    before = [f for f in plan.inspection.forecasts if f.progress is Progress.SYNC]
    if plan.after is None or not (plan.steps or receipt.undone):
        return forecast_lines(before, layout)
    after = [f for f in plan.after.forecasts if f.progress is Progress.SYNC]
    return before_and_after(before, after, receipt, layout)


def _from_where(plan: Plan) -> str:
    """What the steps replace; after an undo only the files tell, and where nothing is recorded nothing is replaced."""
    if plan.to is None or not plan.recorded:
        return ""
    return printable(f"operator metadata looks for its schemas under {plan.to}, no more under {plan.recorded[0]}")


def _held(plan: Plan, layout: Page) -> str:
    """Other absolute paths, where no warning of a plan has named them."""
    if not plan.held or plan.warnings:
        return ""
    lines = [layout.wrap(printable(one.meaning), 4, "  - ") for one in plan.held]
    return "\n".join([layout.heading("Paths", "that stay as they are"), *lines])


def _next_step(plan: Plan, receipt: Receipt, checkpoint: str, to: str | None) -> tuple[str, str]:
    path = quoted_path(checkpoint)
    relocate = f"ckpt relocate {path}"
    if receipt.applied:
        first = "start the query" if not plan.away else f"bring the checkpoint to {plan.to}, and start the query there"
        return printable(f"{first}; or, before that, take this back with"), undo_command(relocate, receipt)
    if half_done(plan.steps, receipt):
        return "put back what was changed", undo_command(relocate, receipt)
    if plan.steps and not receipt.undone:
        target = "" if to is None else f" --to {quoted_path(to)}"
        return "stop the query, then", f"{relocate}{target} --apply"
    if receipt.undone or plan.refused or not plan.sound:
        return "see what is there now", f"ckpt inspect {path}"
    return "start the query as usual", ""
