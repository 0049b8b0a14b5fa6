"""A repair plan, and what came of it: as a page for a tired person, and as the JSON document of the contract."""

import json
import shlex
from collections.abc import Iterator

from ckpt.change.steps import Step
from ckpt.findings import Severity
from ckpt.model import Json
from ckpt.repair import Plan, Receipt, Replay, Strategy
from ckpt.repair.words import STOP_FIRST
from ckpt.restart.versions import Progress
from ckpt.sources import advance
from ckpt.verdict import verdict

from .document import checkpoint_entry, range_entry, restart_entry, tool
from .findings import COLOURS
from .layout import Page, for_standard_output
from .offsets import offset
from .page import forecast_lines, title
from .text import plural, printable

_STEPS = 12  # how many steps are named


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
        "steps": [_step(step) for step in plan.steps],
        "before": [restart_entry(forecast) for forecast in plan.before],
        "after": [restart_entry(forecast) for forecast in plan.after],
        "replay": [_replay(replay) for replay in plan.replay],
        "warnings": list(plan.warnings),
        "refused": receipt.problem or plan.refused,
        "undone": receipt.undone,
    }
    return json.dumps(report, indent=2)


def _step(step: Step) -> dict[str, Json]:
    written = step.before if step.after is None else step.after
    return {"action": step.action, "path": step.path, "bytes": len(written or b""), "from": step.source}


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
        "\n".join(_steps(plan, receipt, layout)),
        "\n".join(_read_again(plan, layout)),
        "\n".join(_warnings(plan, receipt, layout)),
        _next(plan, receipt, layout),
    )
    return "\n\n".join(part for part in parts if part)


def _headline(plan: Plan, receipt: Receipt, layout: Page) -> str:
    """What came of it, before anything else."""
    trouble = receipt.problem or plan.refused
    afterwards = verdict(plan.starts_after) if plan.starts_after else ""
    afterwards = afterwards[:1].lower() + afterwards[1:]
    if trouble is not None:
        state = ", and everything is as it was" if receipt.undone else ""
        said = f"{'NO PLAN' if plan.refused else 'NOT DONE'}{state}: {printable(trouble)}"
    elif receipt.applied:
        said = f"REPAIRED: without asynchronous progress tracking it now {afterwards}"
    elif receipt.undone:
        said = (
            "UNDONE: the checkpoint is as it was before the repair"
            if plan.steps
            else "NOTHING TO UNDO: all is as it was"
        )
    elif plan.steps:
        said = f"A PLAN, nothing is changed yet: afterwards it {afterwards}, without asynchronous progress tracking"
    else:
        said = f"{'NOTHING TO REPAIR' if plan.inspection.sound else 'ANOTHER TROUBLE'}: {plan.why}"
    bad = trouble is not None or (not plan.steps and not plan.inspection.sound)
    colour = COLOURS[Severity.ERROR] if bad else "33;1" if plan.steps and not receipt.applied else "32;1"
    return "\n".join(layout.paint(line, colour) for line in layout.wrap(said, 0).splitlines())


def _forecasts(plan: Plan, receipt: Receipt, layout: Page) -> str:
    """How it starts now, and afterwards; asynchronous starts only where there is nothing to compare."""
    if not plan.after:
        return forecast_lines(plan.before, layout)
    before, after = ([f for f in these if f.progress is Progress.SYNC] for these in (plan.before, plan.after))
    done = receipt.applied or receipt.undone
    lines = [layout.heading("Before" if done else "Now"), forecast_lines(before, layout)]
    return "\n".join([*lines, layout.heading("Now" if done else "After"), forecast_lines(after, layout)])


def _steps(plan: Plan, receipt: Receipt, layout: Page) -> Iterator[str]:
    if not plan.steps:
        return
    done = receipt.applied or receipt.undone
    yield layout.heading("Done" if done else "Steps", f"{plan.strategy}: {plan.why}" if plan.strategy else "")
    rows = []
    for step in plan.steps[:_STEPS]:
        size = "" if step.after is None else plural(len(step.after), "byte")
        rows.append([step.action, printable(step.path), size, f"a copy of {step.source}" if step.source else ""])
    yield layout.columns(rows)
    if len(plan.steps) > _STEPS:
        yield f"  and {len(plan.steps) - _STEPS} more, which -o json names"


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


def _warnings(plan: Plan, receipt: Receipt, layout: Page) -> Iterator[str]:
    if not plan.warnings or receipt.undone:
        return
    yield layout.heading("Mind")
    for warning in plan.warnings:
        if receipt.applied and warning == STOP_FIRST:
            continue
        yield layout.wrap(printable(warning), 4, "  - ")


def _next(plan: Plan, receipt: Receipt, layout: Page) -> str:
    """What to do now; a command stands on a line of its own, to be copied."""
    said, command = _next_step(plan, receipt)
    lines = [layout.wrap(said, 10, "Next")]
    return "\n".join([*lines, f"          {command}"] if command else lines)


def _next_step(plan: Plan, receipt: Receipt) -> tuple[str, str]:
    path = shlex.quote(plan.inspection.checkpoint.uri)
    repair = f"ckpt repair-async {path}"
    if receipt.applied:
        return "start the query; or, before that, take the repair back with", f"{repair} --undo {_quoted(receipt)}"
    if receipt.problem and receipt.backup and not receipt.undone:
        return "put back what was changed", f"{repair} --undo {_quoted(receipt)}"
    if plan.steps and not receipt.undone:
        chosen = f" --strategy {plan.strategy}" if plan.strategy is Strategy.REWIND else ""
        accept = " --accept-replay" if plan.must_accept_replay else ""
        return "stop the query, then", f"{repair}{chosen}{accept} --apply"
    if receipt.undone or plan.refused or not plan.inspection.sound:
        return "see what is there now", f"ckpt inspect {path}"
    return "start the query as usual", ""


def _quoted(receipt: Receipt) -> str:
    return shlex.quote(receipt.backup or "")
