"""The columns of a unit, from what is stored for it: as Spark's reader gives them, or a column for each leaf."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ckpt.formats.rows.arrow import structs, whole
from ckpt.formats.rows.types import arrow_type
from ckpt.formats.types import fields_of, named_fields, type_at
from ckpt.model import Json
from ckpt.state.native.entries import Entries
from ckpt.state.reading.columns import PARTITION, Columns
from ckpt.state.reading.units import StateUnit, UnitKind


def raw_schema(unit: StateUnit) -> Any:
    """The columns that Spark's reader gives for a unit, as an Arrow schema."""
    fields = [pa.field(name, arrow_type(kind)) for name, kind in named_fields(unit.schema)]
    return pa.schema([*fields, pa.field(PARTITION, pa.int32())])


def make_raw(unit: StateUnit, entries: Entries) -> Any:
    """Entries as a batch of rows as Spark's reader gives them."""
    schema = raw_schema(unit)
    partition = whole(pa.int32(), np.full(len(entries.keys), entries.partition, np.int32))
    return pa.RecordBatch.from_arrays([*_columns(unit, entries), partition], schema=schema)


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
    count = len(fields_of(kind) or ())
    names = [name for name, _ in named_fields(kind)]
    return structs(names, array.flatten()[:count], len(array))


def flat_schema(columns: Columns) -> Any:
    """The columns of the flat shape, as an Arrow schema."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns.kept])


def flatten_batch(columns: Columns, batch: Any) -> Any:
    """A raw batch with one column for each leaf."""
    arrays = []
    for column in columns.kept:
        array = batch.column(column.places[0])
        for ordinal in column.places[1:]:
            array = array.flatten()[ordinal]
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=flat_schema(columns))
