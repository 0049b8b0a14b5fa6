"""ckpt rewrite."""

from dataclasses import asdict
from typing import Annotated

import typer

import ckpt
from ckpt.advice import call
from ckpt.errors import UsageError

from . import options
from .form_options import FormOptions
from .render.rewriting import RewriteReport
from .report import emit
from .run_options import RunOptions


def rewrite(
    *,
    checkpoint: options.CheckpointArg,
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    common: options.CommonOptions,
    form: FormOptions,
    run: RunOptions,
    drop_keys: options.DropKeysOption = None,
    where: options.WhereOption = None,
    salvage: Annotated[bool, typer.Option("--salvage", help="Of damaged state, take what can be read.")] = False,
    accept_loss: Annotated[bool, typer.Option("--accept-loss", help="Accept what --salvage loses.")] = False,
    accept_fewer_versions: options.FewerVersionsOption = False,
    schema: Annotated[str | None, typer.Option(metavar="FILE", help="Schemas, where state has none.")] = None,
) -> None:
    """Write NEW: same state, other shuffle partitions or provider.

    Another provider, number of partitions or checkpoint format, or without some keys or rows. CHECKPOINT is only read;
    starts no JVM but with --engine spark.

    Examples:
    ckpt rewrite /cp/orders /cp/orders-8 --partitions 8
    ckpt rewrite /cp/orders /cp/orders-rocksdb --provider rocksdb --plan

    Exit status: 0 written or planned, 2 bad usage, 3 could not do it.
    """
    if more or len(where or ()) > 1:
        raise UsageError.of(
            "name one CHECKPOINT and one NEW; {merge} merges several checkpoints, and {split} divides one",
            merge=call("merge"),
            split=call("split"),
        )
    options.check_stays(form.new)
    with run.writing(quiet=common.quiet) as (engine, watcher):
        rewrite = ckpt.rewrite(
            checkpoint,
            storage_options=common.storage_options,
            drop_keys=drop_keys or (),
            where=next(iter(where or ()), None),
            salvage=salvage,
            accept_loss=accept_loss,
            accept_fewer_versions=accept_fewer_versions,
            schema=schema,
            jobs=run.jobs,
            engine=engine,
            watcher=watcher,
            **asdict(form),
        )
    emit(RewriteReport(rewrite, checkpoint), common.output)
