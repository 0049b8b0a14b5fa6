"""ckpt relocate."""

from typing import Annotated

import typer

from ckpt.errors import UsageError
from ckpt.relocate import relocate as move

from . import options
from .render.relocation import RelocationReport
from .report import Output, emit


def relocate(
    checkpoint: options.CheckpointArg,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="URI", help="Under which Spark will open it. Default: where it lies."),
    ] = None,
    apply: options.ApplyOption = False,
    backup: options.BackupOption = None,
    undo: Annotated[
        str | None, typer.Option("--undo", metavar="BACKUP", help="Put back what a relocation changed.")
    ] = None,
    grace: options.GraceOption = 30.0,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Make a CHECKPOINT that was moved or copied find its state schemas again; nothing is copied.

    Prints a plan, and changes nothing without --apply. Exit status: 0 nothing to do, or done; 1 something is to be
    done, or wrong otherwise; 2 bad usage; 3 could not do it.
    """
    if undo is not None and (apply or backup is not None or to is not None):
        raise UsageError("--undo puts everything back by itself: leave out --to, --apply and --backup")
    options.say_that_it_takes_time((apply or undo) and grace, quiet=quiet)
    plan, receipt = move(
        checkpoint,
        options.pairs("--storage-option", storage_option),
        to=to,
        apply=apply,
        backup=backup,
        undo=undo,
        grace_s=grace,
    )
    emit(RelocationReport(plan, receipt, checkpoint, to), output)
