"""ckpt migrate: a group of commands, one for each way of keeping state that a query can go over to."""

import sys
from typing import Annotated

import typer

from ckpt.migrate import Outcome, To, switch_changelog

from . import options
from .render.changelog import changelog_document, changelog_page

migrate = typer.Typer(no_args_is_help=True, help="Go over to another way of keeping state, without losing any.")

_STATUS = {
    Outcome.ALREADY: 0,
    Outcome.NOTHING: 0,
    Outcome.SWITCHED: 0,
    Outcome.READY: 1,
    Outcome.PARTLY: 1,
    Outcome.NOT_YET: 1,
    Outcome.REFUSED: 3,
}


@migrate.command()
def changelog(
    checkpoint: options.CheckpointArg,
    to: Annotated[To, typer.Option("--to", help="What changelog checkpointing is to be.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Batches have run with the new setting: say whether it took.")
    ] = False,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = options.Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say whether changelog checkpointing of CHECKPOINT can be switched, with which setting, and whether it was.

    Only reads, and starts no JVM: the switch is a setting of the session. Exit status: 0 it is so already, or took;
    1 it can be made, or has not taken everywhere; 2 bad usage; 3 refused or could not look.
    """
    found = switch_changelog(checkpoint, to, options.pairs("--storage-option", storage_option), verify=verify)
    render = changelog_document if output is options.Output.JSON else changelog_page
    typer.echo(render(found))
    sys.stdout.flush()
    raise typer.Exit(code=_STATUS[found.outcome])
