"""ckpt state: a group of commands that look at state without Spark."""

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

import ckpt
from ckpt.errors import UsageError

from . import options
from .render.rows import CountsReport, DiffReport, RowsReport, SizesReport
from .report import Output, emit
from .run_options import RunOptions
from .verify import verify

state = typer.Typer(no_args_is_help=True, help="State without Spark: rows, counts, changes, whole or damaged.")


BatchOption = Annotated[
    int | None,
    typer.Option("--batch", min=0, metavar="N", help="The state as of this batch. Default: the newest committed."),
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
        "--key", metavar="FIELD=VALUE", help="Only rows whose key has this value in this column; may be repeated."
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
    """Show rows of the state in CHECKPOINT, without Spark.

    Only reads; starts no JVM. Exit status: 0 shown, 2 bad usage, 3 it cannot be read without Spark, or not at all.
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
    """Count the rows of the state in CHECKPOINT, without Spark: of every part that fits the options.

    Only reads; starts no JVM but with --engine spark. Exit status: 0 counted, 2 bad usage, 3 it cannot be read
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
        str | None, typer.Argument(metavar="OTHER", help="Another checkpoint; by default the same one.")
    ] = None,
    from_batch: Annotated[
        int | None, typer.Option("--from-batch", min=0, metavar="A", help="The earlier batch, of CHECKPOINT.")
    ] = None,
    to_batch: Annotated[
        int | None,
        typer.Option(
            "--to-batch", min=0, metavar="B", help="The later batch, of OTHER. Default: the newest committed."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=0, metavar="N", help="Show N rows of each part at most; all are counted.")
    ] = 20,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say which keys of the state were added, removed or changed between two batches, or two checkpoints.

    Only reads; starts no JVM but with --engine spark. Exit status: 0 nothing differs, 1 something does, 2 bad usage, 3
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
    largest: Annotated[bool, typer.Option("--largest", help="Show the heaviest keys. This is the default.")] = False,
    skew: Annotated[bool, typer.Option("--skew", help="Show what each partition holds.")] = False,
    batch: BatchOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Name N keys at most.")] = 20,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say which keys of the state in CHECKPOINT are the heaviest, or how it is spread over partitions, without Spark.

    Only reads; starts no JVM but with --engine spark. Exit status: 0 measured, 2 bad usage, 3 it cannot be read
    without Spark, or not at all.
    """
    if largest and skew:
        raise UsageError("--largest and --skew: one of them")
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


state.command()(show)
state.command()(count)
state.command()(diff)
state.command()(keys)
state.command()(verify)
