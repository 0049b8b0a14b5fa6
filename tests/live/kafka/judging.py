"""Where what ckpt said before a start differs from what Spark then did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ckpt import Inspection
from ckpt.live.outlook import SourceOutcome
from ckpt.restart.findings import Outcome
from ckpt.versions import Progress
from tests.live.kafka.cases import Case

RECREATED = "recreated-"


def disagreements(case: Case, found: Inspection, said: dict[str, Any]) -> Iterator[str]:
    """`said` is the answer of `tests/live/kafka/cases.py`."""
    (forecast,) = (one for one in found.forecasts if one.progress is Progress.SYNC)
    (seen,) = found.live
    fails = said["error"] is not None
    later = not case.committed and any(one.later and one.fate.fails for one in seen.parts)
    if (seen.outcome is SourceOutcome.FAILS) != fails:
        yield f"told {seen.outcome}, {said}"
    if (forecast.outcome is not Outcome.RESUMES) != (fails and not later):
        yield f"forecast {forecast.outcome}, {said}"
    if fails and forecast.error and forecast.error not in (said["error"] or ""):
        yield f"forecast {forecast.error!r}, Spark: {said['error']}"
    rows = sum(count for _, count in said["batches"])
    if not fails and rows != seen.waiting:
        yield f"{seen.waiting} offsets wait, {rows} were read"
    there = sum(one.now.latest - one.now.earliest for one in seen.parts if one.now)
    if not fails and case.incident.startswith(RECREATED) and rows + (seen.lost or 0) != there:
        yield f"the new topic has {there} rows, {rows} were read, {seen.lost} were to be lost"
    left = said["newest"][0] == 2
    if fails and case.committed and left != (forecast.outcome is Outcome.FAILS_IN_BATCH):
        yield f"forecast {forecast.outcome}, and the newest offsets file is {said['newest']}"
    if found.sound == (seen.outcome is not SourceOutcome.CONTINUES or bool(seen.lost)):
        yield f"sound: {found.sound}, {seen.outcome}, {seen.lost} lost"
