"""Parquet as Spark writes it: the same types in the same columns, what may be NULL, and Spark's schema in the footer.

Spark classes ``SparkToParquetSchemaConverter`` and ``ParquetWriteSupport``, with the settings that are the default.
"""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from ckpt.formats.rows.errors import Undecodable
from ckpt.formats.rows.types import TypeShape, arrow_type, shape_of
from ckpt.formats.types import fields_of
from ckpt.model import Json
from ckpt.state.export.request import ExportPart
from ckpt.state.reading.columns import type_names
from ckpt.versions import NEWEST

_ALIKE = frozenset({"boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date"})
_ALIKE |= {"timestamp", "timestamp_ntz"}
_NESTED = frozenset({"array", "map", "struct"})
_NOTHING: Json = {}


def spark_schema(part: ExportPart) -> Json:
    """The StructType of the flat columns as Spark has it, in its JSON: what its frame declares."""
    schema, columns = part.reading.schema, part.columns.kept if part.columns else ()
    fields: list[Json] = [
        {"name": column.name, "type": column.type, "nullable": True, "metadata": _metadata(schema, column.places)}
        for column in columns
    ]
    return {"type": "struct", "fields": fields}


def _metadata(kind: Json, places: tuple[int, ...]) -> Json:
    """Return a field's metadata as a column keeps it: none unless it has to be told apart from others of its name."""
    metadata = _NOTHING
    for ordinal in places:
        fields = [field for field in fields_of(kind) or () if isinstance(field, dict)]
        names = [str(field.get("name")).lower() for field in fields]
        metadata = fields[ordinal].get("metadata", _NOTHING) if len(set(names)) == len(names) else _NOTHING
        kind = fields[ordinal].get("type")
    return metadata


def find_obstacle(schema: Json) -> str | None:
    """Why Parquet of a StructType is left to Spark; None where it was compared with Spark's, and is the same."""
    if not fields_of(schema):
        return "no column is known without Spark"
    left = sorted(name for name in set(type_names(schema)) - _ALIKE - _NESTED if not _is_decimal(name))
    return f"Parquet of the type {left[0]} is left to Spark" if left else None


def _is_decimal(name: str) -> bool:
    return name.startswith("decimal") and shape_of(name) in (TypeShape.SMALL_DECIMAL, TypeShape.LARGE_DECIMAL)


class ParquetFile:
    """A file that is being written; closed by ``with``."""

    def __init__(self, path: str, schema: Json) -> None:
        """Create it. Raises OSError."""
        self._schema = pa.schema(list(_arrow_fields(schema)))
        self._writer = parquet.ParquetWriter(
            path,
            self._schema,
            compression="snappy",
            use_deprecated_int96_timestamps="timestamp" in set(type_names(schema)),
            store_schema=False,
            store_decimal_as_integer=True,
        )
        text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        footer = {"org.apache.spark.sql.parquet.row.metadata": text, "org.apache.spark.version": f"{NEWEST}.0"}
        self._writer.add_key_value_metadata(footer)  # readers learn from the version which calendar dates are of

    def __enter__(self) -> "ParquetFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def add(self, batch: Any) -> None:
        """Write rows of these columns. Raises Undecodable where NULL stands and none may, OSError."""
        try:
            columns = [column.view(field.type) for column, field in zip(batch.columns, self._schema, strict=True)]
            rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        except pa.ArrowInvalid as error:
            raise Undecodable(f"its rows are not what the state schema says: {error}") from None
        self._writer.write_batch(rows)


def _arrow_fields(schema: Json) -> Iterator[Any]:
    for field in fields_of(schema) or ():
        if isinstance(field, dict):
            yield pa.field(str(field["name"]), _arrow_type(field["type"]), field.get("nullable") is not False)


def _arrow_type(kind: Json) -> Any:
    """The Arrow type of a type, with what it says of NULL, and named inside as Spark names it."""
    match kind:
        case {"type": "struct"}:
            return pa.struct(list(_arrow_fields(kind)))
        case {"type": "array", "elementType": element, **rest}:
            return pa.list_(pa.field("element", _arrow_type(element), rest.get("containsNull") is not False))
        case {"type": "map", "keyType": key, "valueType": value, **rest}:
            own = pa.field("value", _arrow_type(value), rest.get("valueContainsNull") is not False)
            return pa.map_(_arrow_type(key), own)
    return arrow_type(kind)
