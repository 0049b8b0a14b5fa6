"""ckpt migrate provider."""

from typing import Annotated

import typer

from ckpt.migrate import ToProvider, move_provider

from . import options
from .render.provider import ProviderReport
from .report import Output, emit


def provider(
    checkpoint: options.CheckpointArg,
    to: Annotated[ToProvider, typer.Option("--to", help="The state store provider that is wanted.")],
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say whether the state of CHECKPOINT can be taken to another state store provider, and how.

    Only reads, and starts no JVM. Exit status: 0 it is so already, or there is no state; 1 there is a way; 2 bad
    usage; 3 there is none, refused or could not look.
    """
    found = move_provider(checkpoint, to, options.pairs("--storage-option", storage_option))
    emit(ProviderReport(found), output)
