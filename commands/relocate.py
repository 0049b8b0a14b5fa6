"""ckpt relocate."""

from typing import Annotated

import typer

from ckpt.relocate import relocate as move

from . import change_options, options
from .render.relocation import RelocationReport
from .report import Output, emit


def relocate(
    checkpoint: options.CheckpointArg,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="URI", help="The URI that Spark will use. Default: the current location."),
    ] = None,
    apply: change_options.ApplyOption = False,
    backup: change_options.BackupOption = None,
    undo: change_options.UndoOption = None,
    grace: change_options.GraceOption = 30.0,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Make a moved or copied CHECKPOINT find its state schemas again; nothing is copied.

    Prints a plan; changes nothing without --apply. Exit status: 0 nothing to do, or done; 1 there is something to do,
    or another problem; 2 bad usage; 3 could not do it.
    """
    how = change_options.how(apply, backup, undo, grace, quiet=quiet, of_plan={"--to": to})
    plan, receipt = move(
        checkpoint,
        options.pairs("--storage-option", storage_option),
        to=to,
        **how,
    )
    emit(RelocationReport(plan, receipt, to), output)
