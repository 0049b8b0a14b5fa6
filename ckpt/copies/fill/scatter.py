"""Rows that were given, on their way to the partitions that they belong to: for executors that each have some of them.

A parcel is some rows of a unit for one partition, as Arrow's stream; it says which file they were in, and where.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ckpt.copies.fill.filling import partitions_of_rows
from ckpt.copies.fill.rows import Taken, joined
from ckpt.copies.rewrite.spreading import places_of
from ckpt.copies.rewrite.stored_rows import division
from ckpt.formats.rows.arrow import whole
from ckpt.model import Operator, Store
from ckpt.state.reading.units import StateUnit

_MATCHED, _ROW = "matched", "row"


@dataclass(frozen=True, slots=True)
class Scattered:
    """The origin of rows that were picked out of a file."""

    name: str | None
    rows: Any  # the place of each in it

    def of(self, row: int) -> tuple[str | None, int]:
        """As of ``Origin``."""
        return self.name, int(self.rows[row])


def parcels(
    operator: Operator, store: Store, rows: Taken, partitions: int, order: tuple[int, int]
) -> Iterator[tuple[int, bytes]]:
    """Rows of one file by partition. Raises Undecodable.

    Args:
        operator: To which they belong.
        store: One of its stores.
        rows: The rows.
        partitions: How many shuffle partitions there are.
        order: Where the file, and the first of these rows in it, stand among all rows of the unit.

    """
    count = places_of(operator, store, partitions)
    places, starts = division(partitions_of_rows(operator, store, rows, count), count)
    named = {str(at): column for at, column in enumerate(rows.columns)}
    columns = {**named, _MATCHED: rows.matched, _ROW: whole(pa.int64(), np.arange(len(rows)) + order[1])}
    name = rows.origin.of(0)[0] if len(rows) else None
    schema = pa.schema({one: column.type for one, column in columns.items()}, {"of": json.dumps([order[0], name])})
    batch = pa.record_batch([*columns.values()], schema=schema).take(whole(pa.int64(), places))
    for partition, (start, end) in enumerate(pairwise(starts)):
        if end > start:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, schema) as stream:
                stream.write_batch(batch.slice(start, end - start))
            yield partition, sink.getvalue().to_pybytes()


def unpacked(unit: StateUnit, place: str, given: Iterable[bytes]) -> Taken:
    """The rows of a unit in one partition, in the order in which they were given."""
    found = []
    for data in given:
        batch = pa.ipc.open_stream(data).read_next_batch()
        order, name = json.loads(batch.schema.metadata[b"of"])
        *columns, matched, rows = batch.columns
        origin = Scattered(name, np.asarray(rows))
        found.append(((order, int(origin.rows[0])), Taken(unit, columns, matched, place, origin)))
    return joined(unit, place, [one for _, one in sorted(found, key=lambda one: one[0])])
