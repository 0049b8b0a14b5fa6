"""ckpt migrate: a group of commands, one for each way of keeping state that a query can go over to."""

from typing import Annotated

import typer

from ckpt.migrate.transform import Api, TransformRefused
from ckpt.spark.calls import migrate_transform_with_state
from ckpt.state.export.targets import Format

from . import options
from .changelog import changelog
from .help import CommandGroup
from .provider import provider
from .render.transform import RefusalReport, TransformReport
from .report import Output, emit
from .run_options import session
from .watching import interruptible


def transform_with_state(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    to: Annotated[str, typer.Option(metavar="DIR", help="A new or empty folder, local or remote.")],
    batch: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Continue after it. Default: the newest.")
    ] = None,
    operator: options.OperatorOption = None,
    kind: Annotated[Format, typer.Option("--format", help="parquet or delta.")] = Format.PARQUET,
    api: Annotated[Api, typer.Option(help="row needs Spark 4.1.")] = Api.PANDAS,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be written.")] = False,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
) -> None:
    """Write a transformWithState query that continues it.

    DIR gets the state as data, a processor that loads it, and a program that starts it. CHECKPOINT is only read.

    Examples:
    ckpt migrate transform-with-state /cp/orders --to /data/orders-tws --plan
    ckpt migrate transform-with-state /cp/orders --to /data/orders-tws

    Exit status: 0 written, 1 planned, 2 bad usage, 3 could not do it.
    """
    try:
        with interruptible(), session(master, conf, quiet=common.quiet) as with_spark:
            migration = migrate_transform_with_state(
                checkpoint,
                to,
                common.storage_options,
                batch=batch,
                operator=operator,
                format=kind,
                api=api,
                plan=plan,
                session=with_spark,
            )
    except TransformRefused as refused:
        if common.output is Output.JSON:
            emit(RefusalReport(refused, to, kind, api, plans=plan), common.output)
        raise
    emit(TransformReport(migration), common.output)


migrate = CommandGroup(
    "Move a query to another way of keeping state.",
    {"changelog": changelog, "provider": provider, "transform-with-state": transform_with_state},
)
