"""ckpt rewrite."""

from typing import Annotated

import typer

import ckpt
from ckpt.migrate import ToProvider

from . import options
from .render.rewriting import RewriteReport
from .report import Output, emit
from .watching import bar, interruptible


def rewrite(
    checkpoint: options.CheckpointArg,
    into: Annotated[
        str,
        typer.Option("--into", metavar="NEW", help="A folder that does not exist yet or is empty, local or remote."),
    ],
    provider: Annotated[
        ToProvider | None, typer.Option("--provider", help="The state store provider. Default: as it is.")
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, metavar="N", help="Shuffle partitions. Default: as many as now."),
    ] = None,
    format_version: Annotated[
        int | None,
        typer.Option(
            "--format-version", min=1, max=2, metavar="1|2", help="State store checkpoint format. Default: as it is."
        ),
    ] = None,
    drop_keys: Annotated[
        str | None,
        typer.Option("--drop-keys", metavar="FILE", help='Leave out these keys: lines such as {"user": "x"}.'),
    ] = None,
    new_id: Annotated[bool, typer.Option("--new-id", help="Give NEW a query id of its own.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be written.")] = False,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Write a checkpoint NEW with the state of CHECKPOINT in another provider, number of partitions or format.

    CHECKPOINT is only read; starts no JVM. Exit status: 0 written or planned, 2 bad usage, 3 could not do it.
    """
    given = options.pairs("--storage-option", storage_option)
    options.check_stays(into)
    with interruptible(), bar(quiet=quiet, of="stores") as watcher:
        found = ckpt.rewrite_checkpoint(
            checkpoint,
            into,
            given,
            provider=provider,
            partitions=partitions,
            format_version=format_version,
            drop_keys=drop_keys or (),
            new_id=new_id,
            plan=plan,
            watcher=watcher,
        )
    emit(RewriteReport(found, checkpoint), output)
