"""ckpt rewrite, merge, split and import-state: commands that write a new checkpoint whose state is in another form."""

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

import ckpt
from ckpt.advice import call
from ckpt.errors import UsageError
from ckpt.model import ToProvider

from . import options
from .render.rewriting import ImportReport, RewriteReport
from .report import emit
from .run_options import RunOptions


@dataclass(frozen=True, slots=True)
class StateForm:
    """Options for the place of a new checkpoint with an id of its own, and the form of its state."""

    new: Annotated[str, typer.Argument(metavar="NEW", help="A new or empty folder, local or remote.")]
    provider: Annotated[ToProvider | None, typer.Option(help="The state store provider. Default: unchanged.")] = None
    partitions: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Shuffle partitions. Default: unchanged.")
    ] = None
    format_version: Annotated[
        int | None, typer.Option(min=1, max=2, metavar="1|2", help="State store checkpoint format. Default: unchanged.")
    ] = None
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would be written.")] = False


@dataclass(frozen=True, slots=True)
class FormOptions(StateForm):
    """Options for a new checkpoint that keeps the query id, or gets one of its own."""

    new_id: Annotated[bool, typer.Option("--new-id", help="Give NEW its own query id.")] = False


def rewrite(
    *,
    checkpoint: options.CheckpointArg,
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    common: options.NewOptions,
    form: FormOptions,
    run: RunOptions,
    drop_keys: options.DropKeysOption = None,
    where: options.WhereOption = None,
    salvage: Annotated[bool, typer.Option("--salvage", help="Read as much damaged state as possible.")] = False,
    accept_loss: Annotated[bool, typer.Option("--accept-loss", help="Accept what --salvage loses.")] = False,
    accept_fewer_versions: options.FewerVersionsOption = False,
    schema: Annotated[str | None, typer.Option(metavar="FILE", help="Schemas, if the state has none.")] = None,
) -> None:
    """Write NEW with other partitions or another state provider.

    Can also change the checkpoint format, or leave out keys or rows. CHECKPOINT is only read; starts no JVM except with
    --engine spark.

    Examples:
    ckpt rewrite /cp/orders /cp/orders-8 --partitions 8
    ckpt rewrite /cp/orders /cp/orders-rocksdb --provider rocksdb --plan

    Exit status: 0 written or planned, 2 bad usage, 3 could not do it.
    """
    if more or len(where or ()) > 1:
        raise UsageError.of(
            "name one CHECKPOINT and one NEW; {merge} merges several checkpoints, and {split} divides a checkpoint",
            merge=call("merge"),
            split=call("split"),
        )
    with run.writing(common, form.new) as how:
        rewrite = ckpt.rewrite(
            checkpoint,
            drop_keys=drop_keys or (),
            where=next(iter(where or ()), None),
            salvage=salvage,
            accept_loss=accept_loss,
            accept_fewer_versions=accept_fewer_versions,
            schema=schema,
            **how,
            **asdict(form),
        )
    emit(RewriteReport(rewrite, checkpoint), common.output)


def merge(
    *,
    checkpoints: Annotated[
        list[str], typer.Argument(metavar="CHECKPOINT CHECKPOINT...", help="Two or more, from equivalent queries.")
    ],
    common: options.NewOptions,
    form: StateForm,
    run: RunOptions,
    drop_keys: options.DropKeysOption = None,
    where: options.WhereOption = None,
    expect: Annotated[str | None, typer.Option(metavar="FILE", help="The query, from `ckpt.describe_query`.")] = None,
    combine: Annotated[bool, typer.Option("--combine", help="Merge keys that are in several.")] = False,
    accept_fewer_versions: options.FewerVersionsOption = False,
) -> None:
    """Merge several checkpoints into NEW.

    For queries that do the same with different sources: one query that reads all of these sources continues on NEW.
    CHECKPOINTs are only read; starts no JVM except with --engine spark.

    Examples:
    ckpt merge /cp/eu /cp/us /cp/orders --plan
    ckpt merge /cp/eu /cp/us /cp/orders --combine --expect query.json

    Exit status: 0 written or planned, 2 bad usage, 3 could not do it.
    """
    if len(where or ()) > 1:
        raise UsageError.of("{--where}: give one condition; join its parts with AND or OR")
    with run.writing(common, form.new) as how:
        merged = ckpt.merge(
            checkpoints,
            drop_keys=drop_keys or (),
            where=next(iter(where or ()), None),
            expect=expect,
            combine=combine,
            accept_fewer_versions=accept_fewer_versions,
            **how,
            **asdict(form),
        )
    emit(RewriteReport(merged, checkpoints[0]), common.output)


def split(
    *,
    checkpoint: options.CheckpointArg,
    others: Annotated[list[str], typer.Argument(metavar="NEW...", help="The other new or empty folders.")],
    common: options.NewOptions,
    form: StateForm,
    run: RunOptions,
    where: Annotated[list[str], typer.Option(metavar="SQL", help="Rows for one NEW: key_at = 'eu'. Repeat per NEW.")],
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Accept losing rows that match no --where condition.")
    ] = False,
    accept_fewer_versions: options.FewerVersionsOption = False,
) -> None:
    """Split CHECKPOINT into several, one for each --where.

    For queries that together replace the old one. CHECKPOINT is only read; do not start its query again. Starts no JVM
    except with --engine spark.

    Examples:
    ckpt split /cp/in /cp/a /cp/b --where "key_at = 'eu'" --where "key_at = 'us'"
    ckpt split /cp/in /cp/a /cp/b --where "key_live" --where "NOT key_live" --plan

    Exit status: 0 written or planned, 2 bad usage, 3 could not do it.
    """
    new = [*others, form.new]
    as_state = {name: value for name, value in asdict(form).items() if name != "new"}
    with run.writing(common, *new) as how:
        parts = ckpt.split(
            checkpoint,
            new,
            where=where,
            accept_loss=accept_loss,
            accept_fewer_versions=accept_fewer_versions,
            **how,
            **as_state,
        )
    emit(RewriteReport(parts, checkpoint), common.output)


def import_state(
    export: Annotated[str, typer.Argument(metavar="EXPORT", help="From `ckpt export-state --all-units --to`.")],
    like: Annotated[str, typer.Option(metavar="CHECKPOINT", help="The exported checkpoint, or a new query's.")],
    form: FormOptions,
    common: options.NewOptions,
    run: RunOptions,
) -> None:
    """Write a checkpoint NEW from exported state, edited or not.

    EXPORT and CHECKPOINT are only read; starts no JVM except with --engine spark.

    Examples:
    ckpt import-state /data/export /cp/new --like /cp/orders
    ckpt import-state /data/export /cp/new --like /cp/orders --plan

    Exit status: 0 written or planned, 2 bad usage, 3 could not do it.
    """
    with run.writing(common, form.new) as how:
        rewrite = ckpt.import_state(export, like=like, **how, **asdict(form))
    emit(ImportReport(rewrite, like, export), common.output)
