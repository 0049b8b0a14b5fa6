"""ckpt rewrite."""

from dataclasses import asdict
from typing import Annotated

import typer

import ckpt

from . import options
from .form_options import EngineOption, FormOptions, writing
from .render.rewriting import RewriteReport
from .report import Output, emit
from .run_options import Workers


@options.grouped
def rewrite(
    checkpoint: options.CheckpointArg,
    form: FormOptions,
    drop_keys: Annotated[
        str | None,
        typer.Option("--drop-keys", metavar="FILE", help='Leave out these keys: {"user": "x"} a line.'),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="SQL", help="Keep these rows only: key_user <> 'ann'."),
    ] = None,
    engine: EngineOption = Workers.NATIVE,
    jobs: options.JobsOption = None,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Write a checkpoint NEW with the same state in another form.

    Another provider, number of partitions or checkpoint format, or without some keys or rows. CHECKPOINT is only read;
    starts no JVM but with --engine spark.

    Examples:
    ckpt rewrite /cp/orders /cp/orders-8 --partitions 8
    ckpt rewrite /cp/orders /cp/orders-rocks --provider rocksdb --plan

    Exit status: 0 written or planned, 2 bad usage, 3
    could not do it.

    """
    storage_options = options.pairs("--storage-option", storage_option)
    options.check_stays(form.into)
    with writing(engine, master, conf, quiet=quiet) as (by, watcher):
        rewrite = ckpt.rewrite(
            checkpoint,
            storage_options=storage_options,
            drop_keys=drop_keys or (),
            where=where,
            jobs=jobs,
            by=by,
            watcher=watcher,
            **asdict(form),
        )
    emit(RewriteReport(rewrite, checkpoint), output)
