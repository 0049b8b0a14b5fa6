"""ckpt relocate."""

from typing import Annotated

import typer

import ckpt

from . import change_options, options
from .render.relocation import RelocationReport


def relocate(
    checkpoint: options.CheckpointArg,
    change: change_options.ChangeOptions,
    to: Annotated[
        str | None, typer.Option(metavar="URI", help="The URI that Spark will use. Default: unchanged.")
    ] = None,
) -> None:
    """Correct the schema paths in a moved or copied CHECKPOINT.

    Copies nothing; ckpt copy also corrects the paths. Prints a plan; changes nothing without --apply.

    Examples:
    ckpt relocate /data/restored/orders
    ckpt relocate /data/restored/orders --to s3a://bucket/orders --apply
    """
    change.run(ckpt.relocate, RelocationReport, checkpoint, of_plan=("to",), to=to)
