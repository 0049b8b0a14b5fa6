"""ckpt copy."""

from typing import Annotated

import typer

import ckpt

from . import options
from .render.copying import CopyReport
from .report import Output, emit
from .watching import bar, interruptible


def copy(
    checkpoint: options.CheckpointArg,
    new: Annotated[str, typer.Argument(metavar="NEW", help="A new or empty folder, local or remote.")],
    batch: Annotated[
        int | None,
        typer.Option("--batch", min=0, metavar="N", help="Copy as of batch N. Default: the newest."),
    ] = None,
    new_id: Annotated[bool, typer.Option("--new-id", help="Give the copy its own query id.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be copied.")] = False,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Copy CHECKPOINT to NEW as of a committed batch.

    The query may run meanwhile; CHECKPOINT is only read, and a query can be started on NEW.

    Examples:
    ckpt copy /cp/orders /cp/orders-copy
    ckpt copy s3://bucket/orders /tmp/orders --batch 307 --new-id

    Exit status: 0 copied or planned, 2 bad usage, 3 could not do it.

    """
    storage_options = options.pairs("--storage-option", storage_option)
    options.check_stays(new)
    with interruptible(), bar(quiet=quiet, of="files") as watcher:
        done = ckpt.copy(checkpoint, new, storage_options, batch=batch, new_id=new_id, plan=plan, watcher=watcher)
    emit(CopyReport(done, checkpoint), output)
