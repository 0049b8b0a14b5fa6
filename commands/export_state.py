"""ckpt export-state."""

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from ckpt.advice import words
from ckpt.spark.calls import export_state as export
from ckpt.state.export.engines import is_under_spark_submit
from ckpt.state.export.request import Engine, ExportRequest
from ckpt.state.export.targets import Format, Mode
from ckpt.state.reading.columns import Shape

from . import options
from .render.export import ExportReport
from .report import complain, emit
from .run_options import session
from .watching import interruptible


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Options for the place and the form of the data."""

    to: Annotated[str | None, typer.Option(metavar="PATH", help="Write to this local or remote folder.")] = None
    table: Annotated[str | None, typer.Option(metavar="NAME", help="Write to this catalog table.")] = None
    format: Annotated[Format, typer.Option(help="The data format.")] = Format.PARQUET
    mode: Annotated[Mode, typer.Option(help="If data is already there.")] = Mode.ERROR
    shape: Annotated[Shape, typer.Option(help="raw: as Spark stores it.")] = Shape.FLAT
    partition_id: Annotated[bool, typer.Option("--partition-id", help="Add each row's state partition.")] = False


@dataclass(frozen=True, slots=True)
class StateOptions:
    """Options that choose a batch, or everything."""

    batch: options.BatchOption = None
    changes_from: Annotated[options.BatchOrTime, options.at("Changes since this batch, not the full state.")] = None
    all_units: Annotated[bool, typer.Option("--all-units", help="Export all state, one folder per part.")] = False
    salvage: Annotated[bool, typer.Option("--salvage", help="Read as much damaged state as possible.")] = False
    accept_loss: Annotated[bool, typer.Option("--accept-loss", help="Accept what --salvage loses.")] = False


def export_state(
    checkpoint: options.CheckpointArg,
    common: options.CommonOptions,
    target: TargetOptions,
    state: StateOptions,
    part: options.PartOptions,
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would be read.")] = False,
    engine: Annotated[Engine, typer.Option(help="auto: ckpt, or Spark where needed.")] = Engine.AUTO,
    jobs: options.JobsOption = None,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
) -> None:
    """Export state as Parquet, Delta, JSON, CSV or a table.

    Uses Spark only where ckpt cannot guarantee the same result. CHECKPOINT is only read.

    Examples:
    ckpt export-state /cp/orders --to /data/export --all-units
    ckpt export-state /cp/orders --operator 0 --plan

    Exit status: 0 done, 2 bad usage, 3 could not do it.
    """
    request = ExportRequest(
        checkpoint,
        **asdict(target),
        **asdict(state),
        **asdict(part),
        plan=plan,
        engine=engine,
        jobs=jobs,
    )
    with interruptible(), session(master, conf, quiet=common.quiet) as with_spark:
        exported = export(request, storage_options=common.storage_options, session=with_spark)
    if exported.plan.unseen is not None and not common.quiet:
        complain([words("{--to} is checked only when Spark runs: {unseen}", unseen=exported.plan.unseen)])
    if exported.not_native is not None and not common.quiet and not is_under_spark_submit():  # which joins both streams
        complain([f"with Spark: {exported.not_native}"])
    emit(ExportReport(exported), common.output)
