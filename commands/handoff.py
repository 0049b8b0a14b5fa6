"""ckpt handoff."""

from typing import Annotated

import typer

import ckpt
from ckpt.errors import CkptError
from ckpt.migrate.book import BOOK
from ckpt.migrate.handoff.snippets import Language

from . import options
from .render.handoff import HandoffReport
from .report import Output, emit


def handoff(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    batch: Annotated[options.BatchOrTime, options.at("Continue after this batch. Default: the newest.")] = None,
    sink: options.SinkOption = None,
    snippet: Annotated[Language | None, typer.Option(help="Print only the code that resumes the sources.")] = None,
) -> None:
    """Show how a new query continues exactly where this one stopped.

    Only reads; starts no JVM.

    Examples:
    ckpt handoff /cp/orders
    ckpt handoff /cp/orders --snippet python

    Exit status: 0 every row is read once, 1 rows are read again or state is lost, 2 bad
    usage, 3 refused or could not read.
    """
    handoff = ckpt.handoff(checkpoint, storage_options=common.storage_options, batch=batch, sink=sink, snippet=snippet)
    if handoff.refused and snippet is not None and common.output is not Output.JSON:  # no page instead of code
        raise CkptError(BOOK.text("handoff_no_code", uri=handoff.inspection.checkpoint.uri, why=handoff.refused))
    emit(HandoffReport(handoff), common.output)
