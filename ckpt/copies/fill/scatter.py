"""Rows that were given, on their way to the partitions that they belong to: for executors that each have some of them.

A parcel is some rows of a unit for one partition, as Arrow's stream; it says which file they were in, and where.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from ckpt.copies.fill.filling import find_partitions
from ckpt.copies.fill.rows import Taken, join_rows
from ckpt.copies.rewrite.spreading import count_partitions
from ckpt.copies.rewrite.stored_rows import divide_rows
from ckpt.formats.rows.arrow import whole
from ckpt.model import Operator, Store
from ckpt.state.reading.units import StateUnit

_MATCHED, _ROW = "matched", "row"


@dataclass(frozen=True, slots=True)
class Scattered:
    """The origin of rows that were picked out of a file."""

    name: str | None
    rows: Any  # the place of each in it

    def locate_row(self, row: int) -> tuple[str | None, int]:
        """Locate a row as every ``Origin`` does."""
        return self.name, int(self.rows[row])


def pack_parcels(
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
    count = count_partitions(operator, store, partitions)
    places, starts = divide_rows(find_partitions(operator, store, rows, count), count)
    named = {str(at): column for at, column in enumerate(rows.columns)}
    columns = {**named, _MATCHED: rows.matched, _ROW: whole(pa.int64(), np.arange(len(rows)) + order[1])}
    name = rows.origin.locate_row(0)[0] if len(rows) else None
    schema = pa.schema(
        {header: column.type for header, column in columns.items()},
        {"of": json.dumps([rows.unit.label, order[0], name])},
    )
    batch = pa.record_batch([*columns.values()], schema=schema).take(whole(pa.int64(), places))
    for partition, (start, end) in enumerate(pairwise(starts)):
        if end > start:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, schema) as stream:
                stream.write_batch(batch.slice(start, end - start))
            yield partition, sink.getvalue().to_pybytes()


def gather_rows(units: Mapping[str, StateUnit], source_name: str, pieces: Iterable[Any]) -> dict[str, Taken]:
    """The rows of units in one partition, by label, in the order in which they were given."""
    parts: dict[str, list[tuple[tuple[int, int], Taken]]] = {label: [] for label in units}
    for piece in pieces:
        batch = pa.ipc.open_stream(piece).read_next_batch()
        label, order, name = json.loads(batch.schema.metadata[b"of"])
        *columns, matched, rows = batch.columns
        origin = Scattered(name, np.asarray(rows))
        taken = Taken(units[label], columns, matched, source_name, origin)
        parts[label].append(((order, int(origin.rows[0])), taken))
    return {
        label: join_rows(unit, source_name, [taken for _, taken in sorted(parts[label], key=itemgetter(0))])
        for label, unit in units.items()
    }
