"""Exports that need no Spark: whether this is one, and what came of it. Importing this imports neither engine."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec

from ckpt.advice import Option, Words, plain, words
from ckpt.errors import Undecodable, UsageError
from ckpt.state.book import BOOK
from ckpt.state.export.request import Engine, ExportPlan, ExportRequest, StateExport, plan_export
from ckpt.state.export.targets import Format, local_target
from ckpt.state.reading.columns import Shape
from ckpt.state.reading.reading import ChosenState, choose
from ckpt.versions import NEWEST

LARGEST = 1 << 30
"""Bytes of state files of the operators that are asked for, beyond which ``auto`` leaves them to Spark."""


def export_without_spark(
    request: ExportRequest, storage_options: Mapping[str, str] | None = None, *, session_given: bool = False
) -> StateExport | Words:
    """Export state without Spark, or say why it is left to Spark; then nothing was written.

    ``session_given`` says that something of a Spark session was. Raises what ``plan_export`` and ``state.native``
    raise; of the latter what only Spark reads, and packages that are missing, only where nobody else may read; and
    UsageError for a salvage that would be left to Spark, which reads no part of damaged state.
    """
    why = next(_list_reasons(request, session_given), None)
    if why is not None:
        return _leave_to_spark(request, why)
    plan = plan_export(request, storage_options, NEWEST)
    try:
        from ckpt.state.export.native import carry_out, find_obstacle

        question = plan.salvage.question if plan.salvage else request.question
        chosen = choose(replace(question, batch=plan.parts[0].reading.moment.batch), storage_options)
        why = next(_list_plan_reasons(plan, chosen), None) or find_obstacle(plan, chosen)
        if why is not None:
            return _leave_to_spark(request, why)
        return StateExport(plan, plan.parts if request.plan else carry_out(plan, chosen), Engine.NATIVE)
    except Undecodable as error:
        if request.engine is Engine.NATIVE or request.salvage or request.schema:  # Spark takes no stated schema
            raise
        return error.words
    except ImportError as error:  # NativeMissing: the smaller of two packages that would do
        spark_can = find_spec("pyspark") is not None or request.plan
        if request.engine is Engine.NATIVE or not spark_can:
            raise
        return plain(str(error))


def _leave_to_spark(request: ExportRequest, why: str | Words) -> Words:
    """Why Spark does it. Raises UsageError for a salvage, and where a schema is stated."""
    for name, value in (("salvage", request.salvage), ("schema", request.schema)):
        if value:
            raise UsageError(BOOK.text("salvage_without_spark", given=Option(name, value), why=why))
    return plain(why)


def is_under_spark_submit() -> bool:
    """Tell whether this process was started by ``spark-submit``."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _list_reasons(request: ExportRequest, session_given: bool) -> Iterator[str | Words]:
    """Why a request is left to Spark, whatever is in the checkpoint."""
    if session_given:
        yield words("{--master}, {--conf} or a session is given, which only Spark uses")
    if request.engine is Engine.SPARK:
        yield words("{--engine=spark} is given")
    if request.engine is Engine.AUTO and not request.salvage:
        if is_under_spark_submit():
            yield "this runs under spark-submit"
        if _session_is_active():
            yield "a Spark session is active"
    if request.shape is Shape.INITIAL_STATE:
        yield "only Spark exports the shape initial-state"
    if request.changes_from is not None:
        yield "only Spark exports changes"
    if request.table is not None:
        yield "only Spark writes tables"
    if request.to is not None and request.shape is Shape.RAW:
        yield "only Spark writes the shape raw"
    if request.to is not None and request.format is not Format.PARQUET:
        yield f"only Spark writes the format {request.format}"


def _session_is_active() -> bool:
    pyspark = sys.modules.get("pyspark")  # nobody has a session who has not imported it
    return pyspark is not None and pyspark.SparkContext._active_spark_context is not None


def _list_plan_reasons(plan: ExportPlan, chosen: ChosenState) -> Iterator[str]:
    """Why what was found is left to Spark."""
    if plan.target.path is not None and local_target(plan.target.path) is None:
        yield "only Spark writes to remote places"
    if plan.request.engine is not Engine.AUTO or plan.salvage:
        return
    if not chosen.storage.local:
        yield "the checkpoint is remote"
    operators = {unit.operator for unit in chosen.units}
    size = sum(
        info.size
        for folder, files in chosen.checkpoint.listing.folders.items()
        if any(f"{folder}/".startswith(f"state/{operator}/") for operator in operators)
        for info in files.values()
    )
    if size > LARGEST:
        yield f"its state files have {size:,} bytes, and Spark reads state from {LARGEST:,} bytes on"
