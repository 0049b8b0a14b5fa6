"""ckpt import-state."""

from dataclasses import asdict
from typing import Annotated

import typer

import ckpt

from . import options
from .form_options import FormOptions
from .render.rewriting import ImportReport
from .report import emit
from .run_options import EngineOption, RunOptions, Workers


def import_state(
    export: Annotated[str, typer.Argument(metavar="EXPORT", help="A folder of `ckpt export-state --all-units --to`.")],
    like: Annotated[str, typer.Option(metavar="CHECKPOINT", help="The exported one, or one of a new query.")],
    form: FormOptions,
    common: options.CommonOptions,
    engine: EngineOption = Workers.NATIVE,
    jobs: options.JobsOption = None,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
) -> None:
    """Write a checkpoint NEW from EXPORT, which may have been edited.

    EXPORT and CHECKPOINT are only read; starts no JVM but with --engine spark.

    Examples:
    ckpt import-state /data/export /cp/new --like /cp/orders
    ckpt import-state /data/export /cp/new --like /cp/orders --plan

    Exit status: 0 written or planned, 2 bad usage, 3 could not do it.
    """
    storage_options = common.storage_options
    options.check_stays(form.new)
    with RunOptions(engine, None, master, conf).writing(quiet=common.quiet) as (by, watcher):
        rewrite = ckpt.import_state(
            export, like=like, storage_options=storage_options, jobs=jobs, engine=by, watcher=watcher, **asdict(form)
        )
    emit(ImportReport(rewrite, like, export), common.output)
