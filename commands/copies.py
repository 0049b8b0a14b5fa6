"""Commands that write a new checkpoint from an old one."""

from dataclasses import asdict
from typing import Annotated

import typer

import ckpt

from . import options
from .render.copies import CopyReport, ImportReport, RewriteReport
from .report import emit
from .run_options import EngineOption, FormOptions, RunOptions, Workers
from .watching import bar, interruptible


def copy(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    new: Annotated[str, typer.Argument(metavar="NEW", help="A new or empty folder, local or remote.")],
    batch: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Copy as of batch N. Default: the newest.")
    ] = None,
    new_id: Annotated[bool, typer.Option("--new-id", help="Give the copy its own query id.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be copied.")] = False,
) -> None:
    """Copy CHECKPOINT to NEW as of a committed batch.

    The query may run meanwhile; CHECKPOINT is only read, and a query can be started on NEW.

    Examples:
    ckpt copy /cp/orders /cp/orders-copy
    ckpt copy s3://bucket/orders /tmp/orders --batch 307 --new-id

    Exit status: 0 copied or planned, 2 bad usage, 3 could not do it.
    """
    storage_options = common.storage_options
    options.check_stays(new)
    with interruptible(), bar(quiet=common.quiet, of="files") as watcher:
        done = ckpt.copy(checkpoint, new, storage_options, batch=batch, new_id=new_id, plan=plan, watcher=watcher)
    emit(CopyReport(done, checkpoint), common.output)


def rewrite(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    form: FormOptions,
    run: RunOptions,
    drop_keys: Annotated[
        str | None, typer.Option(metavar="FILE", help='Leave out these keys: {"user": "x"} a line.')
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Keep these rows only: key_user <> 'ann'.")] = None,
) -> None:
    """Write NEW with the same state: other partitions, other provider.

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
            jobs=run.jobs,
            by=by,
            watcher=watcher,
            **asdict(form),
        )
    emit(RewriteReport(rewrite, checkpoint), common.output)


def import_state(
    export: Annotated[str, typer.Argument(metavar="EXPORT", help="A folder of `ckpt export-state --all --to`.")],
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
    options.check_stays(form.into)
    with RunOptions(engine, None, master, conf).writing(quiet=common.quiet) as (by, watcher):
        rewrite = ckpt.import_state(
            export, like, storage_options=storage_options, jobs=jobs, by=by, watcher=watcher, **asdict(form)
        )
    emit(ImportReport(rewrite, like, export), common.output)
