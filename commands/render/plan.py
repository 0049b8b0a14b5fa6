"""A repair plan, and what came of it: as a page for a tired person, and as the JSON document of the contract."""

import json
from collections.abc import Iterator

from ckpt.repair import Plan, Receipt, Replay, Strategy
from ckpt.restart.versions import Progress
from ckpt.shell import quoted_path
from ckpt.sources import advance
from ckpt.verdict import verdict

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
from .document import checkpoint_entry, range_entry, restart_entry, tool
from .findings import next_advice
from .layout import Page, for_standard_output
from .offsets import offset
from .page import forecast_lines, title
from .text import printable


def plan_document(plan: Plan, receipt: Receipt) -> str:
    """The whole report, indented, keys in the order of the contract."""
    report = {
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
        "refused": receipt.problem or plan.refused,
        "undone": receipt.undone,
    }
    return json.dumps(report, indent=2)


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


def plan_page(plan: Plan, receipt: Receipt) -> str:
    """The whole report, for the terminal or pipe that standard output is."""
    layout = for_standard_output()
    parts = (
        title(plan.inspection, layout),
        _headline(plan, receipt, layout),
        _forecasts(plan, receipt, layout),
        steps_section(plan.steps, receipt, layout, f"{plan.strategy}: {plan.why}" if plan.strategy else ""),
        "\n".join(_read_again(plan, layout)),
        warnings_section(plan.warnings, receipt, layout),
        _next(plan, receipt, layout),
    )
    return "\n\n".join(part for part in parts if part)


def _headline(plan: Plan, receipt: Receipt, layout: Page) -> str:
    """What came of it, before anything else."""
    failed = trouble(receipt, plan.refused)
    bad = failed is not None or (not plan.steps and not plan.inspection.sound)
    waits = bool(plan.steps) and not receipt.applied
    return headline(failed or _outcome(plan, receipt), layout, bad=bad, waits=waits)


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


def _forecasts(plan: Plan, receipt: Receipt, layout: Page) -> str:
    """How it starts now, and afterwards; asynchronous starts only where there is nothing to compare."""
    if not plan.after:
        return forecast_lines(plan.before, layout)
    before, after = ([f for f in these if f.progress is Progress.SYNC] for these in (plan.before, plan.after))
    return before_and_after(before, after, receipt, layout)


def _read_again(plan: Plan, layout: Page) -> Iterator[str]:
    if not plan.strategy or not plan.steps:
        return
    yield layout.heading(
        "Again",
        "rows that the log knows of and that are read again"
        if plan.replay
        else "no row that the log knows of is read again",
    )
    for replay in plan.replay:
        yield f"  batch {replay.batch}" + ("   rows of finished batches may be among them" if replay.finished else "")
        for one in replay.sources:
            grown = None if one.end is None else advance(one.start, one.end)
            count = f": {grown.amount:,} {grown.unit}" if grown and grown.amount is not None else ""
            end = "where nobody knows" if one.end is None else offset(one.end)
            yield layout.wrap(printable(f"from {offset(one.start)} to {end}{count}"), 7, f"    {one.index}  ")


def _next(plan: Plan, receipt: Receipt, layout: Page) -> str:
    """What to do now; where there is nothing to repair, that is what ``ckpt inspect`` says."""
    nothing = not (plan.needed or plan.steps or plan.refused or receipt.problem or receipt.undone)
    return next_advice(plan.inspection, layout) if nothing else next_section(*_next_step(plan, receipt), layout)


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
