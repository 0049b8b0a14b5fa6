"""ckpt migrate: a group of commands, one for each way of keeping state that a query can go over to."""

from typing import Annotated

import typer

import ckpt
from ckpt.errors import UsageError
from ckpt.migrate.switches import Changelog, migrate_provider, migrate_real_time
from ckpt.migrate.transform import Api, TransformRefused
from ckpt.model import ToProvider
from ckpt.spark.calls import migrate_transform_with_state
from ckpt.state.export.targets import Format
from ckpt.versions import NEWEST, Spark

from . import options
from .help import CommandGroup
from .render.changelog import ChangelogReport
from .render.moves import ProviderReport, RealTimeReport
from .render.transform import RefusalReport, TransformReport
from .report import Output, emit
from .run_options import session
from .watching import interruptible


def changelog(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    to: Annotated[Changelog, typer.Option(help="Changelog checkpointing on or off.")],
    verify: Annotated[bool, typer.Option("--verify", help="After some batches: check that the switch worked.")] = False,
    files_only: Annotated[
        bool, typer.Option("--files-only", help="With --verify: do not compare state or use Spark.")
    ] = False,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
) -> None:
    """Show how to switch changelog checkpointing on or off.

    Only reads: the switch is a session setting. Starts no JVM except with --verify, which compares state with Spark.

    Examples:
    ckpt migrate changelog /cp/orders --to on
    ckpt migrate changelog /cp/orders --to on --verify

    Exit status: 0 already switched, or it took effect and state was compared; 1 it can be switched, has not taken
    effect everywhere, or state differs or cannot be compared yet; 2 bad usage; 3 refused, could not read, or Spark
    could not compare.
    """
    if not verify and (files_only or master is not None or conf):
        raise UsageError.of("{--files-only}, {--master} and {--conf} need {--verify}: only verification uses Spark")
    storage_options = common.storage_options
    with session(master, conf, quiet=common.quiet) as with_spark:
        switch = ckpt.migrate_changelog(
            checkpoint, to=to, storage_options=storage_options, verify=verify, files_only=files_only, session=with_spark
        )
    emit(ChangelogReport(switch), common.output)


def provider(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    to: Annotated[ToProvider, typer.Option(help="The target state store provider.")],
) -> None:
    """Show how to move state to another state store provider.

    Only reads; starts no JVM.

    Examples:
    ckpt migrate provider /cp/orders --to rocksdb
    ckpt migrate provider s3://bucket/orders --to hdfs

    Exit status: 0 it already has that provider, or there is no state; 1 it can move; 2 bad usage; 3 it cannot move,
    refused or could not read.
    """
    move = migrate_provider(checkpoint, to=to, storage_options=common.storage_options)
    emit(ProviderReport(move), common.output)


def real_time(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    spark: Annotated[
        Spark, typer.Option(parser=options.spark_version, metavar="VERSION", help="The version to run it.")
    ] = NEWEST,
) -> None:
    """Show how the query continues in real-time mode.

    Only reads; starts no JVM. Spark 4.3 refuses a checkpoint written in micro-batches unless its state has format 2.

    Examples:
    ckpt migrate real-time /cp/orders
    ckpt migrate real-time s3://bucket/orders --spark 4.2

    Exit status: 0 it continues without changes; 1 it can be changed; 2 bad usage; 3 real-time mode cannot run it,
    refused or could not read.
    """
    move = migrate_real_time(checkpoint, spark=spark, storage_options=common.storage_options)
    emit(RealTimeReport(move), common.output)


def transform_with_state(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    to: Annotated[str, typer.Option(metavar="DIR", help="A new or empty folder, local or remote.")],
    batch: Annotated[options.BatchOrTime, options.at("Continue after it. Default: the newest.")] = None,
    operator: options.OperatorOption = None,
    kind: Annotated[Format, typer.Option("--format", help="parquet or delta.")] = Format.PARQUET,
    api: Annotated[Api, typer.Option(help="row needs Spark 4.1.")] = Api.PANDAS,
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would be written.")] = False,
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
                to=to,
                storage_options=common.storage_options,
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
    "Move to real-time mode, transformWithState, RocksDB or changelogs.",
    {
        "changelog": changelog,
        "provider": provider,
        "real-time": real_time,
        "transform-with-state": transform_with_state,
    },
)
