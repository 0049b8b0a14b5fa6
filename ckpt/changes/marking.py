"""A plan after which the query has to be started once into ``noop`` leaves a mark that says so to the next reader."""

from dataclasses import replace
from typing import TypeVar

from ckpt.changes.plan import ChangePlan, First
from ckpt.changes.steps import Changed, Step
from ckpt.checkpoint.checkpoint import FIRST_START, OFFSETS
from ckpt.formats.marks import build_first_start
from ckpt.inspection.checks.first_start import first_start
from ckpt.inspection.inspection import inspect
from ckpt.storage import Storage

Planned = TypeVar("Planned", bound=ChangePlan)


def marked(plan: Planned, storage: Storage) -> Planned:
    """A plan with the mark as its first step, if it needs one. Raises StorageError."""
    after = plan.inspection_after
    mark = None if after is None else first_start(after.checkpoint)
    if plan.first is not First.NOOP or after is None or mark is None:
        return plan
    listing = plan.inspection.checkpoint.listing
    was = storage.read(FIRST_START) if listing.info(FIRST_START) is not None else None
    step = Step(FIRST_START, was, build_first_start(mark), like=f"{OFFSETS}/{mark.batch}")
    steps = tuple(one for one in (step, *plan.steps) if one.before != one.after)
    tree = Changed(storage, listing, steps).list_tree()
    versions = tuple(dict.fromkeys(one.spark for one in after.forecasts))
    left = inspect(replace(after.checkpoint, listing=tree, first_start=mark), versions)
    return replace(plan, steps=steps, inspection_after=left)
