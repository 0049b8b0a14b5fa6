"""Commands that change a checkpoint in place: each prints a plan, and carries it out with ``--apply``."""

from typing import Annotated

import typer

import ckpt
from ckpt.changes.fixes.repair import WayName
from ckpt.changes.fixes.repair_async import Strategy
from ckpt.changes.rewind.plan import Replayed

from . import options
from .change_options import AcceptOptions, AcceptReplayOption, ChangeOptions
from .render.changes import PruneReport, RelocationReport, RewindReport
from .render.skip import SkipReport
from .render.ways import RepairReport, WaysReport
from .report import emit


def repair(
    checkpoint: options.CheckpointArg,
    accepted: AcceptOptions,
    change: ChangeOptions,
    choose: Annotated[
        WayName | None, typer.Option(metavar="FIX", help="Take this fix. Default: the recommended one.")
    ] = None,
    query_id: Annotated[
        str | None, typer.Option(metavar="ID", help="The id of the query, if metadata is lost.")
    ] = None,
    leftovers: Annotated[bool, typer.Option("--leftovers", help="Also remove files of interrupted writes.")] = False,
    spark: options.SparkOption = None,
    sink: options.SinkOption = None,
) -> None:
    """List the fixes for a damaged CHECKPOINT, and carry one out.

    Prints a plan; changes nothing without --apply.

    Examples:
    ckpt repair /cp/orders
    ckpt repair /cp/orders --choose run-again --accept-replay --apply

    Exit status: 0 nothing to do, or done; 1 there is something to do, or another problem; 2 bad usage; 3 could not do
    it.
    """
    plan, receipt = ckpt.repair(
        checkpoint,
        change.storage_options,
        query_id=query_id,
        choose=choose,
        remove_leftovers=leftovers,
        versions=spark or (),
        sink=sink,
        **change.how({"--choose": choose, "--query-id": query_id, "--sink": sink}, accepted),
    )
    emit(WaysReport(plan, receipt, query_id, leftovers, backup=change.backup), change.output)


def repair_async(
    checkpoint: options.CheckpointArg,
    strategy: Annotated[Strategy, typer.Option(help="How gaps are closed.")] = Strategy.AUTO,
    spark: options.SparkOption = None,
    accept_replay: AcceptReplayOption = False,
    sink: options.SinkOption = None,
    *,
    change: ChangeOptions,
) -> None:
    """Repair gaps of async tracking ("batch 308 doesn't exist").

    Prints a plan; changes nothing without --apply.

    Examples:
    ckpt repair-async /cp/orders
    ckpt repair-async /cp/orders --strategy rewind --accept-replay --apply

    Exit status: 0 nothing to do, or done; 1 there is something to do, or another problem; 2 bad usage; 3 could not do
    it.
    """
    plan, receipt = ckpt.repair_async(
        checkpoint,
        change.storage_options,
        strategy=strategy,
        versions=spark or (),
        sink=sink,
        **change.how({"--sink": sink}, accepted=AcceptOptions(accept_replay=accept_replay)),
    )
    emit(RepairReport(plan, receipt, backup=change.backup), change.output)


def rewind(
    checkpoint: options.CheckpointArg,
    accepted: AcceptOptions,
    change: ChangeOptions,
    to_batch: Annotated[int | None, typer.Option(min=0, metavar="N", help="The last batch to keep.")] = None,
    replay: Annotated[Replayed, typer.Option(help="Batch N+1: its old range, or a new one.")] = Replayed.SAME,
    sink: options.SinkOption = None,
) -> None:
    """Take a query back to batch N, with its state.

    For wrong output, or a lost or damaged state file. Prints a plan; changes nothing without --apply.

    Examples:
    ckpt rewind /cp/orders --to-batch 307
    ckpt rewind /cp/orders --to-batch 307 --sink s3://bucket/tables/orders

    Exit status: 0 nothing to do, or done; 1 there is something to do, or another problem; 2 bad usage; 3 could not do
    it.
    """
    plan, receipt = ckpt.rewind(
        checkpoint,
        change.storage_options,
        to_batch=to_batch,
        replay=replay,
        sink=sink,
        **change.how({"--to-batch": to_batch, "--sink": sink}, accepted),
    )
    emit(RewindReport(plan, receipt, backup=change.backup), change.output)


def skip(checkpoint: options.CheckpointArg, change: ChangeOptions) -> None:
    """Count a batch that always fails as done, without its rows.

    For a poison row in the planned batch. Prints a plan; changes nothing without --apply.

    Examples:
    ckpt skip /cp/orders
    ckpt skip /cp/orders --apply

    Exit status: 0 nothing to do, or done; 1 there is something to do, or another problem; 2 bad usage; 3 could not do
    it.
    """
    plan, receipt = ckpt.skip(checkpoint, change.storage_options, **change.how())
    emit(SkipReport(plan, receipt, backup=change.backup), change.output)


def relocate(
    checkpoint: options.CheckpointArg,
    change: ChangeOptions,
    to: Annotated[str | None, typer.Option(metavar="URI", help="The URI that Spark will use. Default: as now.")] = None,
) -> None:
    """Make a moved or copied CHECKPOINT find its state schemas again.

    Copies nothing. Prints a plan; changes nothing without --apply.

    Examples:
    ckpt relocate /data/restored/orders
    ckpt relocate /data/restored/orders --to s3a://bucket/orders --apply

    Exit status: 0 nothing to do, or done; 1 there is something to do, or another problem; 2 bad usage; 3 could not do
    it.
    """
    plan, receipt = ckpt.relocate(checkpoint, change.storage_options, to=to, **change.how({"--to": to}))
    emit(RelocationReport(plan, receipt, to, backup=change.backup), change.output)


def prune(
    checkpoint: options.CheckpointArg,
    change: ChangeOptions,
    keep_batches: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Keep the state of the newest N batches.")
    ] = None,
) -> None:
    """Remove files that no restart of CHECKPOINT needs.

    These are old state, files that killed tasks left, and temporary files; never state of a batch that the logs hold.
    Prints a plan; changes nothing without --apply.

    Examples:
    ckpt prune /cp/orders
    ckpt prune /cp/orders --keep-batches 100 --apply

    Exit status: 0 nothing to do, or done; 1 there is something to do, or another problem; 2 bad usage; 3 could not do
    it.
    """
    plan, receipt = ckpt.prune(
        checkpoint, change.storage_options, keep_batches=keep_batches, **change.how({"--keep-batches": keep_batches})
    )
    emit(PruneReport(plan, receipt, keep_batches, backup=change.backup), change.output)
