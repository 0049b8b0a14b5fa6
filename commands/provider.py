"""ckpt migrate provider."""

from typing import Annotated

import typer

from ckpt.migrate.provider import ToProvider, migrate_provider

from . import options
from .render.provider import ProviderReport
from .report import emit


def provider(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    to: Annotated[ToProvider, typer.Option(help="The target state store provider.")],
) -> None:
    """Say how state can move to another state store provider.

    Only reads; starts no JVM.

    Examples:
    ckpt migrate provider /cp/orders --to rocksdb
    ckpt migrate provider s3://bucket/orders --to hdfs

    Exit status: 0 it already has that provider, or there is no state; 1 it can; 2 bad usage; 3 it cannot, refused or
    could not read.
    """
    move = migrate_provider(checkpoint, to, common.storage_options)
    emit(ProviderReport(move), common.output)
