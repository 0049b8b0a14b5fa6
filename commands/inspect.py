"""ckpt inspect."""

import typer

import ckpt
from ckpt.advice import Option
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.errors import UsageError, must_choose_reading
from ckpt.restart.findings import Asked
from ckpt.storage.locations import name_everywhere

from . import options
from .render.page import InspectionReport
from .report import Output, complain, emit
from .run_options import RunOptions

_PLOTTED = 1_000  # batches of a page with plots, where nothing else was asked for


def inspect(
    context: typer.Context,
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    run: RunOptions,
    spark: options.ReleaseOption = None,
    progress: options.ProgressOption = Asked.BOTH,
    batches: options.BatchesOption = 10,
    deep: options.DeepOption = False,
    names_only: options.NamesOnlyOption = False,
    sink: options.SinkOption = None,
    sources: options.SourcesOption = False,
    source_option: options.ReaderOption = None,
    verbose: options.VerboseOption = False,
) -> None:
    """Show what is wrong with CHECKPOINT, and what the next start does.

    Only reads; starts no JVM except with --deep --engine spark.

    Examples:
    ckpt inspect /cp/orders
    ckpt inspect s3://bucket/orders --sink s3://bucket/tables/orders

    Exit status: 0 nothing wrong, 1 something found, 2 bad usage, 3 could not do it.
    """
    storage_options = common.storage_options
    parameter_source = context.get_parameter_source("batches")
    if common.output is Output.HTML and parameter_source is not None and parameter_source.name == "DEFAULT":
        batches = _PLOTTED
    if common.output is Output.HTML:
        checkpoint = name_everywhere(checkpoint)  # the page may be read in another folder
    if not deep and (typed := [option for option, word in run.words.items() if word]):
        raise UsageError.of("{option} needs {--deep}", option=Option(typed[0]))
    must_choose_reading(deep=deep, names_only=names_only)
    reader = {}
    if source_option:
        from ckpt.live.kind import source_options  # not at the top: most looks ask no source

        reader = source_options(source_option)
    opened = open_deep(checkpoint, storage_options, batches, run, quiet=common.quiet) if deep else checkpoint
    inspection = ckpt.inspect(
        opened,
        spark=spark or (),
        progress=progress,
        batches=batches,
        names_only=names_only,
        sink=sink,
        sources=sources,
        source_options=reader,
        storage_options=storage_options,
    )
    complain(inspection.unreached)
    emit(InspectionReport(inspection, verbose), common.output)


def open_deep(
    uri: str,
    storage_options: dict[str, str],
    batches: int = 10,
    run: RunOptions | None = None,
    *,
    quiet: bool = False,
) -> Checkpoint:
    """Read a checkpoint with every byte of its state, and show how far that is. Raises as ``read_every_byte`` does."""
    from ckpt.state.verify.verify import read_every_byte

    from .watching import reading

    run = run or RunOptions()
    with run.executors(quiet=quiet) as by, reading(quiet=quiet) as (tell, watcher):
        return read_every_byte(
            uri, storage_options, batches=batches, jobs=run.jobs, engine=by, announce=tell, watcher=watcher
        )
