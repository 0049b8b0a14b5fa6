"""ckpt migrate changelog."""

from typing import Annotated

import typer

from ckpt.errors import UsageError
from ckpt.migrate import Changelog, switch_changelog
from ckpt.spark.calls import verify_changelog

from . import options
from .progress import session
from .render.changelog import ChangelogReport
from .report import Output, emit


def changelog(
    checkpoint: options.CheckpointArg,
    to: Annotated[Changelog, typer.Option("--to", help="What changelog checkpointing is to be.")],
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
    storage_options = options.pairs("--storage-option", storage_option)
    with session(master, conf, quiet=quiet) as with_spark:
        if verify and not files_only:
            found = verify_changelog(checkpoint, to, storage_options, with_spark)
        else:
            found = switch_changelog(checkpoint, to, storage_options, verify=verify)
    emit(ChangelogReport(found), output)
