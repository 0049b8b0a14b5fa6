"""ckpt inspect."""

from typing import Annotated

import typer

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import open_checkpoint
from ckpt.errors import UsageError
from ckpt.inspection import inspection
from ckpt.live.options import source_options
from ckpt.live.records import LiveSource
from ckpt.live.sink.records import SinkLog
from ckpt.restart.findings import Asked

from . import options
from .render.page import InspectionReport
from .report import Output, complain, emit

_PLOTTED = 1_000  # batches of a page with plots, where nothing else was asked for


def inspect(
    context: typer.Context,
    checkpoint: options.CheckpointArg,
    spark: options.SparkOption = None,
    progress: options.ProgressOption = Asked.BOTH,
    batches: options.BatchesOption = 10,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every byte of the state, as `ckpt state verify` does.")
    ] = False,
    jobs: options.JobsOption = None,
    sink: options.SinkOption = None,
    sources: options.SourcesOption = False,
    source_option: options.ReaderOption = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say what is in CHECKPOINT, what is wrong with it, and what the next start will do.

    Only reads; starts no JVM. Exit status: 0 nothing wrong, 1 something found, 2 bad usage, 3 could not do it.
    """
    given = options.pairs("--storage-option", storage_option)
    asked = context.get_parameter_source("batches")
    if output is Output.HTML and asked is not None and asked.name == "DEFAULT":
        batches = _PLOTTED
    if jobs is not None and not deep:
        raise UsageError("--jobs is for --deep")
    if source_option and not sources:
        raise UsageError("--source-option is for --sources")
    reader = source_options(source_option or ())
    opened = (
        _deep(checkpoint, given, batches, jobs, quiet=quiet)
        if deep
        else open_checkpoint(checkpoint, given, batches=batches)
    )
    has = _sink(sink, checkpoint, given) if sink is not None else None
    live = _answers(opened, reader, given) if sources else ()
    found = inspection.inspect(opened, spark or (), progress, batches, has, live)
    complain(found.unreached)
    emit(InspectionReport(found), output)


def _sink(sink: str, uri: str, given: dict[str, str]) -> SinkLog | None:
    from ckpt.live.sink.reader import sink_of  # a plain look imports nothing of it

    return sink_of(sink, uri, given, partial=True)


def _answers(opened: Checkpoint, reader: dict[int, dict[str, str]], given: dict[str, str]) -> tuple[LiveSource, ...]:
    from ckpt.live.asking import ask_sources

    return ask_sources(opened, reader, given, partial=True)


def _deep(uri: str, given: dict[str, str], batches: int, jobs: int | None, *, quiet: bool) -> Checkpoint:
    from ckpt.state.verify.verify import deep_checkpoint

    from .watching import interruptible, reading

    with interruptible(), reading(quiet=quiet) as (told, watcher):
        return deep_checkpoint(uri, given, batches=batches, jobs=jobs, told=told, watcher=watcher)
