"""ckpt evolve."""

from typing import Annotated, Any

import typer

import ckpt
from ckpt.advice import Code
from ckpt.errors import UsageError

from . import change_options, options
from .render.evolving import EvolveReport
from .report import emit
from .run_options import RunOptions, Workers
from .watching import bar


def evolve(
    checkpoint: options.CheckpointArg,
    change: change_options.ChangeOptions,
    run: RunOptions,
    new: Annotated[str | None, typer.Argument(metavar="NEW", help="A new or empty folder, local or remote.")] = None,
    to: Annotated[
        str | None, typer.Option(metavar="FILE", help="The changed query, from `ckpt.describe_query`.")
    ] = None,
    from_query: Annotated[
        str | None, typer.Option("--from-query", metavar="FILE", help="The query that wrote CHECKPOINT, likewise.")
    ] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Change CHECKPOINT itself: sources only.")] = False,
    map_source: Annotated[
        list[str] | None, typer.Option(metavar="OLD=NEW", help="Map source OLD to NEW; - for none. Repeatable.")
    ] = None,
    map_operator: Annotated[
        list[str] | None, typer.Option(metavar="OLD=NEW", help="Map operator OLD to NEW; - for none. Repeatable.")
    ] = None,
    map_column: Annotated[
        list[str] | None,
        typer.Option("--map-column", metavar="OLD=NEW", help="Map state column OLD to NEW; - for none. Repeatable."),
    ] = None,
    default: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=VALUE", help="Value of a new key column for old rows. Repeatable."),
    ] = None,
    start: Annotated[
        list[str] | None, typer.Option(metavar="SOURCE=JSON", help="Start offset of a new source. Repeatable.")
    ] = None,
    accept_from_now_on: Annotated[
        bool, typer.Option("--accept-from-now-on", help="Accept that new parts see only rows from now on.")
    ] = False,
    new_id: Annotated[bool, typer.Option("--new-id", help="Give NEW its own query id.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would be written to NEW.")] = False,
    to_storage_option: options.ToStorageOption = None,
) -> None:
    """Carry a checkpoint over to a changed query.

    Writes NEW; CHECKPOINT is only read. Without NEW it writes nothing, and shows what the change costs and the command
    to make it. With --in-place it prints a plan for CHECKPOINT itself, and changes nothing without --apply. Starts no
    JVM except with --engine spark.

    Examples:
    ckpt evolve /cp/orders --from-query old.json --to query.json
    ckpt evolve /cp/orders /cp/orders-2 --to query.json

    Exit status: 0 written, planned with --plan, or nothing to do; 1 a change of CHECKPOINT is planned; 2 bad usage;
    3 could not do it.
    """
    request: dict[str, object] = {"NEW": new, "to": to, "from_query": from_query, "in_place": in_place}
    request |= {"map_source": map_source, "map_operator": map_operator, "map_column": map_column, "default": default}
    request |= {"start": start, "to_storage_options": to_storage_option, **run.words}
    request |= {"accept_from_now_on": accept_from_now_on, "new_id": new_id, "plan": plan}
    how = change.how(request)
    guided = new is None and not in_place and change.undo is None
    if change.undo is None:
        _check_request(new, to, change, in_place=in_place, of_new=new_id or plan)
        if run.engine is Workers.SPARK and (in_place or plan or guided):
            raise UsageError.of("{--engine=spark} writes the state of NEW: leave it out with {--in-place} and {--plan}")
    mapped: dict[str, Any] = {
        "from_query": from_query,
        "map_source": tuple(map_source or ()),
        "map_operator": tuple(map_operator or ()),
        "start": options.pairs("start", start, once=True),
        "map_column": tuple(map_column or ()),
        "default": options.pairs("default", default, once=True),
        "accept_from_now_on": accept_from_now_on,
    }
    with run.executors(quiet=change.quiet) as by, bar(quiet=change.quiet or by is not None, of="files") as watcher:
        evolution, receipt = ckpt.evolve(
            checkpoint,
            new,
            to=to,
            storage_options=change.storage_options,
            to_storage_options=options.pairs("to_storage_options", to_storage_option) or None,
            **mapped,
            new_id=new_id,
            plan=plan or guided,
            jobs=run.jobs,
            engine=by,
            **(how if in_place else {**how, "watcher": watcher}),
        )
    emit(EvolveReport(evolution, receipt, backup=change.backup, asked=mapped), change.output)


def _check_request(
    new: str | None, to: str | None, change: change_options.ChangeOptions, *, in_place: bool, of_new: bool
) -> None:
    """Refuse options that do nothing. Raises UsageError."""
    if to is None:
        describe = Code("ckpt.describe_query")
        raise UsageError.of("name the changed query: {--to} query.json, from {describe}", describe=describe)
    if in_place and new is not None:
        raise UsageError.of("name one target: NEW or {--in-place}")
    if in_place and of_new:
        raise UsageError.of("{--new-id} and {--plan} are for NEW; without {--apply}, {--in-place} only prints a plan")
    if new is not None:
        options.check_stays(new)
    if not in_place and (change.apply or change.backup is not None or change.deep):
        raise UsageError.of("{--apply}, {--backup} and {--deep} need {--in-place}: NEW is written at once")
