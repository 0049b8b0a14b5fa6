"""ckpt state: a group of commands that look at state without Spark."""

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

import ckpt

from . import options
from .export_state import export_state
from .help import WHICH, CommandGroup
from .import_state import import_state
from .render.rows import CountsReport, DiffReport, RowsReport, SizesReport
from .report import Output, emit
from .run_options import RunOptions
from .verify import verify

state = CommandGroup("Read, count, compare, verify, export and import state.")


BatchOption = Annotated[
    int | None,
    typer.Option("--batch", min=0, metavar="N", help="As of this batch. Default: the newest committed."),
]


@dataclass(frozen=True, slots=True)
class PartOptions:
    """Options that choose a part of the state."""

    operator: options.OperatorOption = None
    store: Annotated[
        str | None, typer.Option("--store", metavar="NAME", help="This store of a join, as Spark keeps it.")
    ] = None
    side: Annotated[options.Side | None, typer.Option("--side", help="One side of a join.")] = None
    variable: Annotated[
        str | None, typer.Option("--variable", metavar="NAME", help="This variable of transformWithState.")
    ] = None
    timers: Annotated[bool, typer.Option("--timers", help="The timers of transformWithState.")] = False


KeyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--key", metavar="FIELD=VALUE", help="Only rows with this in their key; repeatable."
    ),
]


@options.grouped
def show(
    checkpoint: options.CheckpointArg,
    unit: PartOptions,
    batch: BatchOption = None,
    key: KeyOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show N rows at most.")] = 20,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Show rows of state.

    Only reads; starts no JVM.

    Examples:
    ckpt state show /data/checkpoints/orders
    ckpt state show /data/checkpoints/orders --key user=ann --batch 307

    Exit status: 0 shown, 2 bad usage, 3 it cannot be read without Spark, or not at all.
    """
    rows = ckpt.state_show(
        checkpoint,
        options.pairs("--storage-option", storage_option),
        batch=batch,
        key=options.pairs("--key", key),
        limit=limit,
        **asdict(unit),
    )
    emit(RowsReport(rows), output)


@options.grouped
def count(
    checkpoint: options.CheckpointArg,
    unit: PartOptions,
    run: RunOptions,
    batch: BatchOption = None,
    key: KeyOption = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Count rows of state, by operator and store.

    Only reads; starts no JVM but with --engine spark.

    Examples:
    ckpt state count /data/checkpoints/orders
    ckpt state count /data/checkpoints/orders --operator 1 --key user=ann

    Exit status: 0 counted, 2 bad usage, 3 it cannot be read
    without Spark, or not at all.
    """
    with run.executors(quiet=quiet) as by:
        counts = ckpt.state_count(
            checkpoint,
            options.pairs("--storage-option", storage_option),
            batch=batch,
            key=options.pairs("--key", key),
            jobs=run.jobs,
            by=by,
            **asdict(unit),
        )
    emit(CountsReport(counts), output)


@options.grouped
def diff(
    checkpoint: options.CheckpointArg,
    unit: PartOptions,
    run: RunOptions,
    other: Annotated[
        str | None, typer.Argument(metavar="OTHER", help="Another checkpoint. Default: the same.")
    ] = None,
    from_batch: Annotated[
        int | None, typer.Option("--from-batch", min=0, metavar="A", help="The earlier one. Default: the one before B.")
    ] = None,
    to_batch: Annotated[
        int | None,
        typer.Option(
            "--to-batch", min=0, metavar="B", help="The later one. Default: the newest readable."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=0, metavar="N", help="Show N rows of each part at most.")
    ] = 20,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say which keys two batches or two checkpoints have added, removed or changed.

    Without batches: what the newest committed batch has changed. Only reads; starts no JVM but with --engine spark.

    Examples:
    ckpt state diff /data/checkpoints/orders --from-batch 300 --to-batch 307
    ckpt state diff /data/checkpoints/orders /data/checkpoints/orders-copy

    Exit status: 0 nothing differs, 1 something does, 2 bad usage, 3
    it cannot be read.
    """
    with run.executors(quiet=quiet) as by:
        diff = ckpt.state_diff(
            checkpoint,
            other,
            options.pairs("--storage-option", storage_option),
            from_batch=from_batch,
            to_batch=to_batch,
            limit=limit,
            jobs=run.jobs,
            by=by,
            **asdict(unit),
        )
    emit(DiffReport(diff), output)


@options.grouped
def keys(
    checkpoint: options.CheckpointArg,
    unit: PartOptions,
    run: RunOptions,
    skew: Annotated[bool, typer.Option("--skew", help="Show the bytes and rows of each partition.")] = False,
    batch: BatchOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Name N keys at most.")] = 20,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Name the heaviest keys of state, or show how partitions are filled.

    Only reads; starts no JVM but with --engine spark.

    Examples:
    ckpt state keys /data/checkpoints/orders --limit 5
    ckpt state keys /data/checkpoints/orders --skew

    Exit status: 0 measured, 2 bad usage, 3 it cannot be read
    without Spark, or not at all.
    """
    with run.executors(quiet=quiet) as by:
        sizes = ckpt.state_keys(
            checkpoint,
            options.pairs("--storage-option", storage_option),
            batch=batch,
            limit=limit,
            jobs=run.jobs,
            by=by,
            **asdict(unit),
        )
    emit(SizesReport(sizes, skew), output)


state.add(show, count, diff, keys, verify)
state.add(export_state, name="export")
state.add(import_state, name="import")
