"""ckpt split."""

from dataclasses import asdict
from typing import Annotated

import typer

import ckpt

from . import options
from .form_options import StateForm
from .render.rewriting import RewriteReport
from .report import emit
from .run_options import RunOptions


def split(
    *,
    checkpoint: options.CheckpointArg,
    others: Annotated[list[str], typer.Argument(metavar="NEW...", help="The other new or empty folders.")],
    common: options.CommonOptions,
    form: StateForm,
    run: RunOptions,
    where: Annotated[list[str], typer.Option(metavar="SQL", help="Rows of one NEW: key_at = 'eu'; one for each.")],
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Accept losing rows that match no --where.")
    ] = False,
    accept_fewer_versions: options.FewerVersionsOption = False,
) -> None:
    """Divide CHECKPOINT into several NEW, one for each --where.

    For queries that together replace the old one. CHECKPOINT is only read; do not start its query again. Starts no JVM
    but with --engine spark.

    Examples:
    ckpt split /cp/in /cp/a /cp/b --where "key_at = 'eu'" --where "key_at = 'us'"
    ckpt split /cp/in /cp/a /cp/b --where "key_live" --where "NOT key_live" --plan

    Exit status: 0 written or planned, 2 bad usage, 3 could not do it.
    """
    new = [*others, form.new]
    for uri in new:
        options.check_stays(uri)
    as_state = {name: value for name, value in asdict(form).items() if name != "new"}
    with run.writing(quiet=common.quiet) as (engine, watcher):
        parts = ckpt.split(
            checkpoint,
            new,
            where=where,
            storage_options=common.storage_options,
            accept_loss=accept_loss,
            accept_fewer_versions=accept_fewer_versions,
            jobs=run.jobs,
            engine=engine,
            watcher=watcher,
            **as_state,
        )
    emit(RewriteReport(parts, checkpoint), common.output)
