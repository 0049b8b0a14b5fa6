"""ckpt rewind."""

from datetime import datetime
from typing import Annotated

import typer

import ckpt
from ckpt.changes.rewind.plan import Replayed
from ckpt.checkpoint.times import parse_time
from ckpt.errors import UsageError
from ckpt.live.kind import source_options

from . import change_options, options
from .render.rewind import RewindReport


def rewind(
    checkpoint: options.CheckpointArg,
    accepted: change_options.AcceptOptions,
    change: change_options.ChangeOptions,
    to_batch: Annotated[options.BatchOrTime, options.at("The last batch to keep.")] = None,
    to_time: Annotated[
        datetime | None, typer.Option(parser=parse_time, metavar="TIME", help="The batch at this time, such as -2h.")
    ] = None,
    to_sink_version: Annotated[
        str | None, typer.Option(metavar="V", help="The last batch in version V of --sink.")
    ] = None,
    restore_sink: Annotated[bool, typer.Option("--restore-sink", help="Also restore that table to V.")] = False,
    replay: Annotated[Replayed, typer.Option(help="Run batch N+1 with old or new offsets.")] = Replayed.SAME,
    sink: options.SinkOption = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="FOLDER", help="Use points of ckpt copy --keep for an older TIME.")
    ] = None,
    sources: options.SourcesOption = False,
    source_option: options.ReaderOption = None,
) -> None:
    """Take a query back to batch N, with its state.

    For wrong output, or a lost or damaged state file. Prints a plan; changes nothing without --apply.

    Examples:
    ckpt rewind /cp/orders --to-batch 307 --sink s3://bucket/tables/orders
    ckpt rewind /cp/orders --to-time 2026-05-31T07:30Z --from /kept/orders
    """
    if to_time is not None and to_batch is not None:
        raise UsageError.of("name {--to-batch} or {--to-time}, not both")
    change.run(
        ckpt.rewind,
        RewindReport,
        checkpoint,
        of_plan=("to_batch", "to_sink_version", "sink", "from_"),
        accepted=accepted,
        to_batch=to_batch if to_time is None else to_time,
        to_sink_version=to_sink_version,
        restore_sink=restore_sink,
        replay=replay,
        sink=sink,
        from_=from_,
        sources=sources,
        source_options=source_options(source_option or ()),
    )
