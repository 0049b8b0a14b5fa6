"""ckpt export-state."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from ckpt.errors import CkptError, UsageError
from ckpt.export.choose import Wanted
from ckpt.export.initial import InitialPlan, plan_initial_states
from ckpt.export.place import check_export, promised
from ckpt.export.reading import Question, Reading, plan_readings
from ckpt.export.targets import Format, Mode, Shape, Target, target
from ckpt.secrets import masked

from . import options
from .needs import spark_version
from .progress import bar
from .render.export import Done, ExportReport
from .render.text import printable
from .report import Output, emit

_Planned = Reading | InitialPlan


def export_state(
    checkpoint: options.CheckpointArg,
    to: Annotated[str | None, typer.Option("--to", metavar="PATH", help="A folder to write, local or remote.")] = None,
    table: Annotated[str | None, typer.Option("--table", metavar="NAME", help="A table of the catalog.")] = None,
    kind: Annotated[Format, typer.Option("--format", help="Spark's word for the form of the data.")] = Format.PARQUET,
    shape: Annotated[
        Shape,
        typer.Option(
            "--shape",
            help="flat: a column for each leaf; raw: as Spark gives it; initial-state: a row for each grouping key.",
        ),
    ] = Shape.FLAT,
    batch: Annotated[
        int | None, typer.Option("--batch", min=0, metavar="N", help="After this batch. Default: the newest committed.")
    ] = None,
    changes_from: Annotated[
        int | None,
        typer.Option("--changes-from", min=0, metavar="N", help="What batches N to --batch changed, not the state."),
    ] = None,
    operator: Annotated[int | None, typer.Option("--operator", min=0, metavar="ID", help="Of this operator.")] = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="NAME", help="A store of a join, as Spark keeps it.")
    ] = None,
    side: Annotated[options.Side | None, typer.Option("--side", help="One side of a join.")] = None,
    variable: Annotated[
        str | None, typer.Option("--variable", metavar="NAME", help="A variable of transformWithState.")
    ] = None,
    timers: Annotated[bool, typer.Option("--timers", help="The timers of transformWithState.")] = False,
    all_units: Annotated[bool, typer.Option("--all", help="Everything, in one folder for each part.")] = False,
    partition_id: Annotated[bool, typer.Option("--partition-id", help="Keep the state partition of each row.")] = False,
    mode: Annotated[Mode, typer.Option("--mode", help="What becomes of data that is there already.")] = Mode.ERROR,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be read, and how; starts no JVM.")] = False,
    count: Annotated[bool, typer.Option("--count", help="Count the rows; write nothing.")] = False,
    show: Annotated[int | None, typer.Option("--show", min=1, metavar="N", help="Show N rows; write nothing.")] = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Export the state that CHECKPOINT holds, with Spark, as Parquet, Delta, JSON, CSV or a table.

    The checkpoint is only read. Exit status: 0 done, 2 bad usage, 3 could not do it.
    """
    if shape is Shape.INITIAL_STATE and partition_id:
        raise UsageError("--partition-id: a grouping key has no partition once its query keeps its state elsewhere")
    looks = [name for name, on in (("--plan", plan), ("--count", count), ("--show", show is not None)) if on]
    if len(looks) > 1:
        raise UsageError(f"{' and '.join(looks)}: one of them")
    place = target(to, table, kind, mode, checkpoint)
    if not looks and not place.name:
        raise UsageError("where to? --to PATH or --table NAME; or look first with --plan, --count or --show N")
    if all_units and (table is not None or changes_from is not None):
        raise UsageError(
            "--all is the state of every part, a folder for each: it goes neither with --table nor with --changes-from"
        )
    wanted = Wanted(operator, store, side, variable, timers)
    if all_units and wanted != Wanted(operator):
        raise UsageError("--all is every part of the state: leave out --store, --side, --variable and --timers")
    question = Question(checkpoint, wanted, all_units, batch, changes_from)
    storage, version = options.pairs("--storage-option", storage_option), spark_version(needed=not plan)
    planned: Sequence[_Planned]
    if shape is Shape.INITIAL_STATE:
        planned = plan_initial_states(question, storage, version)
    else:
        planned = plan_readings(question, storage, version)
    asked = _Asked(shape, place, partition_id, all_units, count, show)
    settings = options.pairs("--conf", conf)
    if plan or asked.writes:
        columns = [
            promised(one, shape, partition_id=partition_id) if isinstance(one, Reading) else one.columns.kept
            for one in planned
        ]
        unseen = check_export(checkpoint, columns, shape, place, storage)
        if unseen is not None and not quiet:
            typer.echo(f"ckpt: --to is looked at only once Spark runs: {printable(masked(unseen))}", err=True)
    if plan:
        action, found = "plan", tuple(map(_told, planned))
    else:
        action, found = _with_spark(planned, asked, master, settings, quiet=quiet)
    emit(ExportReport(found, action, shape, place, partition_id), output)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to become of the state that is read."""

    shape: Shape
    target: Target
    partition_id: bool
    apart: bool  # in a folder for each unit
    count: bool
    show: int | None

    @property
    def writes(self) -> bool:
        return not self.count and self.show is None


def _told(planned: _Planned) -> Done:
    """What is known before Spark reads anything."""
    return Done(planned) if isinstance(planned, Reading) else Done(planned.together, planned.columns)


def _with_spark(
    planned: Sequence[_Planned], asked: _Asked, master: str | None, settings: dict[str, str], *, quiet: bool
) -> tuple[str, tuple[Done, ...]]:
    """Count, show or export; imports pyspark."""
    from ckpt.spark import export as exporting
    from ckpt.spark.session import session

    delta = asked.writes and asked.target.format is Format.DELTA
    table = asked.target.table if asked.writes else None
    try:
        with session(master, settings, delta=delta, table=table) as spark, bar(quiet=quiet) as watcher:
            shaped = [
                exporting.shaped(spark, one, asked.shape, partition_id=asked.partition_id)
                if isinstance(one, Reading)
                else exporting.shaped_initial(spark, one)
                for one in planned
            ]
            if asked.writes:
                done = exporting.export(spark, shaped, asked.target, watcher, apart=asked.apart)
                return "export", tuple(Done(d.shaped.reading, d.shaped.columns, d.rows, d.place) for d in done)
            if asked.show is None:
                counts = [exporting.count(spark, one, watcher) for one in shaped]
                return "count", tuple(Done(s.reading, s.columns, n) for s, n in zip(shaped, counts, strict=True))
            shown = [exporting.first_rows(spark, one, asked.show, watcher) for one in shaped]
            return "show", tuple(Done(s.reading, s.columns, shown=r) for s, r in zip(shaped, shown, strict=True))
    except KeyboardInterrupt:
        raise CkptError("interrupted; nothing was written") from None
