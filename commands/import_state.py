"""ckpt import-state."""

from dataclasses import asdict
from typing import Annotated

import typer

import ckpt

from . import options
from .form_options import EngineOption, FormOptions, writing
from .render.rewriting import ImportReport
from .report import Output, emit
from .run_options import Workers


@options.grouped
def import_state(
    export: Annotated[str, typer.Argument(metavar="EXPORT", help="A folder of `ckpt export-state --all --to`.")],
    like: Annotated[
        str,
        typer.Option(
            "--like",
            metavar="CHECKPOINT",
            help="The exported one, or one of a new query.",
        ),
    ],
    form: FormOptions,
    engine: EngineOption = Workers.NATIVE,
    jobs: options.JobsOption = None,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Write a checkpoint NEW from EXPORT, which may have been edited.

    EXPORT and CHECKPOINT are only read; starts no JVM but with --engine spark.

    Examples:
    ckpt import-state /data/export /cp/new --like /cp/orders
    ckpt import-state /data/export /cp/new --like /cp/orders --plan

    Exit status: 0 written or planned, 2 bad
    usage, 3 could not do it.

    """
    storage_options = options.pairs("--storage-option", storage_option)
    options.check_stays(form.into)
    with writing(engine, master, conf, quiet=quiet) as (by, watcher):
        rewrite = ckpt.import_state(
            export, like, storage_options=storage_options, jobs=jobs, by=by, watcher=watcher, **asdict(form)
        )
    emit(ImportReport(rewrite, like, export), output)
