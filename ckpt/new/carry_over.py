"""Carries a checkpoint over to a changed query, as the plan of ``ckpt evolve`` says: to a new checkpoint, or in place.

A new one begins with the state files that have to be made, below a mark that keeps every start away; then all other
files are copied from where they are, or from memory where the plan changes them.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from os import fspath
from typing import Unpack

from ckpt.changes.apply import ApplyOptions, ChangeResult, Receipt, run_change
from ckpt.changes.backup import choose_options
from ckpt.changes.steps import view_changed
from ckpt.errors import StorageError, UsageError, one_line
from ckpt.model import Location
from ckpt.new.book import BOOK
from ckpt.new.copy.copy import Vanished, copy_selected
from ckpt.new.copy.selection import has_run_since
from ckpt.new.evolve.plan import EvolveOptions, EvolvePlan, judge_evolution, plan_evolution
from ckpt.new.placing import Placing, check_apart, open_new
from ckpt.new.request import NewCheckpoint
from ckpt.query.description import QueryDescription
from ckpt.state.native.temporary import make_temporary_folder
from ckpt.storage import Storage, open_storage

_TRIES = 3  # how often it is planned, if the query deletes files of the newest batch meanwhile


def evolve_checkpoint(
    query: QueryDescription | None,
    checkpoint: Location,
    new: NewCheckpoint | None,
    wanted: EvolveOptions,
    storage_options: Mapping[str, str] | None = None,
    **how: Unpack[ApplyOptions],
) -> ChangeResult[EvolvePlan]:
    """Carry a checkpoint over to a described query, as ``evolve`` does; without ``new`` in place.

    Raises as ``evolve``, and UsageError where there is no description.
    """
    uri = fspath(checkpoint)
    if query is None and how.get("undo") is None:
        raise UsageError("name the changed query")
    if new is not None:
        assert query is not None
        return ChangeResult(_write_new(query, wanted, uri, new), Receipt())

    def plan_in_place(storage: Storage) -> EvolvePlan:
        assert query is not None
        return plan_evolution(storage, query, wanted)

    return run_change(EvolvePlan, plan_in_place, uri, storage_options, **how)


def _write_new(query: QueryDescription, wanted: EvolveOptions, uri: str, new: NewCheckpoint) -> EvolvePlan:
    """Write a new checkpoint; nothing is left of it where that is refused or fails. Raises as ``evolve``."""
    if new.plan and new.engine is not None:
        raise UsageError(BOOK.text("evolve_plan_here"))
    check_apart(uri, new.uri)
    own = choose_options(uri, new.options)
    storage, placing = open_storage(uri, own), new.open()
    for attempt in range(_TRIES):
        plan = replace(plan_evolution(storage, query, wanted, into=new.uri), new_id=new.new_id)
        if plan.refused is not None:
            return plan
        if not (plan.steps or plan.state.makes_files or new.new_id):
            return judge_evolution(storage, plan, query)
        with ExitStack() as stack:
            if new.plan:
                made = open_new(stack.enter_context(make_temporary_folder()), {})
            else:
                made = stack.enter_context(placing.make_attempt())
            checkpoint = plan.inspection.checkpoint
            if plan.state.makes_files:
                # not at the top: no other plan needs its libraries
                from ckpt.new.rewrite.state import make_evolved_state

                plan = plan.add_made(make_evolved_state(checkpoint, plan.state, made, own, new))
            view = view_changed(storage, checkpoint.listing, plan.steps, made=made.storage, copied=True)
            plan = judge_evolution(view, plan, query)
            if plan.refused is not None:
                return plan
            try:
                return _copy_rest(plan, storage, view, placing if new.plan else made, new)
            except Vanished as error:
                if attempt == _TRIES - 1:
                    raise StorageError(f"{error}: the query deletes old files while it runs; stop it first") from error
    raise AssertionError


def _copy_rest(plan: EvolvePlan, storage: Storage, view: Storage, placing: Placing, new: NewCheckpoint) -> EvolvePlan:
    """Copy a checkpoint as the plan leaves it. Raises CkptError, and Vanished where the query has deleted a file."""
    checkpoint = plan.inspection.checkpoint

    def check_at_rest() -> None:
        """Raise StorageError where the old query has run meanwhile: the new one would read its rows again."""
        if has_run_since(checkpoint, storage):
            raise StorageError(f"{one_line(checkpoint.uri)}: the query is running: stop it, and try again")

    copied = copy_selected(view, placing, new, None, check_at_rest)
    return replace(
        plan,
        written=not copied.planned,
        batch=copied.batch,
        query_id=copied.query_id,
        files=copied.files,
        bytes=copied.bytes,
        sinks=copied.sinks,
    )
