"""``ckpt evolve`` as one call: a changed query continues, on a new checkpoint or on the old one changed in place.

The new checkpoint is a copy of the old one as the plan leaves it: the plan's files are read from memory, all others
from where they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import fspath
from typing import Unpack

from ckpt.changes.apply import ChangeResult, How, Receipt, run_change
from ckpt.changes.backup import choose_options
from ckpt.changes.evolve.origins import ColumnWords, parse_mapping
from ckpt.changes.evolve.plan import EvolveOptions, EvolvePlan, plan_evolution, view_changed
from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS
from ckpt.copies.copy.copy import Vanished, copy_selected
from ckpt.copies.copy.placing import Placing, Watcher, check_apart, open_new
from ckpt.errors import StorageError, UsageError, one_line
from ckpt.inspection.query import QueryDescription
from ckpt.model import Location
from ckpt.storage import Storage, open_storage

_TRIES = 3  # how often it is planned, if the query deletes files of the newest batch meanwhile


def evolve_checkpoint(
    query: QueryDescription | None,
    checkpoint: Location,
    new: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    map_source: Sequence[str] = (),
    map_operator: Sequence[str] = (),
    map_column: Sequence[str] = (),
    default: Mapping[str, str] | None = None,
    start: Mapping[str, str] | None = None,
    accept_from_now_on: bool = False,
    from_query: QueryDescription | None = None,
    new_id: bool = False,
    plan: bool = False,
    jobs: int | None = None,
    new_watcher: Watcher | None = None,
    **how: Unpack[How],
) -> ChangeResult[EvolvePlan]:
    """Carry a checkpoint over to a described query, as ``evolve`` does.

    Raises as ``evolve``, and UsageError where there is no description.
    """
    uri, options = fspath(checkpoint), storage_options or {}
    words = ColumnWords(parse_mapping(map_column), dict(default or {}))
    mapped = (tuple(map_source), dict(start or {}), tuple(map_operator))
    wanted = EvolveOptions(*mapped, words, accept_from_now_on, from_query)
    if query is None and how.get("undo") is None:
        raise UsageError("name the changed query")
    if new is None:

        def plan_in_place(storage: Storage) -> EvolvePlan:
            assert query is not None
            return plan_evolution(storage, query, wanted, None)

        return run_change(EvolvePlan, plan_in_place, uri, storage_options, **how)
    from ckpt.copies.evolve.spool import Spool
    from ckpt.copies.evolve.state import StateWork, plan_state
    from ckpt.state.native.temporary import make_temporary_folder

    assert query is not None
    check_apart(uri, new)
    own = choose_options(uri, options)
    opened, placing = open_storage(uri, own), open_new(new, options)
    planning = partial(
        plan_evolution, query=query, options=wanted, plan_state=partial(plan_state, work=StateWork(own, jobs))
    )
    for attempt in range(_TRIES):
        with make_temporary_folder() as folder:
            storage = Spool(opened, folder)
            evolution = replace(planning(storage), into=new, new_id=new_id)
            if evolution.refused is not None:
                return ChangeResult(evolution, Receipt())
            try:
                return ChangeResult(_write_new(evolution, storage, placing, plan=plan, watcher=new_watcher), Receipt())
            except Vanished as error:
                if attempt == _TRIES - 1:
                    raise StorageError(f"{error}: the query deletes old files while it runs; stop it first") from error
    raise AssertionError


def _write_new(
    evolution: EvolvePlan, storage: Storage, placing: Placing, *, plan: bool, watcher: Watcher | None
) -> EvolvePlan:
    """Copy the checkpoint as the plan leaves it. Raises CkptError, and Vanished where the query has deleted a file."""
    assert evolution.into is not None
    changed, checkpoint = view_changed(storage, evolution, copied=True), evolution.inspection.checkpoint

    def check_at_rest() -> None:
        """Raise StorageError where the old query has run meanwhile: the new one would read its rows again."""
        for log in (OFFSETS, COMMITS):
            if storage.list_level(log).files.keys() != checkpoint.listing.in_folder(log).keys():
                raise StorageError(f"{one_line(checkpoint.uri)}: the query is running: stop it, and try again")

    how = {"new_id": evolution.new_id, "plan": plan}
    copied = copy_selected(changed, placing, evolution.into, None, **how, watcher=watcher, check=check_at_rest)
    return replace(
        evolution,
        written=not copied.planned,
        batch=copied.batch,
        query_id=copied.query_id,
        files=copied.files,
        bytes=copied.bytes,
        sinks=copied.sinks,
    )
