"""ckpt migrate provider."""

from typing import Annotated

import typer

from ckpt.migrate.provider import ToProvider, migrate_provider

from . import options
from .render.provider import ProviderReport
from .report import Output, emit


def provider(
    checkpoint: options.CheckpointArg,
    to: Annotated[ToProvider, typer.Option("--to", help="The target state store provider.")],
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say how state can move to another state store provider.

    Only reads; starts no JVM.

    Examples:
    ckpt migrate provider /cp/orders --to rocksdb
    ckpt migrate provider s3://bucket/orders --to hdfs

    Exit status: 0 it already has that provider, or there is no state; 1 it can; 2 bad usage;
    3 it cannot, refused or could not read.

    """
    move = migrate_provider(checkpoint, to, options.pairs("--storage-option", storage_option))
    emit(ProviderReport(move), output)
