"""A new checkpoint for a changed query, written: a copy of the old one as the plan leaves it.

State in other columns is written first, below a mark that keeps every start away; then all other files, from where they
are, or from memory where the plan changes them.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from ckpt.changes.backup import choose_options
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS, STATE
from ckpt.errors import StorageError, UsageError, one_line
from ckpt.new.book import BOOK
from ckpt.new.copy.copy import Vanished, copy_selected
from ckpt.new.copy.placing import Placing, check_apart, open_new
from ckpt.new.evolve.plan import EvolveOptions, EvolvePlan, plan_evolution, view_evolved
from ckpt.new.evolved.spool import Spool
from ckpt.new.evolved.state import StateWork, plan_state
from ckpt.new.evolved.target import Target
from ckpt.new.exchange import Exchange
from ckpt.query.description import QueryDescription
from ckpt.state.native.temporary import make_temporary_folder
from ckpt.storage import Storage, open_storage

_TRIES = 3  # how often it is planned, if the query deletes files of the newest batch meanwhile


def write_evolved(
    query: QueryDescription, wanted: EvolveOptions, uri: str, options: Mapping[str, str], new: str, target: Target
) -> EvolvePlan:
    """Write ``new``; nothing is left of it where that is refused or fails. Raises as ``evolve``."""
    if target.plan and target.by is not None:
        raise UsageError(BOOK.text("evolve_plan_here"))
    check_apart(uri, new)
    own = choose_options(uri, options)
    opened, placing = open_storage(uri, own), open_new(new, options)
    work = StateWork(own, target.jobs, target.by, new, options)
    planning = partial(plan_evolution, query=query, options=wanted, plan_state=partial(plan_state, work=work))
    for attempt in range(_TRIES):
        with ExitStack() as stack:
            if target.plan:
                state = open_new(stack.enter_context(make_temporary_folder()), {})
            else:
                state = placing.make_attempt()
                stack.callback(_discard, state, target.by)
            storage = Spool(opened, state)
            evolution = replace(planning(storage), into=new, new_id=target.new_id)
            if evolution.refused is not None:
                return evolution
            try:
                evolution = _copy_rest(evolution, storage, placing if target.plan else state, target)
            except Vanished as error:
                if attempt == _TRIES - 1:
                    raise StorageError(f"{error}: the query deletes old files while it runs; stop it first") from error
                continue
            stack.pop_all()
            return evolution
    raise AssertionError


def _discard(state: Placing, by: Exchange | None) -> None:
    """Remove everything that was written, also by tasks that have not reported it."""
    if by is not None and state.begun:
        state.adopt_all(STATE)
    state.discard()


def _copy_rest(evolution: EvolvePlan, storage: Storage, placing: Placing, target: Target) -> EvolvePlan:
    """Copy the checkpoint as the plan leaves it. Raises CkptError, and Vanished where the query has deleted a file."""
    assert evolution.into is not None
    changed, checkpoint = view_evolved(storage, evolution, copied=True), evolution.inspection.checkpoint

    def check_at_rest() -> None:
        """Raise StorageError where the old query has run meanwhile: the new one would read its rows again."""
        for log in (OFFSETS, COMMITS):
            if storage.list_level(log).files.keys() != checkpoint.listing.in_folder(log).keys():
                raise StorageError(f"{one_line(checkpoint.uri)}: the query is running: stop it, and try again")

    how = {"new_id": target.new_id, "plan": target.plan}
    copied = copy_selected(changed, placing, evolution.into, None, **how, watcher=target.watcher, check=check_at_rest)
    return replace(
        evolution,
        written=not copied.planned,
        batch=copied.batch,
        query_id=copied.query_id,
        files=copied.files,
        bytes=copied.bytes,
        sinks=copied.sinks,
    )
