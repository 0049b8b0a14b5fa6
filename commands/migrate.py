"""ckpt migrate: a group of commands, one for each way of keeping state that a query can go over to."""

from typing import Annotated

import typer

from ckpt.migrate.transform import Api, TransformRefused
from ckpt.spark.calls import migrate_transform_with_state
from ckpt.state.export.targets import Format

from . import options
from .changelog import changelog
from .progress import session
from .provider import provider
from .render.transform import RefusalReport, TransformReport
from .report import Output, emit
from .watching import interruptible

migrate = typer.Typer(no_args_is_help=True, help="Move to another way of keeping state, without losing any.")
migrate.command()(changelog)
migrate.command()(provider)


@migrate.command(name="transform-with-state")
def transform_with_state(
    checkpoint: options.CheckpointArg,
    to: Annotated[str, typer.Option("--to", metavar="DIR", help="Write to this new or empty folder, local or remote.")],
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            min=0,
            metavar="N",
            help="Continue after this batch. Default: the newest with its state.",
        ),
    ] = None,
    operator: options.OperatorOption = None,
    kind: Annotated[Format, typer.Option("--format", help="Format of the state: parquet or delta.")] = Format.PARQUET,
    api: Annotated[
        Api, typer.Option("--api", help="pandas: transformWithStateInPandas; row: transformWithState, since Spark 4.1.")
    ] = Api.PANDAS,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be written; start no JVM.")] = False,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Write a transformWithState query that continues where the stateful query of CHECKPOINT stopped.

    DIR gets the state as data, a processor that loads it, and a program that starts it. The checkpoint is only read.
    Exit status: 0 written, 1 planned, 2 bad usage, 3 could not do it.
    """
    try:
        with interruptible(), session(master, conf, quiet=quiet) as with_spark:
            migration = migrate_transform_with_state(
                checkpoint,
                to,
                options.pairs("--storage-option", storage_option),
                batch=batch,
                operator=operator,
                format=kind,
                api=api,
                plan=plan,
                session=with_spark,
            )
    except TransformRefused as refused:
        if output is Output.JSON:
            emit(RefusalReport(refused, to, kind, api, plans=plan), output)
        raise
    emit(TransformReport(migration), output)
