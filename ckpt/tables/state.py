"""``state(...)``: the rows of one unit of state, read when they are scanned; a whole key is looked for by its hash."""

from collections.abc import Iterator, Mapping
from typing import Any

import ckpt.formats.rows  # noqa: F401  (which says in one line what is not installed)
from ckpt.state.native.entries import flat_schema
from ckpt.state.native.lookup import KeyPart, find_partition
from ckpt.state.native.show import read_matching_batches
from ckpt.state.reading.choose import RequestedPart
from ckpt.state.reading.columns import PARTITION, columns_of
from ckpt.state.reading.reading import StateRequest, choose
from ckpt.tables.catalog import Catalog, LazyTable

_LOOKED_UP = frozenset(("byte", "short", "integer", "long", "string"))
"""Types for which SQL and Spark agree on equality."""


class StateTable(LazyTable):
    """The state of one unit after a committed batch, flat, with ``partition_id``.

    Where a statement wants one whole key, by whole numbers and texts, its partition alone is read; where it wants a
    ``partition_id``, that partition.
    """

    def __init__(self, catalog: Catalog, uri: str, batch: int | None, part: RequestedPart) -> None:
        """Read what describes the state, and no row. Raises what ``ckpt.read_state_batches`` raises."""
        self._chosen = choose(StateRequest(catalog.checkpoints[uri].uri, part, batch=batch), catalog.options)
        (self._unit,) = self._chosen.units
        self._columns = columns_of(self._unit, partition_id=True)
        super().__init__(catalog, flat_schema(self._columns), self._find_rows)

    def _find_rows(self, equal: Mapping[str, Any]) -> Iterator[Any]:
        known = {column.name: column for column in self._columns.kept if column.of_key}
        parts = tuple(
            KeyPart(known[name], _make_array(value))
            for name, value in equal.items()
            if name in known and known[name].type in _LOOKED_UP
        )
        only = find_partition(self._chosen, self._unit, parts)
        if only is None and PARTITION in equal:
            only = equal[PARTITION].as_py()
        return read_matching_batches(self._chosen, self._unit, self._columns, parts, only)


def _make_array(value: Any) -> Any:
    import pyarrow as pa

    return pa.array([value.as_py()], value.type)
