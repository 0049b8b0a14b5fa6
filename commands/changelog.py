"""ckpt migrate changelog."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import typer

from ckpt.errors import CkptError, UsageError
from ckpt.migrate import ChangelogSwitch, Comparison, Outcome, To, switch_changelog

from . import options
from .progress import bar
from .render.changelog import ChangelogReport
from .report import Output, emit


def changelog(
    checkpoint: options.CheckpointArg,
    to: Annotated[To, typer.Option("--to", help="What changelog checkpointing is to be.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Batches have run with the new setting: say whether it took.")
    ] = False,
    files_only: Annotated[
        bool, typer.Option("--files-only", help="With --verify: leave out what needs Spark, comparing state.")
    ] = False,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say whether changelog checkpointing of CHECKPOINT can be switched, with which setting, and whether it was.

    Only reads: the switch is a setting of the session. Starts no JVM, but for --verify, which compares state with
    Spark. Exit status: 0 it is so already, or took and state was compared; 1 it can be made, has not taken everywhere,
    or state differs or cannot be compared yet; 2 bad usage; 3 refused, could not look, or Spark could not compare.
    """
    if not verify and (files_only or master is not None or conf):
        raise UsageError("--files-only, --master and --conf go with --verify; nothing else needs Spark")
    settings = options.pairs("--conf", conf)
    storage_options = options.pairs("--storage-option", storage_option)
    found = switch_changelog(checkpoint, to, storage_options, verify=verify)
    if found.outcome is Outcome.SWITCHED and not files_only:
        found = replace(found, comparison=_compared(found, storage_options, master, settings, quiet=quiet))
    emit(ChangelogReport(found), output)


def _compared(
    found: ChangelogSwitch,
    storage_options: Mapping[str, str],
    master: str | None,
    settings: Mapping[str, str],
    *,
    quiet: bool,
) -> Comparison:
    """What Spark says of state; imports pyspark, where there is something to compare."""
    told = Comparison(found.ways)
    if all(way.why is not None for way in found.ways):
        return told
    from ckpt.spark.needs import pyspark_version

    try:
        pyspark_version()
        from ckpt.spark.compare import Comparing
        from ckpt.spark.session import session

        with session(master, settings, delta=False) as spark, bar(quiet=quiet) as watcher:
            told = replace(told, spark=spark.version)
            comparing = Comparing(spark, found.inspection.checkpoint, storage_options, watcher)
            for compared in comparing.compared(found.ways):
                told = replace(told, compared=(*told.compared, compared))
            for carried in comparing.carried(found.ways):
                told = replace(told, carried=(*told.carried, carried))
    except CkptError as error:
        return replace(told, failed=str(error))
    except KeyboardInterrupt:
        return replace(told, failed="interrupted")
    return told
