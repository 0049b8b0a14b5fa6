"""The calls of the commands that need Spark: importing them imports nothing of it, for a plan can do without."""

from collections.abc import Mapping
from dataclasses import replace
from os import fspath
from typing import Any, Unpack, cast

from ckpt.advice import Words
from ckpt.checkpoint.times import BatchOrTime
from ckpt.errors import CkptError, UsageError, parse_choice
from ckpt.formats.text import quoted
from ckpt.migrate.comparison import Comparison
from ckpt.migrate.switches import Changelog, ChangelogSwitch, SwitchOutcome, switch_changelog
from ckpt.migrate.transform import Api, TransformMigration, plan_transform
from ckpt.model import Location
from ckpt.spark.installed import ANY, Session, SparkMissing, find_connect_session, find_pyspark_version
from ckpt.state.export.engines import export_without_spark
from ckpt.state.export.request import (
    Engine,
    ExportOptions,
    ExportPart,
    ExportPlan,
    ExportRequest,
    StateExport,
    plan_export,
)
from ckpt.state.export.targets import Format, Mode, check_free, choose_target
from ckpt.versions import NEWEST, Spark


def export_state(
    checkpoint: Location | ExportRequest,
    *,
    storage_options: Mapping[str, str] | None = None,
    session: Session = ANY,
    **options: Unpack[ExportOptions],
) -> StateExport:
    """Export state, or plan an export, like ``ckpt export-state``. The checkpoint is only read.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``; or a whole ``ExportRequest``.
        storage_options: For the file system of the checkpoint, and of a target of the same scheme.
        session: Which Spark session reads and writes; a plan needs none, nor does the engine ``native``.
        options: The fields of ``ExportRequest``: which state, its form, its target, and what to do with it.

    Raises:
        UsageError: The request is contradictory, the target exists, or the format does not support a column.
        CkptError: The engine ``native`` was requested, but cannot read this state; the text says why.
        StateDamaged: Files of the requested state are missing or damaged.
        SparkMissing, SparkFailed: Spark is not installed, or failed; nothing was written.
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.

    >>> export = ckpt.export_state("sample_checkpoints/join-hdfs-3.5", side="left", plan=True)
    >>> [column.name for column in export.parts[0].columns.kept][:2]
    ['key_field0', 'value_left_time']
    """
    request = checkpoint if isinstance(checkpoint, ExportRequest) else ExportRequest(fspath(checkpoint))
    request = replace(request, **cast("dict[str, Any]", options))
    why, connect = None, find_connect_session(session)
    if connect and request.engine is not Engine.SPARK:
        request, session = replace(request, engine=Engine.NATIVE), replace(session, spark=None)
    if request.engine is not Engine.SPARK or request.salvage:
        session_given = session.spark is not None or session.master is not None or bool(session.conf)
        outcome = export_without_spark(request, storage_options, session_given=session_given)
        if isinstance(outcome, StateExport):
            return outcome
        why = outcome
        if connect:
            raise _refuse_connect(why)
        if request.engine is Engine.NATIVE:
            raise UsageError.of("{--engine=}: {why}", engine=Engine.NATIVE, why=why)
    writes_delta = request.format is Format.DELTA and request.to is not None
    needs = (why or "reading state needs Spark", "delta" if writes_delta else "spark")
    plan = plan_export(request, storage_options, _find_spark_version(*needs, needed=not request.plan))
    other = plan.parts[0].reading.other_provider  # as that of all: it is recorded with the batch
    if other and not request.plan:
        raise CkptError.of(
            "{checkpoint}: its offsets record the state store provider {other}, without which Spark's "
            "reader fails: use {--engine=}, which uses the layout of the files",
            checkpoint=request.checkpoint,
            other=quoted(other, 80),
            engine=Engine.NATIVE,
        )
    return StateExport(plan, plan.parts if request.plan else _run_with_spark(plan, session), not_native=why)


def _refuse_connect(why: Words) -> CkptError:
    """Build the error of an export that only Spark could do, where its session is one of Spark Connect."""
    from ckpt.spark.connect import A_CLASSIC_ONE, READ_STATE, ConnectSession

    return ConnectSession.of(
        "{why}, and this is a Spark Connect session: use {read}, which it can write, or {session}",
        why=why,
        read=READ_STATE,
        session=A_CLASSIC_ONE,
    )


def _run_with_spark(plan: ExportPlan, session: Session) -> tuple[ExportPart, ...]:
    from ckpt.spark.export import write_exports
    from ckpt.spark.session import open_session

    with open_session(session, delta=plan.target.format is Format.DELTA, table=plan.target.table) as spark:
        return write_exports(spark, plan, session.watcher)


def migrate_transform_with_state(
    checkpoint: Location,
    *,
    to: str,
    storage_options: Mapping[str, str] | None = None,
    batch: BatchOrTime | None = None,
    operator: int | None = None,
    format: Format | str = Format.PARQUET,
    api: Api | str = Api.PANDAS,
    plan: bool = False,
    session: Session = ANY,
) -> TransformMigration:
    """Write a transformWithState query that continues after a batch, like its ``ckpt migrate`` command.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        to: A new or empty folder, local or remote, for the initial state, a processor and a program.
        storage_options: For the file system of the checkpoint.
        batch: The batch whose state is used; by default the newest readable one.
        operator: The stateful operator, where there are several.
        format: The format of the state: Parquet or Delta.
        api: The API of the new query.
        plan: Report what would be written; starts no JVM.
        session: Which Spark session reads and writes; a plan needs none.

    Raises:
        UsageError: The request is contradictory, or ``to`` is not empty.
        SparkMissing, SparkFailed: Spark is not installed, or failed; nothing was written.
        CkptError: The state cannot be read or migrated; also the errors of ``handoff``.

    >>> sample = "sample_checkpoints/aggregation-rocksdb-4.2"
    >>> ckpt.migrate_transform_with_state(sample, to="new-query", plan=True).plan.time_mode.value
    'None'
    """
    uri, kind = fspath(checkpoint), parse_choice(Format, format, "format")
    folder = choose_target(to, None, kind, Mode.ERROR, uri)
    check_free(folder)
    migration = plan_transform(
        uri,
        storage_options,
        batch=batch,
        operator=operator,
        kind=kind,
        api=parse_choice(Api, api, "api"),
        spark=_find_spark_version(needed=not plan),
    )
    if plan:
        return TransformMigration(migration, folder)
    from ckpt.spark.export import write_transform
    from ckpt.spark.session import open_session

    with open_session(session, delta=kind is Format.DELTA) as spark:
        return TransformMigration(migration, folder, write_transform(spark, migration, folder.name, session.watcher))


def migrate_changelog(
    checkpoint: Location,
    *,
    to: Changelog | str,
    storage_options: Mapping[str, str] | None = None,
    verify: bool = False,
    files_only: bool = False,
    session: Session = ANY,
) -> ChangelogSwitch:
    """Report whether changelog checkpointing can be, or was, switched, like ``ckpt migrate changelog``.

    Afterwards (``verify``) state is compared across the switch with Spark, where the files show that it took effect.
    A failure of Spark is reported in the answer (``comparison.failed``), next to what was compared before.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        to: ``on`` or ``off``.
        storage_options: For the file system of the checkpoint.
        verify: The switch was made and batches have run: report whether it took effect, not whether it is possible.
        files_only: With ``verify``: do not compare state, which needs Spark.
        session: Which Spark session compares.

    Raises:
        NotACheckpoint, NotFound, StorageError, UsageError: The checkpoint cannot be read.

    >>> switch = ckpt.migrate_changelog("sample_checkpoints/aggregation-rocksdb-4.2", to="on")
    >>> switch.outcome.value, list(switch.confs.values())
    ('ready', ['true'])
    >>> ckpt.migrate_changelog("sample_checkpoints/aggregation-rocksdb-4.2", to="on", verify=True).outcome.value
    'not-yet'
    """
    switch = switch_changelog(fspath(checkpoint), parse_choice(Changelog, to, "to"), storage_options, verify=verify)
    if files_only or switch.outcome is not SwitchOutcome.SWITCHED:
        return switch
    return replace(switch, comparison=_compare_state(switch, storage_options, session))


def _compare_state(switch: ChangelogSwitch, storage_options: Mapping[str, str] | None, session: Session) -> Comparison:
    """Compare state with Spark; imports pyspark, where there is something to compare."""
    result = Comparison(switch.ways)
    if all(way.why is not None for way in switch.ways):
        return result
    try:
        find_pyspark_version()
        from ckpt.spark.compare import Comparing
        from ckpt.spark.session import open_session

        with open_session(session) as spark:
            result = replace(result, spark=spark.version)
            comparing = Comparing(spark, switch.inspection.checkpoint, storage_options, session.watcher)
            for compared in comparing.compare_versions(switch.ways):
                result = replace(result, compared=(*result.compared, compared))
            for carried in comparing.count_carried(switch.ways):
                result = replace(result, carried=(*result.carried, carried))
    except CkptError as error:
        return replace(result, failed=str(error))
    except KeyboardInterrupt:
        return replace(result, failed="interrupted")
    return result


def _find_spark_version(*why_and_extra: Any, needed: bool) -> Spark:
    """The version of Spark that will read; a plan can be made without one."""
    try:
        return find_pyspark_version(*why_and_extra)
    except SparkMissing:
        if needed:
            raise
        return NEWEST
