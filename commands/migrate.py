"""ckpt migrate: a group of commands, one for each way of keeping state that a query can go over to."""

from typing import Annotated

import typer

from ckpt.errors import CkptError
from ckpt.export.place import must_be_free
from ckpt.export.targets import Format, Mode, Target, target
from ckpt.migrate.transform import Api, TransformPlan, plan_transform

from . import options
from .changelog import changelog
from .needs import spark_version
from .progress import bar
from .provider import provider
from .render.transform import TransformReport
from .report import Output, emit

migrate = typer.Typer(no_args_is_help=True, help="Go over to another way of keeping state, without losing any.")
migrate.command()(changelog)
migrate.command()(provider)


@migrate.command(name="transform-with-state")
def transform_with_state(
    checkpoint: options.CheckpointArg,
    to: Annotated[str, typer.Option("--to", metavar="DIR", help="A folder that is new or empty, local or remote.")],
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            min=0,
            metavar="N",
            help="Go on behind it. Default: the newest with its state.",
        ),
    ] = None,
    operator: Annotated[int | None, typer.Option("--operator", min=0, metavar="ID", help="Of this operator.")] = None,
    kind: Annotated[Format, typer.Option("--format", help="Form of the state: parquet or delta.")] = Format.PARQUET,
    api: Annotated[
        Api, typer.Option("--api", help="transformWithStateInPandas, or the one of rows, since Spark 4.1.")
    ] = Api.PANDAS,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be written; starts no JVM.")] = False,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Write a transformWithState query that goes on where the stateful query of CHECKPOINT stopped.

    DIR gets the state as data, a processor that loads it, and a program that starts it. The checkpoint is only read.
    Exit status: 0 written, 1 planned, 2 bad usage, 3 could not do it.
    """
    place = target(to, None, kind, Mode.ERROR, checkpoint)
    must_be_free(place)
    found = plan_transform(
        checkpoint,
        options.pairs("--storage-option", storage_option),
        batch=batch,
        operator=operator,
        kind=kind,
        api=api,
        spark=spark_version(needed=not plan),
    )
    settings = options.pairs("--conf", conf)
    keys = None if plan else _write(found, place, master, settings, quiet=quiet)
    emit(TransformReport(found, place, to, keys), output)


def _write(found: TransformPlan, place: Target, master: str | None, settings: dict[str, str], *, quiet: bool) -> int:
    """Write it, and say how many keys there are; imports pyspark."""
    from ckpt.spark.session import session
    from ckpt.spark.transform import write_transform

    try:
        with session(master, settings, delta=found.format is Format.DELTA) as spark, bar(quiet=quiet) as watcher:
            return write_transform(spark, found, place.name, watcher)
    except KeyboardInterrupt:
        raise CkptError("interrupted; nothing was written") from None
