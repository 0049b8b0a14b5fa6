"""ckpt repair-async."""

from typing import Annotated

import typer

import ckpt
from ckpt.changes.fixes.repair_async import Strategy

from . import change_options, options
from .render.ways import RepairReport


def repair_async(
    checkpoint: options.CheckpointArg,
    strategy: Annotated[Strategy, typer.Option(help="How to close the gaps.")] = Strategy.AUTO,
    spark: options.SparkOption = None,
    sink: options.SinkOption = None,
    *,
    accepted: change_options.AcceptOptions,
    change: change_options.ChangeOptions,
) -> None:
    """Repair gaps of async tracking ("batch 308 doesn't exist").

    Prints a plan; changes nothing without --apply.

    Examples:
    ckpt repair-async /cp/orders
    ckpt repair-async /cp/orders --strategy rewind --accept-replay --apply

    Exit status: 0 nothing to do, or done; 1 there is something to do, or another problem; 2 bad usage; 3 could not do
    it.
    """
    change.run(
        ckpt.repair_async,
        RepairReport,
        checkpoint,
        of_plan=("sink",),
        accepted=accepted,
        strategy=strategy,
        spark=spark or (),
        sink=sink,
    )
