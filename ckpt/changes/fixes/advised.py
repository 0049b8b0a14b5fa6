"""Advice where ``ckpt repair`` has no fix: what its refusal says, and what ``ckpt inspect`` says in its place."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from ckpt.advice import Advice, Call, Do, Hole, Instruction, Step, advise, call, do, run, words
from ckpt.changes.fixes.repair import FixName, RepairPlan, plan_repairs
from ckpt.changes.fixes.repair_async import plan_repair
from ckpt.changes.steps import sidecar
from ckpt.checkpoint.checkpoint import METADATA
from ckpt.errors import CkptError
from ckpt.inspection.inspection import Inspection, RatedFinding, gather_known
from ckpt.restart.book import BOOK, put_back
from ckpt.restart.findings import Severity
from ckpt.storage import Storage

_REPAIRS = ("repair", "repair_async")
_ANY_ID = "00000000-0000-4000-8000-000000000000"
"""The query id of a trial: which fixes there are does not depend on it."""


def advise_instead(plan: RepairPlan) -> Advice:
    """Advise what is left where a repair is refused."""
    inspection, errors = plan.inspection, _list_errors(plan.inspection)
    once_more = call("repair", inspection.checkpoint.uri).but(deep=inspection.deep or None)
    if plan.found_id is not None:
        is_proven = inspection.checkpoint.had_id(plan.found_id)
        this = BOOK.text("id_of_only_query") if not is_proven else BOOK.text("id_proven", file=sidecar(METADATA))
        return advise(run(once_more.but(query_id=plan.found_id), this))
    if plan.lacks_id:
        write = run(once_more.but(query_id=Hole.ID), words("Rewrite metadata with the old id."))
        return advise(do(Do.FIND_OUT, BOOK.text("query_id"), METADATA), write)
    if plan.instead or not errors:
        return plan.instead or inspection.advice.without_repairs()
    cures = [rated.advice for rated in errors if rated.advice]
    elsewhere = next((cure for cure in cures if not cure.repairs), None)
    if elsewhere is not None:
        return elsewhere.mark_stop()
    others = cures[0].without_repairs().steps if cures else ()
    if others and inspection.written_by.newer:
        return advise(others[0].or_(*others[1:], *advise_put_back(inspection))).mark_stop()
    first, *left = [*advise_put_back(inspection), *(others or tuple(_advise_without_copy(inspection)))]
    return advise(first.or_(*left)).mark_stop(only_copy=not others)


def advise_put_back(inspection: Inspection) -> Iterator[Step]:
    """Advise to put back what is wrong; nothing where the files of the errors are as they should be."""
    errors = _list_errors(inspection)
    steps = chain(*(rated.advice.all_steps() for rated in errors if rated.advice))
    path_groups = (step.do.paths for step in steps if isinstance(step.do, Instruction) and step.needs_copy)
    lost = [path for path in chain(*path_groups) if isinstance(path, str)]
    missing = (rated.path for rated in errors if inspection.checkpoint.listing.info(rated.path) is None)
    if paths := tuple(dict.fromkeys(lost or missing)):
        yield put_back().fill(replace(gather_known(inspection.checkpoint, inspection.sink), paths=paths))


def _advise_without_copy(inspection: Inspection) -> Iterator[Step]:
    checkpoint = inspection.checkpoint
    known = gather_known(checkpoint, inspection.sink)
    latest = checkpoint.commits.latest
    if checkpoint.offsets.readable(latest) is not None:  # or no new query can continue
        batch = latest if checkpoint.stateful else None  # whose state is lost: it is named, or it is refused
        (hand_off,) = BOOK.advise("hand_off").fill(known).steps
        yield replace(hand_off, do=call("handoff", checkpoint.uri).but(batch=batch))
    yield from BOOK.advise("new_checkpoint").fill(known).steps


def leave_out_refused(inspection: Inspection, storage: Storage) -> Inspection:
    """Replace advice to repair where a trial shows that no fix is possible; nothing is written.

    Only a trial tells: a fix is judged by the start on the checkpoint as it would leave it.
    """
    steps = chain(*(rated.advice.all_steps() for rated in inspection.troubles if rated.advice))
    repairs = dict.fromkeys(step.call for step in steps if step.call is not None and step.call.name in _REPAIRS)
    refused = {repair: instead for repair in repairs if (instead := _try(repair, storage)) is not None}
    if not refused:
        return inspection
    return replace(inspection, findings=tuple(_without(rated, refused) for rated in inspection.findings))


def _try(repair: Call, storage: Storage) -> Advice | None:
    """Plan a repair: what helps instead of it; None where it is possible."""
    options = dict(repair.options)
    way = options.get("choose")
    try:
        if repair.name == "repair_async" and plan_repair(storage).steps:
            return None
        plan = plan_repairs(
            storage,
            _ANY_ID if "query_id" in options else None,
            None if way is None else FixName(str(way)),
        )
    except CkptError:  # which the repair ends with, too
        return Advice()
    return None if plan.steps and repair.name == "repair" else advise_instead(plan)


def _without(rated: RatedFinding, refused: dict[Call, Advice]) -> RatedFinding:
    """A finding without steps that are refused; where they were all that a program can do, with what helps instead."""
    if rated.advice is None or not any(step.call in refused for step in rated.advice.all_steps()):
        return rated
    instead = next(refused[step.call] for step in rated.advice.all_steps() if step.call in refused)
    left = rated.advice.without(refused.keys())
    return replace(rated, finding=replace(rated.finding, advice=left if left.calls else instead or left))


def _list_errors(inspection: Inspection) -> list[RatedFinding]:
    return [rated for rated in inspection.findings if rated.severity is Severity.ERROR]
