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
    *,
    checkpoint: options.CheckpointArg,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MORE...]", help="Other CHECKPOINTs that become one; or more NEWs, for each --where."),
    ] = None,
    common: options.CommonOptions,
    form: FormOptions,
    run: RunOptions,
    drop_keys: Annotated[
        str | None, typer.Option(metavar="FILE", help='Leave out these keys: {"user": "x"} a line.')
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="SQL", help="Keep rows with key_user <> 'ann'; one per NEW."),
    ] = None,
    expect: Annotated[str | None, typer.Option(metavar="FILE", help="The query, from `ckpt.describe_query`.")] = None,
    combine: Annotated[bool, typer.Option("--combine", help="Merge keys of several CHECKPOINTs.")] = False,
    salvage: Annotated[bool, typer.Option("--salvage", help="Of damaged state, take what can be read.")] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Accept what --salvage or several --where lose.")
    ] = False,
    accept_fewer_versions: Annotated[
        bool, typer.Option("--accept-fewer-versions", help="Accept that fewer Spark versions start it.")
    ] = False,
    schema: Annotated[
        str | None, typer.Option(metavar="FILE", help="Schemas, where state has none; also --expect.")
    ] = None,
) -> None:
    """Write NEW: same state, other shuffle partitions or provider.

    Another provider, number of partitions or checkpoint format, or without some keys or rows. Several CHECKPOINTs
    become one NEW, and one becomes several, with a --where for each. CHECKPOINT is only read; starts no JVM but with
    --engine spark.

    Examples:
    ckpt rewrite /cp/orders /cp/orders-8 --partitions 8
    ckpt rewrite /cp/eu /cp/us /cp/orders --plan

    Exit status: 0 written or planned, 2 bad usage, 3 could not do it.
    """
    storage_options = common.storage_options
    uris, count = [checkpoint, *(more or ()), form.new], max(1, len(where or ()))
    old, new = uris[:-count], uris[-count:]
    for uri in new:
        options.check_stays(uri)
    with run.writing(quiet=common.quiet) as (by, watcher):
        rewrite = ckpt.rewrite(
            old,
            new,
            storage_options=storage_options,
            drop_keys=drop_keys or (),
            where=where,
            expect=expect,
            combine=combine,
            salvage=salvage,
            accept_loss=accept_loss,
            accept_fewer_versions=accept_fewer_versions,
            schema=schema,
            jobs=run.jobs,
            engine=by,
            watcher=watcher,
            **{name: value for name, value in asdict(form).items() if name != "new"},
        )
    emit(RewriteReport(rewrite, checkpoint), common.output)
