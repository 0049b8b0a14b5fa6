"""Exporting state through Hadoop's file systems, and saying what was written; and migrating."""

import json
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from ckpt.errors import CkptError, UsageError
from ckpt.migrate.generate.processor import processor_code
from ckpt.migrate.generate.start import seen_folder, start_code, too_many_for_code
from ckpt.migrate.transform import INITIAL_STATE, PROCESSOR, START, TransformPlan
from ckpt.spark.frames import flatten_columns, read_initial_frame, read_raw_frame, schema_of
from ckpt.spark.installed import SparkFailed, Watcher
from ckpt.spark.jobs import translate_failures, write_counted
from ckpt.state.export.manifest import make_manifest, make_manifest_of_all, manifest_text
from ckpt.state.export.request import ExportPart, ExportPlan
from ckpt.state.export.targets import MANIFEST, ExportTarget, Format, Mode, check_target, check_types, folder_and_name
from ckpt.state.reading.columns import Shape, columns_of, top_columns
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            self.give_up()

    def finish(self, texts: Mapping[str, str]) -> None:
        """Put the whole folder in its place, with small files that say so: path below it, and text.

        Where renaming is copying these are written last, so that nothing has them that is not whole.
        """
        with translate_failures(f"putting {self._place} in its place"), ExitStack() as undo:
            if self._at_once:
                self._write(self.path, texts)
            old = f"{self.path}-old"
            if self._replaces:
                self._files.rename(self._place, old)
                undo.callback(self._files.rename, old, self._place)
            elif self._files.exists(self._place):  # a rename would move the folder into it
                raise CkptError(f"{self._place} appeared while the export was being written, and is not changed")
            if not self._at_once:
                undo.callback(self._files.remove, self._place)  # a copy that was cut short
            self._files.rename(self.path, self._place)
            if not self._at_once:
                self._write(self._place, texts)
            undo.pop_all()
            if self._replaces:
                self._files.remove(old)

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


def shape_reading(
    spark: SparkSession, reading: Reading | InitialPlan, shape: Shape, *, partition_id: bool = False
) -> tuple[DataFrame, ExportPart]:
    """A reading in the shape that was asked for: its frame, and what that has. Raises SparkFailed."""
    if isinstance(reading, InitialPlan):
        return read_initial_frame(spark, reading), ExportPart(reading.together, reading.columns)
    frame = read_raw_frame(spark, reading)
    if shape is Shape.RAW:
        return frame, ExportPart(reading)
    columns = columns_of(reading.unit, schema_of(frame), partition_id=partition_id)
    return flatten_columns(frame, columns), ExportPart(reading, columns)


def write_exports(spark: SparkSession, plan: ExportPlan, watcher: Watcher | None = None) -> tuple[ExportPart, ...]:
    """Write what was planned: one reading to a target, or all of them to a folder each below it; all or nothing.

    Raises UsageError where the target is there already or cannot hold a column, SparkFailed where Spark fails.
    """
    request, target, writing = plan.request, plan.target, _Writing(spark, plan, watcher)
    states = [
        shape_reading(spark, reading, request.shape, partition_id=request.partition_id) for reading in plan.readings
    ]
    for frame, part in states:
        columns = part.columns.kept if part.columns is not None else top_columns(schema_of(frame))
        check_types(columns, target.format, request.shape)
    if target.table is not None:
        return (writing.write_table(*states[0], target.table),)
    files = Files(spark)
    if not request.all_units and _is_delta_table(files, target):  # one commit of its log, which keeps the old data
        written, manifest = writing.write(*states[0], target.name, Mode.OVERWRITE)
        files.write(f"{target.name}/{MANIFEST}", manifest)
        return (written,)
    with Staged(files, target) as staged:
        done, texts = [], {}
        for frame, part in states:
            inside = f"{part.reading.unit.folder}/" if request.all_units else ""
            written, texts[f"{inside}{MANIFEST}"] = writing.write(frame, part, f"{staged.path}/{inside}".rstrip("/"))
            done.append(replace(written, place=f"{target.name}/{inside}".rstrip("/")))
        if request.all_units:
            texts[MANIFEST] = manifest_text(make_manifest_of_all(done, kind=target.format, spark=spark.version))
        staged.finish(texts)
    return tuple(done)


def _is_delta_table(files: Files, target: ExportTarget) -> bool:
    overwrites = target.format is Format.DELTA and target.mode is Mode.OVERWRITE
    with translate_failures(f"checking {target.name}"):
        return overwrites and files.exists(f"{target.name}/_delta_log")


@dataclass(frozen=True, slots=True)
class _Writing:
    """An export that is being written."""

    spark: SparkSession
    plan: ExportPlan
    watcher: Watcher | None

    def write(self, frame: DataFrame, part: ExportPart, name: str, mode: Mode = Mode.ERROR) -> tuple[ExportPart, str]:
        """Write a frame, count its rows on the way, and make its manifest.

        CSV begins with the names, Delta keeps the manifest.
        """
        target, options = self.plan.target, dict[str, str]()
        if target.format is Format.CSV:
            options["header"] = "true"
        elif target.format is Format.DELTA:
            options["userMetadata"] = json.dumps(self._make_manifest(frame, part))
            options |= {"overwriteSchema": "true"} if mode is Mode.OVERWRITE else {}

        def save(writer: Any) -> None:
            writer = writer.format(target.format).options(**options).mode(mode)
            writer.save(name) if target.table is None else writer.saveAsTable(name)

        rows = write_counted(self.spark, frame, f"exporting {part.reading.unit.label}", self.watcher, save)
        written = replace(part, rows=rows, place=name)
        return written, manifest_text(self._make_manifest(frame, written))

    def _make_manifest(self, frame: DataFrame, part: ExportPart) -> dict[str, Any]:
        kind, shape = self.plan.target.format, self.plan.request.shape
        return make_manifest(part, shape, schema=schema_of(frame), kind=kind, spark=self.spark.version)

    def write_table(self, frame: DataFrame, part: ExportPart, name: str) -> ExportPart:
        """Write a table of the session's catalog; an existing one stays until the new one is complete."""
        spark, target = self.spark, self.plan.target
        with translate_failures(f"looking for {name}"):
            there = spark.catalog.tableExists(name)
            schema = name.rpartition(".")[0] or spark.catalog.currentDatabase()
            home = spark.catalog.getDatabase(schema).locationUri
        if is_inside(home, part.reading.checkpoint):
            raise UsageError.of(
                "{--table} {name} would be in the checkpoint, in {home}: ckpt never exports into a checkpoint",
                name=name,
                home=home,
            )
        if there and target.mode is Mode.ERROR:
            raise UsageError.of("{--table} {name} already exists: {--mode=overwrite} replaces it", name=name)
        aside = there and target.format is not Format.DELTA  # Delta replaces a table in one commit, others drop it
        written = _choose_name_beside(name) if aside else name
        # not every catalog can replace what is not there: Delta's refuses it for tables of other formats
        mode = Mode.OVERWRITE if there and not aside else Mode.ERROR
        with translate_failures(f"exporting {part.reading.unit.label}"):
            try:
                done, manifest = self.write(frame, part, written, mode)
                for row in spark.sql(f"DESCRIBE TABLE EXTENDED {written}").where("col_name = 'Location'").collect():
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
        return replace(done, place=name)


def _choose_name_beside(name: str) -> str:
    """A name for a table that is to take the place of another: in the same schema, and not taken."""
    quote = "`" if name.endswith("`") else ""
    return f"{name.removesuffix('`')}_ckpt_{uuid.uuid4().hex[:12]}{quote}"


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
    with Staged(files, ExportTarget(folder, None, plan.format, Mode.OVERWRITE)) as staged:
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
    return keys
