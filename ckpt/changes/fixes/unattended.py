"""``ckpt preflight --fix safe``: apply what touches no row, where that is all that a start needs; else change nothing.

Whether a fix touches rows is said by the fix (``ChangePlan.rows``), and that it is all that is needed by the judge of
the start, asked about the checkpoint as the fixes would leave it. They are applied as one change, with one backup.
Two at once: the change is locked, and refused if anything is not as it was when it was planned.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from ckpt.advice import RowCost
from ckpt.changes.apply import apply_plan
from ckpt.changes.backup import backup_to
from ckpt.changes.fixes.repair import plan_repairs
from ckpt.changes.plan import ChangePlan, inspect_changed
from ckpt.changes.relocate.plan import plan_relocation
from ckpt.changes.steps import FileStep, view_changed
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.errors import CkptError, UsageError, one_line
from ckpt.inspection.checks.sink import SinkOutcome
from ckpt.inspection.preflight import Readiness
from ckpt.live.outlook import SourceOutcome
from ckpt.live.sink.records import SinkLog
from ckpt.restart import diagnoses
from ckpt.storage import Storage, open_storage
from ckpt.storage.local_writer import open_writer
from ckpt.versions import Spark

_MOST = 3  # fixes one after the other: tidying and a log, and a relocation


@dataclass(frozen=True, slots=True)
class AppliedFix:
    """A fix that was applied."""

    fix: Annotated[str, "as in `ways[].name` of `ckpt repair`, or `relocate`"]
    does: Annotated[str, "for people; its words are not fixed"]
    backup: Annotated[str, "the folder with the original files"]
    steps: tuple[FileStep, ...]


@dataclass(frozen=True, slots=True)
class FixOutcome:
    """The fixes that were applied, or why none was; neither where a start needs none."""

    fixed: tuple[AppliedFix, ...] = ()
    not_fixed: str | None = None  # one line

    @property
    def backup(self) -> str | None:
        """The folder with the original files."""
        return self.fixed[0].backup if self.fixed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _SafePlan(ChangePlan):
    """Fixes that touch no row, as one change."""

    command: ClassVar[str] = "preflight"
    needs_lock: ClassVar[bool] = True


def fix_safely(
    uri: str,
    storage_options: dict[str, str],
    readiness: Readiness,
    *,
    names_only: bool = False,
    backup: str | None = None,
    grace: float = 30.0,
) -> FixOutcome:
    """Apply the fixes after which a query can be started, if none of them touches a row.

    Args:
        uri: The checkpoint, as ``open_checkpoint`` takes it.
        storage_options: For its file system, and that of the backup where it is remote.
        readiness: The answer to whether the query can be started as it is.
        names_only: It was given without reading the state, and so is the plan.
        backup: A folder that does not exist yet; by default ``<checkpoint>.ckpt-backup-<UTC time>``.
        grace: How many seconds old the youngest file must be.

    Raises:
        UsageError: The backup would be inside the checkpoint, or has no place.
    """
    if readiness.go:
        return FixOutcome()
    forbidden = _find_reason_to_leave(readiness)
    if forbidden is not None:
        return FixOutcome(not_fixed=forbidden)
    try:
        storage = open_storage(uri, storage_options)
        storage.names_only = names_only
        if readiness.inspection.deep:
            from ckpt.state.verify.verify import look_at_every_byte  # not at the top: it needs the extra ``native``

            look_at_every_byte(storage, storage_options)
        fixes, plan = _plan_fixes(storage, readiness)
    except CkptError as error:
        return FixOutcome(not_fixed=str(error))
    if plan.refused is not None:
        return FixOutcome(not_fixed=str(plan.refused))
    writer, kept_at = open_writer(uri, storage_options), backup_to(backup, uri, storage_options)
    receipt = apply_plan(plan, storage, writer, kept_at, grace)
    if not receipt.applied or receipt.backup is None:
        return FixOutcome(not_fixed=(receipt.problem or "").removeprefix("nothing was changed: "))
    return FixOutcome(tuple(replace(fix, backup=receipt.backup) for fix in fixes))


def _find_reason_to_leave(readiness: Readiness) -> str | None:
    """Why nothing is tried: somebody writes here, or something that was asked about is not known."""
    inspection = readiness.inspection
    if any(hold.finding.diagnosis is diagnoses.starting.SECOND_DRIVER for hold in readiness.holds):
        return "something is writing to the checkpoint"
    if any(source.outcome is SourceOutcome.UNKNOWN for source in inspection.live):
        return "a source that was asked did not report its offsets"
    sink = inspection.sink
    if sink is not None and sink.outcome is SinkOutcome.UNKNOWN and not sink.log.keeps_no_ids:
        return "the sink that was asked did not report its batches"
    if inspection.checkpoint.offsets.latest is None:
        return "no batch is planned here, so there is nothing that a fix could keep"
    return None


def _plan_fixes(storage: Storage, readiness: Readiness) -> tuple[list[AppliedFix], ChangePlan]:
    """Plan fixes until the query could be started. The plan is refused where a person has to decide."""
    versions = tuple(dict.fromkeys(forecast.spark for forecast in readiness.inspection.counted))
    sink = None if readiness.inspection.sink is None else readiness.inspection.sink.log
    blank = _SafePlan(inspection=readiness.inspection, needed=True)
    steps: tuple[FileStep, ...] = ()
    fixes: list[AppliedFix] = []
    opened_as, current = None, storage
    for _ in range(_MOST):
        name, plan = _choose_fix(current, versions, sink)
        if plan.refused is not None:
            return fixes, blank.refusing(plan.refused)
        blank = blank if fixes else replace(blank, inspection=plan.inspection)
        steps, opened_as = (*steps, *plan.steps), opened_as or plan.opened_as
        fixes.append(AppliedFix(name, plan.why, "", plan.steps))
        current = view_changed(storage, blank.inspection.checkpoint.listing, steps)
        left = readiness.judge_again(read_checkpoint(current, look_only=True))
        if left.go:
            after = inspect_changed(storage, blank.inspection, steps, versions, opened_as)
            done = replace(blank, steps=steps, inspection_after=after, opened_as=opened_as, rows=RowCost.NONE)
            return fixes, done.if_possible()
    return fixes, blank.refusing(f"fixes that touch no row are not enough: {left.verdict}")


def _choose_fix(storage: Storage, versions: Sequence[Spark], sink: SinkLog | None) -> tuple[str, ChangePlan]:
    """The next fix that touches no row; refused where there is none, with the reason."""
    repairs = plan_repairs(storage, versions=versions, sink=sink)
    for way in repairs.ways:
        if way.plan.unattended and way.plan.steps:
            return way.name.value, way.plan
    with suppress(UsageError):  # only a person knows under which name Spark opens it
        relocation = plan_relocation(storage)
        if not (relocation.unattended and relocation.steps) or relocation.away:
            raise UsageError
        checkpoint = relocation.inspection.checkpoint
        moved = checkpoint.state.moved_schemas if checkpoint.state else ()
        original = next((path for path in moved if path not in checkpoint.lost_schemas), None)
        if original is not None:
            reason = f"relocate is for moved checkpoints, but this may be a copy: {one_line(original)} may still exist"
            return "", repairs.refusing(f"{reason}, and two starts of one query write its rows twice")
        return relocation.command, replace(relocation, why=relocation.why or "record where the state schemas are now")
    chosen = repairs.chosen
    if repairs.refused is not None:
        return "", repairs
    if chosen is None:
        return "", repairs.refusing("no repair and no relocation helps without touching rows")
    rows = {RowCost.AGAIN: "reads rows again", RowCost.LEFT_OUT: "may skip rows"}
    effect = rows.get(chosen.plan.rows, "is not proven to touch no row")
    return "", repairs.refusing(f"the fix that helps, {chosen.name.value}, {effect}: a person must decide")
