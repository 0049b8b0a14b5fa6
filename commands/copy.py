"""ckpt copy."""

from typing import Annotated

import typer

import ckpt

from . import options
from .render.copying import CopyReport
from .report import emit
from .watching import bar, interruptible


def copy(
    checkpoint: options.CheckpointArg,
    common: options.NewOptions,
    new: Annotated[str, typer.Argument(metavar="NEW", help="A new local or remote folder, or --keep's folder.")],
    batch: Annotated[options.BatchOrTime, options.at("Copy as of this batch. Default: the newest.")] = None,
    new_id: Annotated[bool, typer.Option("--new-id", help="Give the copy its own query id.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would be copied.")] = False,
    deep: options.DeepOption = False,
    sink: options.SinkOption = None,
    since: Annotated[
        str | None, typer.Option(metavar="OLD", help="Link files that OLD, an earlier copy, already has.")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(metavar="RULE", help="Make a point in NEW, and keep only hourly=24,daily=7.")
    ] = None,
) -> None:
    """Copy CHECKPOINT to NEW as of a committed batch.

    The query may keep running; CHECKPOINT is only read. You can start a query on NEW. If NEW is the folder of a
    declarative pipeline's flow that has never run, the flow continues from CHECKPOINT. To move a query to another
    storage or cloud, stop it first; each side has its own storage options. With --keep, NEW is a folder of points.

    Examples:
    ckpt copy /cp/orders /tmp/orders --batch 307 --new-id
    ckpt copy /cp/orders /kept/orders --keep hourly=24,daily=7

    Exit status: 0 copied or planned, 1 copied with damaged state, 2 bad usage, 3 could not do it.
    """
    options.check_stays(new)
    with interruptible(), bar(quiet=common.quiet, of="files") as watcher:
        done = ckpt.copy(
            checkpoint,
            new,
            storage_options=common.storage_options,
            to_storage_options=common.to_storage_options,
            batch=batch,
            new_id=new_id,
            plan=plan,
            deep=deep,
            sink=sink,
            since=since,
            keep=keep,
            watcher=watcher,
        )
    emit(CopyReport(done, checkpoint, keep), common.output)
