"""From steps to a plan that is shown to lead where it should: the forecast is that of ``ckpt inspect``."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from ckpt.changes.plan import ChangePlan, inspect_changed
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.inspection.verdict import spell
from ckpt.restart.diagnoses.sinks import FIRST_INTO_NOOP, FIRST_START_UNREADABLE
from ckpt.restart.findings import Asked, Severity
from ckpt.restart.forecast import Forecast
from ckpt.storage import Storage
from ckpt.versions import Progress, Spark

END_FIRST = (
    "End the driver first, not only the query: a start within the same application reads wrong rows silently. ckpt "
    "cannot see whether it is running."
)
"""The first warning of every plan that takes state back."""

MOST_TRIES = 10  # drafts of one fix: each reads and forecasts the checkpoint anew, and a log has many batches

Planned = TypeVar("Planned", bound=ChangePlan)


def check_fix(plan: Planned, storage: Storage, batch: int) -> Planned:
    """A plan with the forecast of what it leads to; refused if no start then runs ``batch`` first."""
    after = inspect_changed(storage, plan.inspection, plan.steps)
    if not runs_on(after, batch):
        return plan.refusing(why_not(after))
    return replace(plan, inspection_after=after, warnings=(*plan.warnings, *still_failing(after, batch)))


def runs_on(found: Inspection, batch: int | None = None) -> tuple[Spark, ...]:
    """The versions that run, started synchronously, and leave no batch out; with ``batch`` first, if one is named."""
    return tuple(f.spark for f in _starts(found) if f.outcome.runs and not f.lost and batch in (None, f.batch_id))


def fails_on(found: Inspection, batch: int | None = None) -> tuple[Spark, ...]:
    """The others that somebody may try."""
    running = runs_on(found, batch)
    return tuple(f.spark for f in _starts(found) if f.spark not in running)


def trouble_left(found: Inspection) -> str | None:
    """What the versions that run have to fear after their first batch."""
    left = inspect(found.checkpoint, runs_on(found), Asked.SYNC).findings
    worst = next(
        (
            one.finding
            for one in left
            if one.severity is Severity.ERROR and one.finding.diagnosis not in (FIRST_INTO_NOOP, FIRST_START_UNREADABLE)
        ),
        None,
    )
    return None if worst is None else f"{worst.path}: {worst.detail} ({worst.diagnosis.code})"


def why_not(found: Inspection) -> str:
    """Why no start would succeed, by what the first of them stumbles over."""
    failing = fails_on(found)
    one = next((f for f in _starts(found) if f.spark in failing), None)
    if one is None:
        return "no Spark version is known to start it"
    if one.lost:
        return f"batches from {one.lost[0]} on would never be run"
    if not one.because:
        return f"the next start would not run as planned ({one.outcome})"
    finding = one.because[0]
    said = f' ("{one.error}")' if one.error else ""
    return f"the next start would fail{said}: {finding.path}: {finding.detail} ({finding.diagnosis.code})"


def still_failing(found: Inspection, batch: int | None = None) -> Iterator[str]:
    """The versions that will not start, where others do, and why."""
    failing = fails_on(found, batch)
    starts = [f for f in _starts(found) if f.spark in failing]
    for error in dict.fromkeys(f.error for f in starts):
        said = f': "{error}"' if error else ""
        yield f"Spark {spell([f.spark for f in starts if f.error == error])} still will not start{said}."


def _starts(found: Inspection) -> list[Forecast]:
    return [f for f in found.counted if f.progress is Progress.SYNC]
