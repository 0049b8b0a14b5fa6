"""ckpt state: a group of commands that look at state without Spark."""

from dataclasses import asdict
from typing import Annotated

import typer

import ckpt

from . import options
from .help import CommandGroup
from .render.rows import CountsReport, DiffReport, HistoryReport, RowsReport, SizesReport
from .report import emit
from .run_options import RunOptions

KeyOption = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="FIELD=VALUE", help="Rows with this key; FIELD alone is NULL; repeatable."),
]


def show(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    unit: options.PartOptions,
    run: RunOptions,
    batch: options.BatchOption = None,
    key: KeyOption = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Show at most N rows.")] = 20,
) -> None:
    """Show rows of state.

    Only reads; starts no JVM except with --engine spark.

    Examples:
    ckpt state show /cp/orders
    ckpt state show /cp/orders --key user=ann --batch 307

    Exit status: 0 shown, 2 bad usage, 3 it cannot be read without Spark, or not at all.
    """
    with run.reading(common) as how:
        rows = ckpt.state_show(checkpoint, batch=batch, key=options.key_values(key), limit=limit, **how, **asdict(unit))
    emit(RowsReport(rows), common.output)


def count(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    unit: options.PartOptions,
    run: RunOptions,
    batch: options.BatchOption = None,
    key: KeyOption = None,
) -> None:
    """Count rows of state, by operator and store.

    Only reads; starts no JVM except with --engine spark.

    Examples:
    ckpt state count /cp/orders
    ckpt state count /cp/orders --operator 1 --key user=ann

    Exit status: 0 counted, 2 bad usage, 3 it cannot be read without Spark, or not at all.
    """
    with run.reading(common) as how:
        counts = ckpt.state_count(checkpoint, batch=batch, key=options.key_values(key), **how, **asdict(unit))
    emit(CountsReport(counts), common.output)


def diff(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    unit: options.PartOptions,
    run: RunOptions,
    other: Annotated[str | None, typer.Argument(metavar="OTHER", help="Another checkpoint. Default: the same.")] = None,
    from_batch: Annotated[options.BatchOrTime, options.at("The earlier one. Default: the one before B.")] = None,
    to_batch: Annotated[options.BatchOrTime, options.at("The later one. Default: the newest readable.")] = None,
    limit: Annotated[int, typer.Option(min=0, metavar="N", help="Show at most N rows per part.")] = 20,
) -> None:
    """Show which keys differ between two batches or two checkpoints.

    Default: the changes of the newest committed batch. Only reads; starts no JVM except with --engine spark.

    Examples:
    ckpt state diff /cp/orders --from-batch 300 --to-batch 307
    ckpt state diff /cp/orders /cp/orders-copy

    Exit status: 0 nothing differs, 1 something does, 2 bad usage, 3 it cannot be read.
    """
    with run.reading(common) as how:
        diff = ckpt.state_diff(
            checkpoint, other, from_batch=from_batch, to_batch=to_batch, limit=limit, **how, **asdict(unit)
        )
    emit(DiffReport(diff), common.output)


def keys(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    unit: options.PartOptions,
    run: RunOptions,
    batch: options.BatchOption = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Show at most N keys.")] = 20,
) -> None:
    """Show the heaviest keys of the state, and the partition sizes.

    Only reads; starts no JVM except with --engine spark.

    Examples:
    ckpt state keys /cp/orders --limit 5
    ckpt state keys /cp/orders --operator 0 --side left

    Exit status: 0 measured, 2 bad usage, 3 it cannot be read without Spark, or not at all.
    """
    with run.reading(common) as how:
        sizes = ckpt.state_keys(checkpoint, batch=batch, limit=limit, **how, **asdict(unit))
    emit(SizesReport(sizes), common.output)


def history(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    unit: options.PartOptions,
    key: KeyOption = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Show the newest N events.")] = 20,
) -> None:
    """Show which batches created, changed and removed a key.

    Also shows what they read from each source. Only reads; starts no JVM.

    Examples:
    ckpt state history /cp/orders --key user=ann
    ckpt state history /cp/orders --key user=ann --variable cart --limit 100

    Exit status: 0 shown, 2 bad usage, 3 it cannot be read without Spark, or not at all.
    """
    from ckpt.state.native.history import state_history  # not at the top: it needs the extra ``native``

    events = state_history(
        checkpoint, storage_options=common.storage_options, key=options.key_values(key), limit=limit, **asdict(unit)
    )
    emit(HistoryReport(events), common.output)


state = CommandGroup(
    "Show, count, compare or verify state; trace keys.",
    {
        "show": show,
        "count": count,
        "diff": diff,
        "history": history,
        "keys": keys,
        "verify": "verify",
        "export": "export_state",
        "import": "rewrite:import_state",
    },
)
