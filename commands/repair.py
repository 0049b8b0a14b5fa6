"""ckpt repair, and ckpt repair-async."""

from typing import Annotated

import typer

import ckpt
from ckpt.changes.fixes.repair import FixName
from ckpt.changes.fixes.repair_async import Strategy

from . import change_options, options
from .render.ways import RepairReport, WaysReport


def repair(
    checkpoint: options.CheckpointArg,
    accepted: change_options.AcceptOptions,
    change: change_options.ChangeOptions,
    choose: Annotated[
        FixName | None, typer.Option(metavar="FIX", help="Use this fix. Default: the recommended one.")
    ] = None,
    query_id: Annotated[str | None, typer.Option(metavar="ID", help="The query id, if metadata is lost.")] = None,
    leftovers: Annotated[bool, typer.Option("--leftovers", help="Also remove harmless leftover files.")] = False,
    spark: options.SparkOption = None,
    sink: options.SinkOption = None,
) -> None:
    """List the fixes for a damaged CHECKPOINT, and carry one out.

    Prints a plan; changes nothing without --apply.

    Examples:
    ckpt repair /cp/orders
    ckpt repair /cp/orders --choose run-again --accept-replay --apply
    """
    change.run(
        ckpt.repair,
        WaysReport,
        checkpoint,
        of_plan=("choose", "query_id", "sink"),
        accepted=accepted,
        query_id=query_id,
        choose=choose,
        leftovers=leftovers,
        spark=spark or (),
        sink=sink,
    )


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
