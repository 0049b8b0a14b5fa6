"""ckpt inspect."""

from typing import Annotated

import typer

from ckpt import inspection
from ckpt.errors import UsageError
from ckpt.findings import Asked
from ckpt.reader import open_checkpoint

from . import options
from .render.page import InspectionReport
from .report import Output, emit


def inspect(
    checkpoint: options.CheckpointArg,
    spark: options.SparkOption = None,
    progress: options.ProgressOption = Asked.BOTH,
    batches: options.BatchesOption = 10,
    deep: Annotated[bool, typer.Option("--deep", hidden=True)] = False,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say what is in CHECKPOINT, what is wrong with it, and what the next start will do.

    Only reads; starts no JVM. Exit status: 0 nothing wrong, 1 something found, 2 bad usage, 3 could not do it.
    """
    if deep:
        raise UsageError("--deep is not built yet; without it the ends of the state files a start loads are checked")
    opened = open_checkpoint(checkpoint, options.pairs("--storage-option", storage_option), batches=batches)
    found = inspection.inspect(opened, spark or (), progress, batches)
    emit(InspectionReport(found), output)
