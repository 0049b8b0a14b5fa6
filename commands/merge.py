"""ckpt merge."""

from dataclasses import asdict
from typing import Annotated

import typer

import ckpt
from ckpt.errors import UsageError

from . import options
from .form_options import StateForm
from .render.rewriting import RewriteReport
from .report import emit
from .run_options import RunOptions


def merge(
    *,
    checkpoints: Annotated[
        list[str], typer.Argument(metavar="CHECKPOINT CHECKPOINT...", help="Two or more, of queries that do the same.")
    ],
    common: options.CommonOptions,
    form: StateForm,
    run: RunOptions,
    drop_keys: options.DropKeysOption = None,
    where: options.WhereOption = None,
    expect: Annotated[str | None, typer.Option(metavar="FILE", help="The query, from `ckpt.describe_query`.")] = None,
    combine: Annotated[bool, typer.Option("--combine", help="Merge keys that several have.")] = False,
    accept_fewer_versions: options.FewerVersionsOption = False,
) -> None:
    """Merge several checkpoints into NEW.

    For queries that do the same with different sources: one query that reads all of these continues with NEW.
    CHECKPOINTs are only read; starts no JVM but with --engine spark.

    Examples:
    ckpt merge /cp/eu /cp/us /cp/orders --plan
    ckpt merge /cp/eu /cp/us /cp/orders --combine --expect query.json

    Exit status: 0 written or planned, 2 bad usage, 3 could not do it.
    """
    if len(where or ()) > 1:
        raise UsageError.of("{--where}: name one condition, with AND or OR")
    options.check_stays(form.new)
    with run.writing(quiet=common.quiet) as (engine, watcher):
        merged = ckpt.merge(
            checkpoints,
            storage_options=common.storage_options,
            drop_keys=drop_keys or (),
            where=next(iter(where or ()), None),
            expect=expect,
            combine=combine,
            accept_fewer_versions=accept_fewer_versions,
            jobs=run.jobs,
            engine=engine,
            watcher=watcher,
            **asdict(form),
        )
    emit(RewriteReport(merged, checkpoints[0]), common.output)
