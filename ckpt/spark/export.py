"""Exporting state: read, shape, write, and say what was written. Also counting, and showing a few rows."""

import json
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession, functions as F

from ckpt.errors import UsageError
from ckpt.model import Json
from ckpt.spark.errors import translate_failures
from ckpt.spark.files import Files, Staged
from ckpt.spark.initial import read_initial_frame
from ckpt.spark.progress import Watcher, watch_jobs
from ckpt.spark.reading import read_raw_frame
from ckpt.spark.shapes import flatten_columns, schema_of
from ckpt.state.export.manifest import make_manifest, make_manifest_of_all
from ckpt.state.export.targets import MANIFEST, ExportTarget, Format, Mode, check_types
from ckpt.state.reading.columns import Column, Columns, Shape, top_columns
from ckpt.state.reading.initial import InitialPlan
from ckpt.state.reading.reading import Reading
from ckpt.storage.locations import is_inside


@dataclass(frozen=True, slots=True)
class Shaped:
    """A reading as a frame of the shape that was asked for."""

    reading: Reading
    shape: Shape
    frame: DataFrame
    columns: Columns | None  # None for the raw shape

    @property
    def written_columns(self) -> tuple[Column, ...]:
        """The columns as a file format has to hold them."""
        if self.columns is not None:
            return self.columns.kept
        return top_columns(schema_of(self.frame))


@dataclass(frozen=True, slots=True)
class Exported:
    """One reading that was written, and where; ``rows`` is Spark's count."""

    shaped: Shaped
    place: str
    rows: int
    schema: Json


def shape_reading(spark: SparkSession, reading: Reading, shape: Shape, *, partition_id: bool = False) -> Shaped:
    """A reading in a shape. Raises SparkFailed."""
    frame = read_raw_frame(spark, reading)
    if shape is Shape.RAW:
        return Shaped(reading, shape, frame, None)
    columns = reading.columns(schema_of(frame), partition_id=partition_id)
    return Shaped(reading, shape, flatten_columns(frame, columns), columns)


def shape_initial(spark: SparkSession, plan: InitialPlan) -> Shaped:
    """All state of an operator, one row for each grouping key. Raises SparkFailed."""
    return Shaped(plan.together, Shape.INITIAL_STATE, read_initial_frame(spark, plan), plan.columns)


def count_rows(spark: SparkSession, state: Shaped, watcher: Watcher | None = None) -> int:
    """Count the rows of a reading."""
    with (
        translate_failures(f"counting {state.reading.unit.label}"),
        watch_jobs(spark, f"counting {state.reading.unit.label}", watcher),
    ):
        return int(state.frame.count())


def take_first_rows(
    spark: SparkSession, state: Shaped, number: int, watcher: Watcher | None = None
) -> list[dict[str, Any]]:
    """A few rows as JSON objects, as Spark writes them; which ones is up to Spark."""
    doing = f"reading {state.reading.unit.label}"
    with translate_failures(doing), watch_jobs(spark, doing, watcher):
        rows = state.frame.limit(number).select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"})).collect()
    return [json.loads(row[0]) for row in rows]


def write_exports(
    spark: SparkSession,
    states: Sequence[Shaped],
    target: ExportTarget,
    watcher: Watcher | None = None,
    *,
    apart: bool = False,
) -> tuple[Exported, ...]:
    """Write one reading to a target, or any number to a folder each below it (``apart``); all of them or nothing.

    Raises UsageError where the target is there already or cannot hold a column, SparkFailed where Spark fails.
    """
    for state in states:
        check_types(state.written_columns, target.format, state.shape)
    if target.table is not None:
        (state,) = states
        return (_write_table(spark, state, target.table, target, watcher),)
    files = Files(spark)
    if not apart and _is_delta_table(files, target):
        return (_overwrite_delta(spark, states[0], files, target, watcher),)
    staged = Staged(files, target)
    with ExitStack() as undo:
        undo.callback(staged.give_up)
        done, texts = [], {}
        for state in states:
            inside = f"{state.reading.unit.folder}/" if apart else ""
            exported = _write(spark, state, f"{staged.path}/{inside}".rstrip("/"), target.format, {}, watcher)
            texts[f"{inside}{MANIFEST}"] = _format_manifest(spark, exported, target.format)
            done.append(Exported(state, f"{target.name}/{inside}".rstrip("/"), exported.rows, exported.schema))
        if apart:
            listed = [(exported.shaped.reading, exported.rows) for exported in done]
            texts[MANIFEST] = (
                json.dumps(make_manifest_of_all(listed, kind=target.format, spark=spark.version), indent=2) + "\n"
            )
        staged.finish(texts)
        undo.pop_all()
    return tuple(done)


def _write(
    spark: SparkSession,
    state: Shaped,
    path: str,
    kind: Format,
    options: Mapping[str, str],
    watcher: Watcher | None,
) -> Exported:
    """Write a frame to a folder, and count its rows on the way."""
    rows = Observation()
    frame = state.frame.observe(rows, F.count(F.lit(1)).alias("rows"))
    doing = f"exporting {state.reading.unit.label}"
    with translate_failures(doing), watch_jobs(spark, doing, watcher):
        writer = frame.write.format(kind).options(**options, **_options(spark, state, kind))
        writer.mode("overwrite" if options else "error").save(path)
        return Exported(state, path, int(rows.get["rows"]), schema_of(state.frame))


def _overwrite_delta(
    spark: SparkSession, state: Shaped, files: Files, target: ExportTarget, watcher: Watcher | None
) -> Exported:
    """Overwrite a Delta table in one commit of its own log, which keeps what was there before."""
    path = target.name
    done = _write(spark, state, path, target.format, {"overwriteSchema": "true"}, watcher)
    files.write(f"{path}/{MANIFEST}", _format_manifest(spark, done, target.format))
    return done


def _is_delta_table(files: Files, target: ExportTarget) -> bool:
    overwrites = target.format is Format.DELTA and target.mode is Mode.OVERWRITE
    with translate_failures(f"checking {target.name}"):
        return overwrites and files.exists(f"{target.name}/_delta_log")


def _write_table(
    spark: SparkSession, state: Shaped, name: str, target: ExportTarget, watcher: Watcher | None
) -> Exported:
    """Write a table of the session's catalog; an existing one stays until the new one is complete."""
    with translate_failures(f"looking for {name}"):
        there = spark.catalog.tableExists(name)
        schema = name.rpartition(".")[0] or spark.catalog.currentDatabase()
        home = spark.catalog.getDatabase(schema).locationUri
    if is_inside(home, state.reading.checkpoint):
        raise UsageError(f"`table` {name} would be in the checkpoint, in {home}: ckpt never writes to a checkpoint")
    if there and target.mode is Mode.ERROR:
        raise UsageError(f'`table` {name} exists already: `mode="overwrite"` replaces it')
    aside = there and target.format is not Format.DELTA  # Delta replaces a table in one commit, others drop it first
    written = _choose_name_beside(name) if aside else name
    rows = Observation()
    frame = state.frame.observe(rows, F.count(F.lit(1)).alias("rows"))
    doing = f"exporting {state.reading.unit.label}"
    with translate_failures(doing), watch_jobs(spark, doing, watcher):
        writer = frame.write.format(target.format).options(**_options(spark, state, target.format))
        if target.mode is Mode.OVERWRITE and target.format is Format.DELTA:
            writer = writer.option("overwriteSchema", "true")
        try:
            # not every catalog can replace what is not there: Delta's refuses it for tables of other formats
            writer.mode(Mode.OVERWRITE if there and not aside else Mode.ERROR).saveAsTable(written)
            done = Exported(state, name, int(rows.get["rows"]), schema_of(state.frame))
            for row in spark.sql(f"DESCRIBE TABLE EXTENDED {written}").where("col_name = 'Location'").collect():
                Files(spark).write(f"{row['data_type']}/{MANIFEST}", _format_manifest(spark, done, target.format))
            if aside:
                spark.sql(f"DROP TABLE {name}")
        except BaseException:
            if aside:
                spark.sql(f"DROP TABLE IF EXISTS {written}")
            raise
    if aside:
        with translate_failures(f"renaming {written}, which is complete, to {name}"):
            spark.sql(f"ALTER TABLE {written} RENAME TO {name}")
    return done


def _choose_name_beside(name: str) -> str:
    """A name for a table that is to take the place of another: in the same schema, and not taken."""
    quote = "`" if name.endswith("`") else ""
    return f"{name.removesuffix('`')}_ckpt_{uuid.uuid4().hex[:12]}{quote}"


def _options(spark: SparkSession, state: Shaped, kind: Format) -> dict[str, str]:
    """The options of a format: CSV begins with the names, and Delta keeps the manifest with the commit."""
    if kind is not Format.DELTA:
        return {"header": "true"} if kind is Format.CSV else {}
    return {"userMetadata": json.dumps(_make_manifest(spark, state, schema_of(state.frame), None, kind))}


def _format_manifest(spark: SparkSession, done: Exported, kind: Format) -> str:
    return json.dumps(_make_manifest(spark, done.shaped, done.schema, done.rows, kind), indent=2) + "\n"


def _make_manifest(spark: SparkSession, state: Shaped, schema: Json, rows: int | None, kind: Format) -> dict[str, Any]:
    return make_manifest(
        state.reading, state.shape, state.columns, schema=schema, rows=rows, kind=kind, spark=spark.version
    )
