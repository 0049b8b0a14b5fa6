"""Counting, showing and exporting state without Spark: what ``ckpt.spark.export`` does with it, for what is certain."""

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ckpt.errors import CkptError
from ckpt.model import Json
from ckpt.state.export.manifest import make_manifest, make_manifest_of_all
from ckpt.state.export.parquet import ParquetFile, find_obstacle as find_parquet_obstacle, spark_schema
from ckpt.state.export.request import Action, ExportPart, ExportPlan, ExportRequest
from ckpt.state.export.targets import MANIFEST, ExportTarget, check_target, local_target
from ckpt.state.native.batches import batches_of
from ckpt.state.native.json_values import make_objects
from ckpt.state.native.layout import layout_of
from ckpt.state.native.partitions import count_rows, map_partitions
from ckpt.state.native.store_files import find_fitting_files
from ckpt.state.reading.columns import Columns, columns_of
from ckpt.state.reading.reading import Chosen, Reading
from ckpt.state.reading.units import StateUnit

_SUCCESS = "_SUCCESS"  # what Spark puts into a folder that is written (``FileOutputCommitter``)


@dataclass(frozen=True, slots=True)
class _Part:
    """One reading of a plan, found in the files."""

    reading: Reading
    unit: StateUnit
    columns: Columns | None  # None for the raw shape, which is not written

    @property
    def schema(self) -> Json:
        """The rows that are written, as Spark declares them."""
        return spark_schema(self.reading, self.columns or Columns((), ()))


def find_obstacle(plan: ExportPlan, chosen: Chosen) -> str | None:
    """Why what was planned is left to Spark; None where it would be the same. Raises Undecodable, which says so too."""
    for part in _list_parts(plan, chosen):
        if part.reading.schema is None:
            return f"{part.unit.label}: its state schema cannot be read"
        for _ in find_fitting_files(chosen, part.unit.operator, layout_of(chosen, part.unit).store):
            pass  # it raises
        why = find_parquet_obstacle(part.schema) if plan.target.path is not None else None
        if why is not None:
            return f"{part.unit.label}: {why}"
    return None


def carry_out(plan: ExportPlan, chosen: Chosen) -> tuple[ExportPart, ...]:
    """Count, show or write what was planned; of writing all or nothing. ``chosen`` has the units of the plan, in order.

    Raises Undecodable for what only Spark reads, UsageError where the target is taken, CkptError where it cannot be
    written, and what reading raises.
    """
    parts = _list_parts(plan, chosen)
    match plan.request.action:
        case Action.COUNT:
            return tuple(_count_part(chosen, part, plan.request.jobs) for part in parts)
        case Action.SHOW:
            return tuple(_show_part(chosen, part, plan.request.rows) for part in parts)
    return _export_parts(plan, chosen, parts)


def _list_parts(plan: ExportPlan, chosen: Chosen) -> list[_Part]:
    return [
        _Part(part.reading, unit, part.columns_of(plan.request))
        for part, unit in zip(plan.parts, chosen.units, strict=True)
    ]


def _count_part(chosen: Chosen, part: _Part, jobs: int | None) -> ExportPart:
    return ExportPart(part.reading, part.columns, count_rows(chosen, part.unit, jobs))


def _show_part(chosen: Chosen, part: _Part, number: int) -> ExportPart:
    rows: list[dict[str, Any]] = []
    with closing(batches_of(chosen, part.unit, part.columns)) as batches:
        for batch in batches:
            rows += make_objects(batch.slice(0, number - len(rows)))
            if len(rows) >= number:
                break
    return ExportPart(part.reading, part.columns, shown=rows)


def _export_parts(plan: ExportPlan, chosen: Chosen, parts: list[_Part]) -> tuple[ExportPart, ...]:
    request, target = plan.request, plan.target
    done = []
    with _replace_folder(target) as folder:
        for part in parts:
            inside = part.reading.unit.folder if request.all_units else ""
            own = folder / inside
            own.mkdir(exist_ok=True)
            rows = _write_unit(chosen, part, own, request)
            description = make_manifest(
                part.reading, request.shape, part.columns, schema=part.schema, rows=rows, kind=target.format, spark=None
            )
            _write_json(own / MANIFEST, description)
            (own / _SUCCESS).touch()
            done.append(ExportPart(part.reading, part.columns, rows, f"{target.name}/{inside}".rstrip("/")))
        if request.all_units:
            listed = [(exported.reading, exported.rows or 0) for exported in done]
            _write_json(folder / MANIFEST, make_manifest_of_all(listed, kind=target.format, spark=None))
    return tuple(done)


def _write_unit(chosen: Chosen, part: _Part, folder: Path, request: ExportRequest) -> int:
    """Write the rows of a unit, a file for each partition that has any, and count them."""
    what = {
        "folder": str(folder),
        "own": str(uuid.uuid4()),
        "schema": part.schema,
        "partition_id": request.partition_id,
    }
    total: int = sum(map_partitions(chosen, part.unit, _write_partition, what, request.jobs))
    if not total:
        with ParquetFile(_file_name(what, 0), part.schema):
            pass  # a reader learns the columns from it
    return total


def _write_partition(chosen: Chosen, unit: StateUnit, what: Mapping[str, Any], partition: int) -> Iterator[int]:
    """Write the rows of one partition, if it has any, and count them."""
    columns, total = columns_of(unit, partition_id=what["partition_id"]), 0
    with ExitStack() as stack:
        file = None
        for batch in stack.enter_context(closing(batches_of(chosen, unit, columns, partition))):
            if batch.num_rows:
                file = file or stack.enter_context(ParquetFile(_file_name(what, partition), what["schema"]))
                file.add(batch)
                total += batch.num_rows
    yield total


def _file_name(what: Mapping[str, Any], partition: int) -> str:
    return f"{what['folder']}/part-{partition:05}-{what['own']}-c000.snappy.parquet"


def _write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


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
