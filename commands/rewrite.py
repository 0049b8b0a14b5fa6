"""ckpt rewrite."""

from dataclasses import asdict
from typing import Annotated

import typer

import ckpt

from . import options
from .form_options import FormOptions
from .render.rewriting import RewriteReport
from .report import emit
from .run_options import RunOptions


def rewrite(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    form: FormOptions,
    run: RunOptions,
    drop_keys: Annotated[
        str | None, typer.Option(metavar="FILE", help='Leave out these keys: {"user": "x"} a line.')
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Keep these rows only: key_user <> 'ann'.")] = None,
    salvage: Annotated[bool, typer.Option("--salvage", help="Of damaged state, take what can be read.")] = False,
    accept_loss: Annotated[bool, typer.Option("--accept-loss", help="Accept what a salvage loses.")] = False,
    accept_fewer_versions: Annotated[
        bool, typer.Option("--accept-fewer-versions", help="Accept that fewer Spark versions start it.")
    ] = False,
    schema: options.SchemaOption = None,
) -> None:
    """Write NEW: same state, other shuffle partitions or provider.

    Another provider, number of partitions or checkpoint format, or without some keys or rows. CHECKPOINT is only read;
    starts no JVM but with --engine spark.

    Examples:
    ckpt rewrite /cp/orders /cp/orders-8 --partitions 8
    ckpt rewrite /cp/orders /cp/orders-rocks --provider rocksdb --plan

    Exit status: 0 written or planned, 2 bad usage, 3 could not do it.
    """
    storage_options = common.storage_options
    options.check_stays(form.into)
    with run.writing(quiet=common.quiet) as (by, watcher):
        rewrite = ckpt.rewrite(
            checkpoint,
            storage_options=storage_options,
            drop_keys=drop_keys or (),
            where=where,
            salvage=salvage,
            accept_loss=accept_loss,
            accept_fewer_versions=accept_fewer_versions,
            schema=schema,
            jobs=run.jobs,
            by=by,
            watcher=watcher,
            **asdict(form),
        )
    emit(RewriteReport(rewrite, checkpoint), common.output)
