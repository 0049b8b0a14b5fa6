"""The rows of a unit as record batches: as Spark's reader gives them, or flat."""

from collections.abc import Generator
from typing import Any

from ckpt.formats.types import fields_of
from ckpt.model import Json
from ckpt.state.native import shapes
from ckpt.state.native.entries import entries_of
from ckpt.state.native.layout import layout_of
from ckpt.state.reading.columns import Columns, flat_columns
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit, UnitKind


def columns_of(unit: StateUnit, *, partition_id: bool = False) -> Columns:
    """The flat columns of a unit."""
    fields = fields_of(unit.schema) or []
    partition: Json = {"name": "partition_id", "type": "integer", "nullable": True, "metadata": {}}
    schema: Json = {"type": "struct", "fields": [*fields, partition]}
    return flat_columns(schema, partition_id=partition_id, only_keys=unit.kind is UnitKind.DEDUPLICATION)


def raw_batches(chosen: Chosen, unit: StateUnit, only: int | None = None) -> Generator[Any, None, None]:
    """All rows of a unit, or of one partition, as Spark's reader gives them."""
    layout = layout_of(chosen, unit)
    for entries in entries_of(chosen, unit, layout, only):
        yield shapes.make_raw(unit, entries)


def shape_batch(columns: Columns | None, raw: Any) -> Any:
    """A raw batch with these columns; as it is without."""
    return raw if columns is None else shapes.flatten_batch(columns, raw)
