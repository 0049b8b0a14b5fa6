"""ckpt repair-async."""

from typing import Annotated

import typer

from ckpt.repair import Strategy
from ckpt.repair import repair_async as repair

from . import change_options, options
from .render.repair import RepairReport
from .report import Output, emit


def repair_async(
    checkpoint: options.CheckpointArg,
    strategy: Annotated[
        Strategy, typer.Option("--strategy", help="Write the missing offsets, go back to two existing ones, or choose.")
    ] = Strategy.AUTO,
    apply: change_options.ApplyOption = False,
    backup: change_options.BackupOption = None,
    undo: change_options.UndoOption = None,
    spark: options.SparkOption = None,
    accept_replay: Annotated[
        bool, typer.Option("--accept-replay", help="Accept that rows of finished batches are read again.")
    ] = False,
    grace: change_options.GraceOption = 30.0,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Repair the gaps that asynchronous progress tracking leaves in CHECKPOINT ("batch 308 doesn't exist").

    Prints a plan; changes nothing without --apply. Exit status: 0 nothing to do, or done; 1 there is something to do,
    or another problem; 2 bad usage; 3 could not do it.
    """
    how = change_options.how(apply, backup, undo, grace, quiet=quiet)
    plan, receipt = repair(
        checkpoint,
        options.pairs("--storage-option", storage_option),
        strategy=strategy,
        versions=spark or (),
        accept_replay=accept_replay,
        **how,
    )
    emit(RepairReport(plan, receipt), output)
