"""Exporting state through Hadoop's file systems, and saying what was written; and migrating."""

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ckpt.errors import CkptError, UsageError
from ckpt.migrate.generate.processor import processor_code
from ckpt.migrate.generate.start import seen_folder, start_code, too_many_for_code
from ckpt.migrate.transform import INITIAL_STATE, PROCESSOR, START, TransformPlan
from ckpt.spark.frames import flatten_columns, read_initial_frame, read_raw_frame, schema_of
from ckpt.spark.installed import SparkFailed, Watcher
from ckpt.spark.jobs import translate_failures, write_counted
from ckpt.state.export.manifest import make_manifest, make_manifest_of_all, manifest_text
from ckpt.state.export.request import ExportPart
from ckpt.state.export.targets import MANIFEST, ExportTarget, Format, Mode, check_target, check_types, folder_and_name
from ckpt.state.reading.columns import Columns, Shape, columns_of, top_columns
from ckpt.state.reading.initial import InitialPlan
from ckpt.state.reading.reading import Reading
from ckpt.storage.locations import is_inside

_RENAMED_AT_ONCE = ("file:", "hdfs:")  # elsewhere renaming a folder may be copying its files one by one
_TRIES, _PAUSE_SECONDS = 20, 0.5


@dataclass(frozen=True, slots=True)
class Files:
    """Few operations on paths of any Hadoop file system."""

    spark: SparkSession

    def exists(self, path: str) -> bool:
        """Tell whether there is something at the path."""
        where, system = self._locate(path)
        return bool(system.exists(where))

    def list_names(self, path: str) -> list[str] | None:
        """List a folder; None for a file."""
        where, system = self._locate(path)
        if not system.getFileStatus(where).isDirectory():
            return None
        return [status.getPath().getName() for status in system.listStatus(where)]

    def rename(self, path: str, to: str) -> None:
        """Rename a folder, on most file systems at once. Raises CkptError where that fails."""
        where, system = self._locate(path)
        if not system.rename(where, self._locate(to)[0]):
            raise CkptError(f"{path} could not be renamed to {to}")

    def remove(self, path: str) -> None:
        """Remove a folder and all that is in it; fine where there is none."""
        where, system = self._locate(path)
        system.delete(where, True)

    def write(self, path: str, text: str) -> None:
        """Write a small file, over one that is there."""
        where, system = self._locate(path)
        with closing(system.create(where, True)) as stream:
            stream.write(bytearray(text, "utf-8"))

    def _locate(self, path: str) -> tuple[Any, Any]:
        where = self.spark.sparkContext._jvm.org.apache.hadoop.fs.Path(path)
        return where, where.getFileSystem(self.spark._jsparkSession.sessionState().newHadoopConf())


class Staged:
    """A folder that appears whole or not at all: written beside its place under a hidden name, then renamed.

    Existing data is replaced only if requested, and only when the new folder is complete.
    """

    def __init__(self, files: Files, target: ExportTarget) -> None:
        """Look at the place. Raises UsageError if something exists that must not be replaced."""
        self._files = files
        self._place = target.name.rstrip("/")
        parent, name = folder_and_name(self._place)
        self.path = f"{parent}/.{name}.ckpt-{uuid.uuid4().hex[:12]}"
        self._at_once = self._place.startswith(_RENAMED_AT_ONCE)
        with translate_failures(f"checking {self._place}"):
            self._replaces = files.exists(self._place)
            if self._replaces:
                check_target(target, files.list_names(self._place))

    def finish(self, texts: Mapping[str, str]) -> None:
        """Put the whole folder in its place, with small files that say so: path below it, and text.

        Where renaming is copying these are written last, so that nothing has them that is not whole.
        """
        with translate_failures(f"putting {self._place} in its place"):
            if self._at_once:
                self._write(self.path, texts)
            if not self._replaces:
                if self._files.exists(self._place):  # a rename would move the folder into it
                    raise CkptError(f"{self._place} appeared while the export was being written, and is not changed")
                self._swap(texts)
                return
            old = f"{self.path}-old"
            self._files.rename(self._place, old)
            try:
                self._swap(texts)
            except BaseException:
                self._files.rename(old, self._place)
                raise
            self._files.remove(old)

    def _swap(self, texts: Mapping[str, str]) -> None:
        """Rename the folder to its place, which is free; leave that free where it fails."""
        try:
            self._files.rename(self.path, self._place)
            if not self._at_once:
                self._write(self._place, texts)
        except BaseException:
            if not self._at_once:
                self._files.remove(self._place)  # a copy that was cut short
            raise

    def _write(self, folder: str, texts: Mapping[str, str]) -> None:
        for path, text in texts.items():
            self._files.write(f"{folder}/{path}", text)

    def give_up(self) -> None:
        """Remove what was written, as far as the file system still answers.

        Tasks that were cancelled go on until they notice, and make the folder again: it is removed until it stays away.
        """
        with suppress(SparkFailed), translate_failures(f"removing {self.path}"):
            for _ in range(_TRIES):
                self._files.remove(self.path)
                time.sleep(_PAUSE_SECONDS)
                if not self._files.exists(self.path):
                    return


@dataclass(frozen=True, slots=True)
class Shaped:
    """A reading as a frame of the shape that was asked for."""

    reading: Reading
    shape: Shape
    frame: DataFrame
    columns: Columns | None  # None for the raw shape


def shape_reading(spark: SparkSession, reading: Reading, shape: Shape, *, partition_id: bool = False) -> Shaped:
    """A reading in a shape. Raises SparkFailed."""
    frame = read_raw_frame(spark, reading)
    if shape is Shape.RAW:
        return Shaped(reading, shape, frame, None)
    columns = columns_of(reading.unit, schema_of(frame), partition_id=partition_id)
    return Shaped(reading, shape, flatten_columns(frame, columns), columns)


def shape_initial(spark: SparkSession, plan: InitialPlan) -> Shaped:
    """All state of an operator, one row for each grouping key. Raises SparkFailed."""
    return Shaped(plan.together, Shape.INITIAL_STATE, read_initial_frame(spark, plan), plan.columns)


def write_exports(
    spark: SparkSession,
    states: Sequence[Shaped],
    target: ExportTarget,
    watcher: Watcher | None = None,
    *,
    apart: bool = False,
) -> tuple[ExportPart, ...]:
    """Write one reading to a target, or any number to a folder each below it (``apart``); all of them or nothing.

    Raises UsageError where the target is there already or cannot hold a column, SparkFailed where Spark fails.
    """
    for state in states:
        columns = state.columns.kept if state.columns is not None else top_columns(schema_of(state.frame))
        check_types(columns, target.format, state.shape)
    if target.table is not None:
        (state,) = states
        return (_write_table(spark, state, target.table, target, watcher),)
    files = Files(spark)
    if not apart and _is_delta_table(files, target):  # overwritten in one commit of its log, which keeps the old data
        rows = _write(spark, states[0], target, target.name, Mode.OVERWRITE, watcher)
        files.write(f"{target.name}/{MANIFEST}", _write_manifest(spark, states[0], target, rows))
        return (ExportPart(states[0].reading, states[0].columns, rows, target.name),)
    staged = Staged(files, target)
    with ExitStack() as undo:
        undo.callback(staged.give_up)
        done, texts = [], {}
        for state in states:
            inside = f"{state.reading.unit.folder}/" if apart else ""
            path = f"{staged.path}/{inside}".rstrip("/")
            rows = _write(spark, state, target, path, Mode.ERROR, watcher)
            done.append(ExportPart(state.reading, state.columns, rows, f"{target.name}/{inside}".rstrip("/")))
            texts[f"{inside}{MANIFEST}"] = _write_manifest(spark, state, target, rows)
        if apart:
            texts[MANIFEST] = manifest_text(make_manifest_of_all(done, kind=target.format, spark=spark.version))
        staged.finish(texts)
        undo.pop_all()
    return tuple(done)


def _write(
    spark: SparkSession, state: Shaped, target: ExportTarget, name: str, mode: Mode, watcher: Watcher | None
) -> int:
    """Write a frame, and count its rows on the way: CSV begins with the names, Delta keeps the manifest."""
    options: dict[str, str] = {}
    if target.format is Format.CSV:
        options["header"] = "true"
    elif target.format is Format.DELTA:
        options["userMetadata"] = json.dumps(_make_manifest(spark, state, target, None))
        options |= {"overwriteSchema": "true"} if mode is Mode.OVERWRITE else {}

    def save(writer: Any) -> None:
        writer = writer.format(target.format).options(**options).mode(mode)
        writer.save(name) if target.table is None else writer.saveAsTable(name)

    return write_counted(spark, state.frame, f"exporting {state.reading.unit.label}", watcher, save)


def _is_delta_table(files: Files, target: ExportTarget) -> bool:
    overwrites = target.format is Format.DELTA and target.mode is Mode.OVERWRITE
    with translate_failures(f"checking {target.name}"):
        return overwrites and files.exists(f"{target.name}/_delta_log")


def _write_table(
    spark: SparkSession, state: Shaped, name: str, target: ExportTarget, watcher: Watcher | None
) -> ExportPart:
    """Write a table of the session's catalog; an existing one stays until the new one is complete."""
    with translate_failures(f"looking for {name}"):
        there = spark.catalog.tableExists(name)
        schema = name.rpartition(".")[0] or spark.catalog.currentDatabase()
        home = spark.catalog.getDatabase(schema).locationUri
    if is_inside(home, state.reading.checkpoint):
        raise UsageError.of(
            "{--table} {name} would be in the checkpoint, in {home}: ckpt never exports into a checkpoint",
            name=name,
            home=home,
        )
    if there and target.mode is Mode.ERROR:
        raise UsageError.of("{--table} {name} already exists: {--mode=overwrite} replaces it", name=name)
    aside = there and target.format is not Format.DELTA  # Delta replaces a table in one commit, others drop it first
    written = _choose_name_beside(name) if aside else name
    # not every catalog can replace what is not there: Delta's refuses it for tables of other formats
    mode = Mode.OVERWRITE if there and not aside else Mode.ERROR
    with translate_failures(f"exporting {state.reading.unit.label}"):
        try:
            rows = _write(spark, state, target, written, mode, watcher)
            for row in spark.sql(f"DESCRIBE TABLE EXTENDED {written}").where("col_name = 'Location'").collect():
                manifest = _write_manifest(spark, state, target, rows)
                Files(spark).write(f"{row['data_type']}/{MANIFEST}", manifest)
            if aside:
                spark.sql(f"DROP TABLE {name}")
        except BaseException:
            if aside:
                spark.sql(f"DROP TABLE IF EXISTS {written}")
            raise
    if aside:
        with translate_failures(f"renaming {written}, which is complete, to {name}"):
            spark.sql(f"ALTER TABLE {written} RENAME TO {name}")
    return ExportPart(state.reading, state.columns, rows, name)


def _choose_name_beside(name: str) -> str:
    """A name for a table that is to take the place of another: in the same schema, and not taken."""
    quote = "`" if name.endswith("`") else ""
    return f"{name.removesuffix('`')}_ckpt_{uuid.uuid4().hex[:12]}{quote}"


def _write_manifest(spark: SparkSession, state: Shaped, target: ExportTarget, rows: int) -> str:
    return manifest_text(_make_manifest(spark, state, target, rows))


def _make_manifest(spark: SparkSession, state: Shaped, target: ExportTarget, rows: int | None) -> dict[str, Any]:
    part, schema = ExportPart(state.reading, state.columns, rows), schema_of(state.frame)
    return make_manifest(part, state.shape, schema=schema, kind=target.format, spark=spark.version)


def write_transform(spark: SparkSession, plan: TransformPlan, folder: str, watcher: Watcher | None = None) -> int:
    """Write a migration to a folder that is not there yet, or empty; it appears whole or not at all.

    Returns how many keys there are: rows of the initial state, as Spark counted them.
    ``folder`` is a path as Spark is given it (``targets.choose_target``). Raises UsageError where something is
    there already or the format cannot hold a column, SparkFailed where Spark fails.
    """
    check_types(plan.columns, plan.format)
    files = Files(spark)
    with translate_failures(f"checking {folder}"):
        if files.exists(folder) and files.list_names(folder) != []:
            raise UsageError.of(
                "{--to} {folder}: it already exists and is not changed: name a new folder", folder=folder
            )
    staged = Staged(files, ExportTarget(folder, None, plan.format, Mode.OVERWRITE))
    with ExitStack() as undo:
        undo.callback(staged.give_up)
        doing, path = f"writing the initial state of operator {plan.shape.operator}", f"{staged.path}/{INITIAL_STATE}"
        frame = read_initial_frame(spark, plan.initial)
        keys = write_counted(spark, frame, doing, watcher, lambda writer: writer.format(plan.format).save(path))
        for start in too_many_for_code(plan):
            files_seen = spark.createDataFrame([(file,) for file in start.seen], "file string")
            with translate_failures(f"writing the names of the files that source {start.view.index} has read"):
                files_seen.coalesce(1).write.parquet(f"{staged.path}/{seen_folder(start)}")
        start_text = start_code(plan, None if folder.startswith("file:") else folder)
        code = {PROCESSOR: processor_code(plan), START: start_text}
        staged.finish(code)
        for name in code:
            files.remove(f"{folder}/.{name}.crc")  # Hadoop's checksum would be wrong once the file is edited
        undo.pop_all()
    return keys
