"""Writing a planned migration: the initial state by Spark, and the code beside it; all of it or nothing."""

from contextlib import ExitStack

from pyspark.sql import SparkSession

from ckpt.errors import UsageError
from ckpt.migrate.generate.processor import processor_code
from ckpt.migrate.generate.sources import seen_folder
from ckpt.migrate.generate.start import start_code, too_many_for_code
from ckpt.migrate.transform import INITIAL_STATE, PROCESSOR, START, TransformPlan
from ckpt.spark.files import Files, Staged
from ckpt.spark.frames import read_initial_frame
from ckpt.spark.jobs import Watcher, translate_failures, write_counted
from ckpt.state.export.targets import ExportTarget, Mode, check_types


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
            raise UsageError(f"`to` {folder}: it exists already and is not changed: name a new folder")
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
