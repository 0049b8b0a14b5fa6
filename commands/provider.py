"""ckpt migrate provider."""

import sys
from typing import Annotated

import typer

from ckpt.migrate import MoveOutcome, ToProvider, move_provider

from . import options
from .render.provider import provider_document, provider_page

_STATUS = {
    MoveOutcome.ALREADY: 0,
    MoveOutcome.NOTHING: 0,
    MoveOutcome.POSSIBLE: 1,
    MoveOutcome.NO_WAY: 3,
    MoveOutcome.REFUSED: 3,
}


def provider(
    checkpoint: options.CheckpointArg,
    to: Annotated[ToProvider, typer.Option("--to", help="The state store provider that is wanted.")],
    storage_option: options.StorageOption = None,
    output: options.OutputOption = options.Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say whether the state of CHECKPOINT can be taken to another state store provider, and how.

    Only reads, and starts no JVM. Exit status: 0 it is so already, or there is no state; 1 there is a way; 2 bad
    usage; 3 there is none, refused or could not look.
    """
    found = move_provider(checkpoint, to, options.pairs("--storage-option", storage_option))
    render = provider_document if output is options.Output.JSON else provider_page
    typer.echo(render(found))
    sys.stdout.flush()
    raise typer.Exit(code=_STATUS[found.outcome])
