"""ckpt inspect."""

from typing import Annotated

import typer

import ckpt
from ckpt.findings import Asked

from . import options, render


def inspect(
    checkpoint: options.CheckpointArg,
    spark: options.SparkOption = None
    progress: options.ProgressOption = Asked.BOTH,
    batches: options.BatchesOption = 10,
    storage_option: options.StorageOption = None
    output: options.OutputOption = options.Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say what is in CHECKPOINT, what is wrong with it, and what the next start will do.

    Reads only, starts no JVM. Exit status: 0 nothing wrong, 1 something found, 2 bad usage, 3 could not do it.
    """
