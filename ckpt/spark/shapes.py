"""The shapes of an export, from what Spark's reader gives."""

import json
from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn, DataFrame, functions as F
from pyspark.sql.types import StructField, StructType

from ckpt.model import Json
from ckpt.state.reading.columns import Columns


def schema_of(frame: DataFrame) -> Json:
    """The schema of a frame in Spark's JSON."""
    schema: Json = json.loads(frame.schema.json())
    return schema


def flatten_columns(frame: DataFrame, columns: Columns) -> DataFrame:
    """Flatten a frame to one column for each leaf."""
    return frame.select(*(select_leaf(frame, column.places).alias(column.name) for column in columns.kept))


def select_leaf(frame: DataFrame, places: Sequence[int]) -> SparkColumn:
    """A field of a field ..., by position: names may repeat."""
    field = frame.schema.fields[places[0]]
    renamed = _make_distinct(field)
    value: SparkColumn = F.col(f"`{field.name}`")
    if renamed != field:
        value = value.cast(renamed.dataType)
    kind = renamed.dataType
    for ordinal in places[1:]:
        inner = kind.fields[ordinal]
        value, kind = value.getField(inner.name), inner.dataType
    return value


def _make_distinct(field: StructField) -> StructField:
    """The field with nested names that are told apart where they were not: a cast goes by position."""
    if not isinstance(field.dataType, StructType):
        return field
    fields = [_make_distinct(inner) for inner in field.dataType.fields]
    names = [inner.name.lower() for inner in fields]
    if len(set(names)) < len(names):
        fields = [StructField(f"_{ordinal}", f.dataType, f.nullable) for ordinal, f in enumerate(fields)]
    return StructField(field.name, StructType(fields), field.nullable)
