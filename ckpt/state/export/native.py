"""Counting, showing and exporting state without Spark: what ``ckpt.spark.export`` does with it, for what is certain."""

import os
import shutil
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ckpt.errors import CkptError
from ckpt.model import Json
from ckpt.state.export.manifest import make_manifest, make_manifest_of_all, manifest_text
from ckpt.state.export.parquet import ParquetFile, find_obstacle as find_parquet_obstacle, spark_schema
from ckpt.state.export.request import Action, ExportPart, ExportPlan, ExportRequest
from ckpt.state.export.targets import MANIFEST, ExportTarget, check_target, local_target
from ckpt.state.native.batches import batches_of
from ckpt.state.native.json_values import make_objects
from ckpt.state.native.layout import layout_of
from ckpt.state.native.partitions import count_rows, map_partitions
from ckpt.state.native.store_files import find_fitting_files
from ckpt.state.reading.columns import Columns, columns_of
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit

_SUCCESS = "_SUCCESS"  # what Spark puts into a folder that is written (``FileOutputCommitter``)


def find_obstacle(plan: ExportPlan, chosen: Chosen) -> str | None:
    """Why what was planned is left to Spark; None where it would be the same. Raises Undecodable, which says so too."""
    for part in _list_parts(plan):
        unit = part.reading.unit
        if part.reading.schema is None:
            return f"{unit.label}: its state schema cannot be read"
        deque(find_fitting_files(chosen, unit.operator, layout_of(chosen, unit).store), maxlen=0)  # it raises
        why = find_parquet_obstacle(spark_schema(part)) if plan.target.path is not None else None
        if why is not None:
            return f"{unit.label}: {why}"
    return None


def carry_out(plan: ExportPlan, chosen: Chosen) -> tuple[ExportPart, ...]:
    """Count, show or write what was planned; of writing all or nothing. ``chosen`` has the checkpoint of the plan.

    Raises Undecodable for what only Spark reads, UsageError where the target is taken, CkptError where it cannot be
    written, and what reading raises.
    """
    request, parts = plan.request, _list_parts(plan)
    match request.action:
        case Action.COUNT:
            counts = (count_rows(chosen, part.reading.unit, request.jobs) for part in parts)
            return tuple(replace(part, rows=rows) for part, rows in zip(parts, counts, strict=True))
        case Action.SHOW:
            return tuple(_show_part(chosen, part, request.rows) for part in parts)
    return _export_parts(plan, chosen, parts)


def _list_parts(plan: ExportPlan) -> list[ExportPart]:
    return [replace(part, columns=part.columns_of(plan.request)) for part in plan.parts]


def _show_part(chosen: Chosen, part: ExportPart, number: int) -> ExportPart:
    rows: list[dict[str, Any]] = []
    with closing(batches_of(chosen, part.reading.unit, part.columns)) as batches:
        for batch in batches:
            rows += make_objects(batch.slice(0, number - len(rows)))
            if len(rows) >= number:
                break
    return replace(part, shown=rows)


def _export_parts(plan: ExportPlan, chosen: Chosen, parts: list[ExportPart]) -> tuple[ExportPart, ...]:
    request, target = plan.request, plan.target
    done = []
    with _replace_folder(target) as folder:
        for part in parts:
            inside = part.reading.unit.folder if request.all_units else ""
            own = folder / inside
            own.mkdir(exist_ok=True)
            rows = _write_unit(chosen, part, own, request)
            done.append(replace(part, rows=rows, place=f"{target.name}/{inside}".rstrip("/")))
            manifest = make_manifest(done[-1], request.shape, schema=spark_schema(part), kind=target.format, spark=None)
            (own / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
            (own / _SUCCESS).touch()
        if request.all_units:
            manifest = make_manifest_of_all(done, kind=target.format, spark=None)
            (folder / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
    return tuple(done)


def _write_unit(chosen: Chosen, part: ExportPart, folder: Path, request: ExportRequest) -> int:
    """Write the rows of a unit, a file for each partition that has any, and count them."""
    unit, end = part.reading.unit, f"{uuid.uuid4()}-c000.snappy.parquet"
    columns, schema = columns_of(unit, partition_id=request.partition_id), spark_schema(part)
    what = str(folder), end, columns, schema
    total: int = sum(map_partitions(chosen, unit, _write_partition, what, request.jobs))
    if not total:
        with ParquetFile(f"{folder}/part-00000-{end}", schema):
            pass  # a reader learns the columns from it
    return total


def _write_partition(
    chosen: Chosen, unit: StateUnit, what: tuple[str, str, Columns, Json], partition: int
) -> Iterator[int]:
    """Write the rows of one partition, if it has any, and count them."""
    (folder, end, columns, schema), total = what, 0
    with ExitStack() as stack:
        file = None
        for batch in stack.enter_context(closing(batches_of(chosen, unit, columns, partition))):
            if batch.num_rows:
                file = file or stack.enter_context(ParquetFile(f"{folder}/part-{partition:05}-{end}", schema))
                file.add(batch)
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
        raise CkptError(f"{target.shown} could not be written, and is as it was: {error}") from error
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
