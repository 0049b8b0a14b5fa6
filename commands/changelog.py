"""ckpt migrate changelog."""

from typing import Annotated

import typer

import ckpt
from ckpt.errors import UsageError
from ckpt.migrate.changelog import Changelog

from . import options
from .render.changelog import ChangelogReport
from .report import emit
from .run_options import session


def changelog(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    to: Annotated[Changelog, typer.Option(help="Changelog checkpointing on or off.")],
    verify: Annotated[bool, typer.Option("--verify", help="After batches have run: did it take effect?")] = False,
    files_only: Annotated[
        bool, typer.Option("--files-only", help="With --verify: compare no state, use no Spark.")
    ] = False,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
) -> None:
    """Say how to switch changelog checkpointing on or off.

    Only reads: the switch is a session setting. Starts no JVM, except with --verify, which compares state with Spark.

    Examples:
    ckpt migrate changelog /cp/orders --to on
    ckpt migrate changelog /cp/orders --to on --verify

    Exit status: 0 already switched, or it took effect and state was compared; 1 it can be switched, has not taken
    effect everywhere, or state differs or cannot be compared yet; 2 bad usage; 3 refused, could not read, or Spark
    could not compare.
    """
    if not verify and (files_only or master is not None or conf):
        raise UsageError("--files-only, --master and --conf need --verify; nothing else uses Spark")
    storage_options = common.storage_options
    with session(master, conf, quiet=common.quiet) as with_spark:
        switch = ckpt.migrate_changelog(
            checkpoint, to, storage_options, verify=verify, files_only=files_only, session=with_spark
        )
    emit(ChangelogReport(switch), common.output)
