"""ckpt handoff."""

from typing import Annotated

import typer

import ckpt
from ckpt.migrate.handoff.snippets import Language

from . import options
from .render.handoff import HandoffReport
from .report import Output, emit


def handoff(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    batch: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Continue after batch N. Default: the newest.")
    ] = None,
    sink: options.SinkOption = None,
    snippet_option: Annotated[
        Language | None, typer.Option("--snippet", help="Print only code that starts the sources there.")
    ] = None,
) -> None:
    """Say how a new query continues exactly where this one stopped.

    Only reads; starts no JVM.

    Examples:
    ckpt handoff /cp/orders
    ckpt handoff /cp/orders --snippet python

    Exit status: 0 no row is lost or read again, 1 some rows are read again, 2 bad usage, 3 refused or could not read.
    """
    handoff = ckpt.handoff(checkpoint, storage_options=common.storage_options, batch=batch, sink=sink)
    refused_in_json = common.output is Output.JSON and handoff.refused  # `snippet` would raise, and print no document
    code = handoff.snippet(snippet_option) if snippet_option and not refused_in_json else None
    emit(HandoffReport(handoff, code), common.output)
