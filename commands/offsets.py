"""ckpt offsets: a group of commands about where the sources of a query stand."""

from typing import Annotated

import typer

from ckpt.changes.offsets.exchange import offsets_export, offsets_import
from ckpt.changes.offsets.plan import offsets_set
from ckpt.changes.offsets.positions import offsets_show
from ckpt.errors import CkptError, UsageError
from ckpt.storage.argument_files import read_text

from . import change_options, options
from .render.offsets_change import OffsetsExportReport, OffsetsReport
from .render.positions import PositionsReport
from .report import Output, emit

offsets = typer.Typer(
    no_args_is_help=True, help="Show where the sources stand, and let the next batch begin elsewhere."
)


BatchOption = Annotated[
    int | None,
    typer.Option("--batch", min=0, metavar="N", help="Refuse if N, which the plan names, is not the latest batch."),
]


@offsets.command()
def show(
    checkpoint: options.CheckpointArg,
    batch: Annotated[
        int | None, typer.Option("--batch", min=0, metavar="N", help="Show batch N. Default: the newest one.")
    ] = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say what a batch of CHECKPOINT reads of each source, and which reader options begin at its end.

    Only reads; starts no JVM. Exit status: 0 shown, 2 bad usage, 3 there is no such batch, or it cannot be read.
    """
    positions = offsets_show(checkpoint, options.pairs("--storage-option", storage_option), batch=batch)
    emit(PositionsReport(positions), output)


@offsets.command(name="set")
@options.grouped
def set_command(
    checkpoint: options.CheckpointArg,
    source: Annotated[
        int | None, typer.Option("--source", min=0, metavar="I", help="The source; needed where there are several.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="JSON", help="Its new offset, as `offsets show` prints it; @FILE reads it."),
    ] = None,
    shift: Annotated[
        list[str] | None,
        typer.Option("--shift", metavar="TOPIC/PARTITION=±N", help="Move a Kafka partition; may be repeated."),
    ] = None,
    batch: BatchOption = None,
    spark: options.SparkOption = None,
    sink: options.SinkOption = None,
    *,
    accepted: change_options.AcceptOptions,
    change: change_options.ChangeOptions,
) -> None:
    """Let the next new batch of the query of CHECKPOINT begin elsewhere: ahead, so that rows are skipped, or back.

    Prints a plan; changes nothing without --apply. Exit status: 0 nothing to do, or done; 1 there is something to do;
    2 bad usage; 3 could not do it.
    """
    of_plan = {"--source": source, "--to": to, "--shift": shift, "--batch": batch, "--sink": sink}
    plan, receipt = offsets_set(
        checkpoint,
        change.storage_options,
        source=source,
        to=None if to is None else _read(to),
        shift=shift or (),
        batch=batch,
        versions=spark or (),
        sink=sink,
        **change.how(of_plan, accepted),
    )
    typed = [*(["--source", str(source)] if source is not None else []), *(["--to", to] if to is not None else [])]
    typed += [word for partition in shift or () for word in ("--shift", partition)]
    emit(OffsetsReport(plan, receipt, tuple(typed), backup=change.backup), change.output)


@offsets.command(name="export")
def export_command(
    checkpoint: options.CheckpointArg,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.JSON,
    quiet: options.QuietOption = False,
) -> None:
    """Print where the query of CHECKPOINT stands as one JSON document, which `ckpt offsets import` takes.

    Only reads; starts no JVM. Exit status: 0 printed, 2 bad usage, 3 no batch is committed, or it cannot be read.
    """
    positions = offsets_export(checkpoint, options.pairs("--storage-option", storage_option))
    if positions.refused:
        raise CkptError(f"{checkpoint}: nothing to export: {positions.refused}")
    for warning in positions.warnings:
        typer.echo(f"ckpt: {warning}", err=True)
    emit(OffsetsExportReport(positions), output)


@offsets.command(name="import")
@options.grouped
def import_command(
    checkpoint: options.CheckpointArg,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A document of `offsets export`; needed without --undo.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="OLD=NEW", help="A topic has another name now; may be repeated."),
    ] = None,
    batch: BatchOption = None,
    spark: options.SparkOption = None,
    *,
    accepted: change_options.AcceptOptions,
    change: change_options.ChangeOptions,
) -> None:
    """Let the next new batch of the query of CHECKPOINT begin where FILE says, such as on a topic of another cluster.

    Prints a plan; changes nothing without --apply. Exit status: 0 nothing to do, or done; 1 there is something to do;
    2 bad usage; 3 could not do it.
    """
    of_plan = {"FILE": file, "--topic": topic, "--batch": batch}
    plan, receipt = offsets_import(
        checkpoint,
        None if file is None else _read(f"@{file}"),
        change.storage_options,
        topics=options.pairs("--topic", topic, once=True),
        batch=batch,
        versions=spark or (),
        **change.how(of_plan, accepted),
    )
    named = [f"./{file}" if file.startswith("-") else file] if file else []
    typed = [*named, *(word for renamed in topic or () for word in ("--topic", renamed))]
    emit(OffsetsReport(plan, receipt, tuple(typed), backup=change.backup), change.output)


def _read(text: str) -> str:
    """Text as typed, or the content of the file that `@FILE` names. Raises UsageError."""
    if not text.startswith("@"):
        return text
    try:
        return read_text(text[1:])
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"{text[1:]} cannot be read: {reason}") from error
