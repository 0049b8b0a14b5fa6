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
    export: Annotated[
        str, typer.Argument(metavar="EXPORT", help="The folder that `ckpt export-state --all --to` has written.")
    ],
    like: Annotated[
        str,
        typer.Option(
            "--like",
            metavar="CHECKPOINT",
            help="The checkpoint that was exported, or one of a new query without state.",
        ),
    ],
    form: FormOptions,
    engine: EngineOption = Workers.NATIVE,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Write a checkpoint NEW whose state is EXPORT, which may have been edited or made elsewhere.

    EXPORT and CHECKPOINT are only read; starts no JVM but with --engine spark. Exit status: 0 written or planned, 2 bad
    usage, 3 could not do it.
    """
    storage_options = options.pairs("--storage-option", storage_option)
    options.check_stays(form.into)
    with writing(engine, master, conf, quiet=quiet) as (by, watcher):
        rewrite = ckpt.import_state(
            export, like, storage_options=storage_options, by=by, watcher=watcher, **asdict(form)
        )
    emit(ImportReport(rewrite, like, export), output)
