"""ckpt prune."""

from typing import Annotated

import typer

import ckpt

from . import change_options, options
from .render.pruning import PruneReport


def prune(
    checkpoint: options.CheckpointArg,
    change: change_options.ChangeOptions,
    keep_batches: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Keep the state of the newest N batches.")
    ] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="Remove flow versions that no run uses.")] = False,
) -> None:
    """Remove files that no restart of CHECKPOINT needs.

    These are old state, files left by killed tasks, and temporary files; never state of a batch that is in the logs.
    With --superseded, CHECKPOINT is the folder of a declarative pipeline's flow.
    Prints a plan; changes nothing without --apply.

    Examples:
    ckpt prune /cp/orders
    ckpt prune /cp/orders --keep-batches 100 --apply
    """
    change.run(
        ckpt.prune,
        PruneReport,
        checkpoint,
        of_plan=("keep_batches", "superseded"),
        keep_batches=keep_batches,
        superseded=superseded,
    )
