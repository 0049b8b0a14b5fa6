"""Exporting state without Spark: what ``ckpt.spark.export`` does with it, for what is certain."""

import json
import os
import shutil
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from ckpt.errors import CkptError, Undecodable
from ckpt.formats.rows.types import TypeShape, arrow_type, shape_of
from ckpt.formats.types import fields_of
from ckpt.model import Json
from ckpt.state.export.manifest import make_manifest, make_manifest_of_all, manifest_text
from ckpt.state.export.request import ExportPart, ExportPlan
from ckpt.state.export.targets import MANIFEST, ExportTarget, check_target, local_target
from ckpt.state.native.entries import batches_of, map_partitions
from ckpt.state.native.store_files import find_fitting_files, layout_of
from ckpt.state.reading.columns import Columns, type_names
from ckpt.state.reading.reading import ChosenState
from ckpt.state.reading.units import StateUnit
from ckpt.versions import NEWEST

_NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double"})
_NESTED = frozenset({"array", "map", "struct"})
_ALIKE = _NUMBERS | _NESTED | {"boolean", "string", "binary", "date", "timestamp", "timestamp_ntz"}
_NOTHING: Json = {}


def spark_schema(part: ExportPart) -> Json:
    """The StructType of the flat columns as Spark has it, in its JSON: what its frame declares."""
    schema, columns = part.reading.schema, part.columns.kept if part.columns else ()
    structs: _Structs = {}
    fields: list[Json] = [
        {
            "name": column.name,
            "type": column.type,
            "nullable": True,
            "metadata": _metadata(schema, column.places, structs),
        }
        for column in columns
    ]
    return {"type": "struct", "fields": fields}


_Structs = dict[int, tuple[list[dict[str, Json]], bool]]
"""The fields of each struct of a schema, and whether their names differ in more than case."""


def _metadata(kind: Json, places: tuple[int, ...], structs: _Structs) -> Json:
    """Return a field's metadata as a column keeps it: none unless it has to be told apart from others of its name."""
    metadata = _NOTHING
    for ordinal in places:
        if id(kind) not in structs:
            known = [field for field in fields_of(kind) or () if isinstance(field, dict)]
            structs[id(kind)] = known, len({str(field.get("name")).lower() for field in known}) == len(known)
        fields, differ = structs[id(kind)]
        metadata = fields[ordinal].get("metadata", _NOTHING) if differ else _NOTHING
        kind = fields[ordinal].get("type")
    return metadata


def find_parquet_obstacle(schema: Json) -> str | None:
    """Why Parquet of a StructType is left to Spark; None where it was compared with Spark's, and is the same."""
    if not fields_of(schema):
        return "no column can be read without Spark"
    decimals = (TypeShape.SMALL_DECIMAL, TypeShape.LARGE_DECIMAL)
    others = sorted(set(type_names(schema)) - _ALIKE)
    left = [name for name in others if not (name.startswith("decimal") and shape_of(name) in decimals)]
    return f"only Spark writes Parquet of the type {left[0]}" if left else None


def open_parquet(path: str, schema: Json) -> Any:
    """A writer of Arrow's for a file with the types and footer of Spark's. Raises OSError.

    Spark classes ``SparkToParquetSchemaConverter`` and ``ParquetWriteSupport``, with the settings that are the default.
    """
    writer = parquet.ParquetWriter(
        path,
        pa.schema(list(_arrow_fields(schema))),
        compression="snappy",
        use_deprecated_int96_timestamps="timestamp" in set(type_names(schema)),
        store_schema=False,
        store_decimal_as_integer=True,
    )
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    footer = {"org.apache.spark.sql.parquet.row.metadata": text, "org.apache.spark.version": f"{NEWEST}.0"}
    writer.add_key_value_metadata(footer)  # readers learn from the version which calendar dates are of
    return writer


def _fit_rows(batch: Any, schema: Any) -> Any:
    """Rows with the NULLs of a schema. Raises Undecodable where NULL stands and none may."""
    try:
        columns = [column.view(field.type) for column, field in zip(batch.columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    except pa.ArrowInvalid as error:
        raise Undecodable(f"its rows do not match the state schema: {error}") from None


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


_SUCCESS = "_SUCCESS"  # what Spark puts into a folder that is written (``FileOutputCommitter``)


def find_obstacle(plan: ExportPlan, chosen: ChosenState) -> str | None:
    """Why what was planned is left to Spark; None where it would be the same. Raises Undecodable, which says so too."""
    for part in plan.parts:
        unit = part.reading.unit
        if part.reading.schema is None:
            return f"{unit.label}: its state schema cannot be read"
        deque(find_fitting_files(chosen, unit.operator, layout_of(chosen, unit).store), maxlen=0)  # it raises
        why = find_parquet_obstacle(spark_schema(part)) if plan.target.path is not None else None
        if why is not None:
            return f"{unit.label}: {why}"
    return None


def carry_out(plan: ExportPlan, chosen: ChosenState) -> tuple[ExportPart, ...]:
    """Write what was planned, all or nothing. ``chosen`` has the checkpoint of the plan.

    Raises Undecodable for what only Spark reads, UsageError where the target is taken, CkptError where it cannot be
    written, and what reading raises.
    """
    request, target = plan.request, plan.target
    done = []
    with _replace_folder(target) as folder:
        for part in plan.parts:
            inside = part.reading.unit.folder if request.all_units else ""
            own = folder / inside
            own.mkdir(exist_ok=True)
            rows = _write_unit(chosen, part, own, request.jobs)
            done.append(replace(part, rows=rows, place=f"{target.name}/{inside}".rstrip("/")))
            manifest = make_manifest(done[-1], request.shape, schema=spark_schema(part), kind=target.format, spark=None)
            (own / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
            (own / _SUCCESS).touch()
        if request.all_units:
            manifest = make_manifest_of_all(done, kind=target.format, spark=None)
            if plan.salvage is not None:
                lost = plan.salvage.lost
                manifest["lost"] = [{"operator": part.operator, "partition": part.partition} for part in lost]
            (folder / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
    return tuple(done)


def _write_unit(chosen: ChosenState, part: ExportPart, folder: Path, jobs: int | None) -> int:
    """Write the rows of a unit, a file for each partition that has any, and count them."""
    end, schema = f"{uuid.uuid4()}-c000.snappy.parquet", spark_schema(part)
    what = str(folder), end, part.columns, schema
    total: int = sum(map_partitions(chosen, part.reading.unit, _write_partition, what, jobs))
    if not total:
        open_parquet(f"{folder}/part-00000-{end}", schema).close()  # a reader learns the columns from it
    return total


def _write_partition(
    chosen: ChosenState, unit: StateUnit, what: tuple[str, str, Columns | None, Json], partition: int
) -> Iterator[int]:
    """Write the rows of one partition, if it has any, and count them."""
    (folder, end, columns, schema), total = what, 0
    with ExitStack() as stack:
        writer = None
        for batch in stack.enter_context(closing(batches_of(chosen, unit, columns, partition))):
            if batch.num_rows:
                writer = writer or stack.enter_context(open_parquet(f"{folder}/part-{partition:05}-{end}", schema))
                writer.write_batch(_fit_rows(batch, writer.schema))
                total += batch.num_rows
    yield total


@contextmanager
def _replace_folder(target: ExportTarget) -> Iterator[Path]:
    """A folder that appears whole or not at all: written beside its place under a hidden name, then renamed.

    Existing data is replaced only if requested, and only when the new folder is complete.
    """
    folder = Path(os.path.realpath(local_target(target.name) or target.name))
    hidden = folder.with_name(f".{folder.name}.ckpt-{uuid.uuid4().hex[:12]}")
    old = hidden.with_name(f"{hidden.name}-old")
    replaced = False
    try:
        _check_folder(folder, target)
        hidden.mkdir(parents=True)
        yield hidden
        if _check_folder(folder, target):
            os.rename(folder, old)
        os.rename(hidden, folder)  # fails where something has appeared there
        replaced = True
    except OSError as error:
        raise CkptError(f"{target.shown} could not be written, and is unchanged: {error}") from error
    finally:
        if old.exists() and not folder.exists():
            os.rename(old, folder)
        shutil.rmtree(hidden, ignore_errors=True)
        if replaced:
            shutil.rmtree(old, ignore_errors=True)


def _check_folder(folder: Path, target: ExportTarget) -> bool:
    """Tell whether there is something to be replaced. Raises UsageError where it must not be."""
    if not folder.exists():
        return False
    check_target(target, os.listdir(folder) if folder.is_dir() else None)
    return True
