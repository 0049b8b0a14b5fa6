"""``ckpt evolve`` as one call: a changed query continues, on a new checkpoint or on the old one changed in place."""

from collections.abc import Mapping, Sequence
from os import fspath
from typing import TYPE_CHECKING, Unpack

from ckpt.changes.apply import ChangeResult, How, Receipt, run_change
from ckpt.changes.evolve.columns import ColumnWords, parse_mapping
from ckpt.changes.evolve.plan import EvolveOptions, EvolvePlan, plan_evolution
from ckpt.copies.copy.placing import Watcher
from ckpt.errors import UsageError
from ckpt.inspection.query import QueryDescription
from ckpt.model import Location
from ckpt.storage import Storage

if TYPE_CHECKING:
    from ckpt.copies.exchange import Exchange


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
    by: "Exchange | None" = None,
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
        if by is not None:
            raise UsageError("`by` writes state, and in place none changes: leave it out")

        def plan_in_place(storage: Storage) -> EvolvePlan:
            assert query is not None
            return plan_evolution(storage, query, wanted, None)

        return run_change(EvolvePlan, plan_in_place, uri, storage_options, **how)
    from ckpt.copies.evolve.writing import Target, write_evolved

    assert query is not None
    target = Target(new, new_id, plan, jobs, by, new_watcher)
    return ChangeResult(write_evolved(query, wanted, uri, options, target), Receipt())
