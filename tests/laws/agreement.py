"""One judgement of whether anything is to repair: what ``inspect`` says of a checkpoint, and what ``repair`` plans.

``repair`` without options plans exactly where a finding advises a repair, and each repair that is advised has a plan.
``--leftovers``, ``--choose`` and ``--query-id`` ask for more: of these only what a finding advises is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import ckpt
from ckpt.advice import Call, Hole
from ckpt.changes.steps import FileStep
from ckpt.checkpoint.reader import LeadsOut
from ckpt.inspection.inspection import Inspection
from commands.render.reports import Exit
from commands.render.ways import WaysReport

_REPAIRS = ("repair", "repair_async")
_ANY_ID = "00000000-0000-4000-8000-000000000000"


def find_disagreements(checkpoint: Path, whole: Path | None = None) -> Iterator[str]:
    """Find what the two say differently of a checkpoint; ``whole`` is the one that it was made of, which has its id."""
    inspection = ckpt.inspect(str(checkpoint))
    if inspection.checkpoint.unfinished:
        return  # ckpt was interrupted: the command that was is named, and no fix is
    advised = [*advised_repairs(inspection)]
    try:
        result = ckpt.repair(str(checkpoint))
    except LeadsOut as out:
        if inspection.sound or advised:
            yield f"sound is {inspection.sound}, {advised} are advised, and repair refuses: {out}"
        return
    plan = result[0]
    if inspection.sound and (plan.steps or plan.refused or plan.needed):
        yield f"nothing to repair, and a plan: {plan.why or plan.refused}"
    if inspection.sound is not (WaysReport.of_value(result).exit is Exit.OK):
        yield f"sound is {inspection.sound}, and repair exits with {WaysReport.of_value(result).exit}"
    if plan.steps and not advised:
        yield f"a plan, and no finding advises one: {plan.chosen and plan.chosen.name}: {plan.why}"
    for call in advised:
        planned = plan.steps if call.name == "repair" and not call.options else _plan(call, checkpoint, whole)
        if not planned:
            yield f"advised, and it plans nothing: {call}"


def advised_repairs(inspection: Inspection) -> Iterator[Call]:
    """The repairs that findings advise, each once; a note is about starts that nobody tries, or asks for more."""
    steps = (step for rated in inspection.troubles if rated.advice for step in rated.advice.all_steps())
    parts = (part for step in steps for part in (step.do, *step.what.parts))
    yield from dict.fromkeys(part for part in parts if isinstance(part, Call) and part.name in _REPAIRS)


def _plan(call: Call, checkpoint: Path, whole: Path | None) -> Sequence[FileStep]:
    """The steps that a command plans; a query id that only the user knows is read from the intact checkpoint."""
    known = whole and whole / "metadata"
    query_id = json.loads(known.read_text())["id"] if known and known.exists() else _ANY_ID
    options = {name: query_id if value is Hole.ID else value for name, value in call.options}
    steps: Sequence[FileStep] = getattr(ckpt, call.name)(str(checkpoint), **options)[0].steps
    return steps
