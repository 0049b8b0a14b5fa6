"""The rows of a unit as record batches: as Spark's reader gives them, or flat, with a column for each leaf."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ckpt.formats.rows.arrow import structs, whole
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.types import named_fields, type_at
from ckpt.model import Json
from ckpt.state.native.entries import Entries, entries_of
from ckpt.state.reading.columns import PARTITION, Columns
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit, UnitKind


def raw_schema(unit: StateUnit) -> Any:
    """The columns that Spark's reader gives for a unit, as an Arrow schema."""
    fields = [pa.field(name, arrow_type(kind)) for name, kind in named_fields(unit.schema)]
    return pa.schema([*fields, pa.field(PARTITION, pa.int32())])


def flat_schema(columns: Columns) -> Any:
    """The columns of the flat shape, as an Arrow schema."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns.kept])


def batches_of(
    chosen: Chosen, unit: StateUnit, columns: Columns | None = None, only: int | None = None
) -> Generator[Any, None, None]:
    """All rows of a unit, or of one partition: flat with these columns, without any as Spark's reader gives them."""
    for entries in entries_of(chosen, unit, only):
        yield make_raw(unit, entries) if columns is None else make_flat(columns, unit, entries)


def make_flat(columns: Columns, unit: StateUnit, entries: Entries) -> Any:
    """Entries as a batch with one column for each leaf."""
    return flatten_batch(columns, make_raw(unit, entries))


def flatten_batch(columns: Columns, batch: Any) -> Any:
    """A raw batch with one column for each leaf."""
    arrays = [pick_field(batch.columns, column.places) for column in columns.kept]
    return pa.RecordBatch.from_arrays(arrays, schema=flat_schema(columns))


def pick_field(columns: Sequence[Any], places: Sequence[int]) -> Any:
    """A field of a field ..., by position."""
    array = columns[places[0]]
    for ordinal in places[1:]:
        array = array.flatten()[ordinal]
    return array


def make_raw(unit: StateUnit, entries: Entries) -> Any:
    """Entries as a batch of rows as Spark's reader gives them."""
    partition = whole(pa.int32(), np.full(len(entries.keys), entries.partition, np.int32))
    return pa.RecordBatch.from_arrays([*_columns(unit, entries), partition], schema=raw_schema(unit))


def _columns(unit: StateUnit, entries: Entries) -> Iterator[Any]:
    key, value = entries.keys, entries.values
    match unit.kind:
        case UnitKind.SIDE:
            yield _first_fields(key, type_at(unit.schema, (0,)))
            yield _first_fields(value, type_at(unit.schema, (1,)))
        case UnitKind.MAP:
            yield from (*key.flatten(), value)
        case UnitKind.TIMERS:
            yield from key.flatten()
        case _:
            yield from (key, value)


def _first_fields(array: Any, kind: Json) -> Any:
    """A struct without the fields that Spark adds at its end."""
    names = [name for name, _ in named_fields(kind)]
    return structs(names, array.flatten()[: len(names)], len(array))
