"""``ckpt evolve`` as one call: a changed query continues, on a new checkpoint or on the old one changed in place."""

from collections.abc import Mapping
from os import fspath
from typing import Unpack

from ckpt.changes.apply import ChangeResult, How, Receipt, run_change
from ckpt.errors import UsageError
from ckpt.model import Location
from ckpt.new.evolve.plan import EvolveOptions, EvolvePlan, plan_evolution
from ckpt.new.evolved.target import Target
from ckpt.query.description import QueryDescription
from ckpt.storage import Storage


def evolve_checkpoint(
    query: QueryDescription | None,
    checkpoint: Location,
    target: Target,
    wanted: EvolveOptions,
    storage_options: Mapping[str, str] | None = None,
    **how: Unpack[How],
) -> ChangeResult[EvolvePlan]:
    """Carry a checkpoint over to a described query, as ``evolve`` does.

    Raises as ``evolve``, and UsageError where there is no description.
    """
    uri = fspath(checkpoint)
    if query is None and how.get("undo") is None:
        raise UsageError("name the changed query")
    if target.uri is None:
        if target.by is not None:
            raise UsageError.of("{--by} writes state, and in place none changes: leave it out")

        def plan_in_place(storage: Storage) -> EvolvePlan:
            assert query is not None
            return plan_evolution(storage, query, wanted, None)

        return run_change(EvolvePlan, plan_in_place, uri, storage_options, **how)
    from ckpt.new.evolved.writing import write_evolved

    assert query is not None
    return ChangeResult(write_evolved(query, wanted, uri, storage_options or {}, target.uri, target), Receipt())
