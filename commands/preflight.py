"""ckpt preflight."""

from enum import StrEnum
from typing import Annotated

import typer

import ckpt
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import open_for_start
from ckpt.errors import UsageError, must_choose_reading, one_line
from ckpt.inspection.activity import must_be_seconds
from ckpt.inspection.preflight import PlannedStart, find_changed_file, judge_start
from ckpt.live.kind import source_options
from ckpt.query.description import QueryDescription
from ckpt.restart.findings import Asked
from ckpt.versions import Spark

from . import options
from .inspect import open_deep
from .inspected import is_document, mask_query, read_evidence
from .render.preflight import PreflightReport, RecordedPreflightReport
from .report import Output, emit


class FixChoice(StrEnum):
    """The fixes that preflight may apply."""

    SAFE = "safe"  # that are proven to touch no row


def preflight(
    checkpoint: options.CheckpointArg,
    spark: Annotated[
        str | None,
        typer.Option(parser=options.spark_release, metavar="VERSION", help="Default: the --expect version, or all."),
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of the start; repeatable.")
    ] = None,
    expect: Annotated[str | None, typer.Option(metavar="FILE", help="The query, from `ckpt.describe_query`.")] = None,
    from_query: Annotated[
        str | None, typer.Option(metavar="FILE", help="The query that wrote CHECKPOINT, for --expect.")
    ] = None,
    must_exist: Annotated[bool, typer.Option("--must-exist", help="Hold if no batch was ever planned here.")] = False,
    progress: options.ProgressOption = Asked.SYNC,
    deep: options.DeepOption = False,
    names_only: options.NamesOnlyOption = False,
    sources: options.SourcesOption = False,
    source_option: options.ReaderOption = None,
    sink: options.SinkOption = None,
    fix: Annotated[FixChoice | None, typer.Option(help="Apply fixes that do not touch rows, if they suffice.")] = None,
    backup: Annotated[
        str | None, typer.Option(metavar="DIR", help="With --fix: back up to this new folder. Default: a sibling.")
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="With --fix: refuse if a file changed in the last SECONDS."),
    ] = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = Output.TABLE,
) -> None:
    """Check whether the query can be started on CHECKPOINT now.

    For an init container, a scheduler or CI. Only reads, except with --fix safe; starts no JVM. CHECKPOINT can also be
    a file printed by `ckpt inspect CHECKPOINT -o json`.

    Examples:
    ckpt preflight /cp/orders --spark 4.2 --must-exist --fix safe
    ckpt preflight inspected.json --expect query.json -o github

    Exit status: 0 start, 1 hold, 2 bad usage, 3 could not look.
    """
    if fix is None and (backup is not None or grace is not None):
        raise UsageError.of("{--backup} and {--grace} need {--fix}")
    if from_query is not None and expect is None:
        raise UsageError.of("{--from-query} needs {--expect}")
    settings = options.pairs("conf", conf)
    if is_document(checkpoint):
        if deep or names_only or sources or source_option or sink is not None or storage_option or fix is not None:
            raise UsageError.of(
                "{file} is not a checkpoint, but {--deep}, {--names-only}, {--fix}, {--sink}, {--sources} and "
                "options need one",
                file=one_line(checkpoint),
            )
        evidence, shown = read_evidence(checkpoint)
        files = (expect, from_query)
        query, before = (None if path is None else mask_query(QueryDescription.read(path)) for path in files)
        start = PlannedStart(
            None if spark is None else Spark(spark),
            settings,
            query=query,
            query_file=expect,
            old=before,
            old_file=from_query,
            progress=progress,
            must_exist=must_exist,
            release=spark,
        )
        emit(RecordedPreflightReport(judge_start(evidence, start), checkpoint=shown), output)
    must_choose_reading(deep=deep, names_only=names_only)
    storage_options = options.pairs("storage_options", storage_option)
    readiness = ckpt.preflight(
        _open(checkpoint, storage_options, deep=True) if deep else checkpoint,
        expect=expect,
        from_query=from_query,
        spark=spark,
        conf=settings,
        progress=progress,
        must_exist=must_exist,
        names_only=names_only,
        sources=sources,
        source_options=source_options(source_option or ()),
        sink=sink,
        storage_options=storage_options,
    )
    outcome = None
    if fix is not None:
        from ckpt.changes.fixes.unattended import fix_safely  # not at the top: a look loads nothing that changes

        grace = 30.0 if grace is None else grace
        must_be_seconds(grace)
        outcome = fix_safely(checkpoint, storage_options, readiness, names_only=names_only, backup=backup, grace=grace)
        if outcome.fixed:
            opened = _open(checkpoint, storage_options, deep=deep, names_only=names_only)
            readiness = readiness.judge_again(opened, changed=find_changed_file(opened, storage_options))
    emit(PreflightReport(readiness, outcome), output)


def _open(uri: str, storage_options: dict[str, str], *, deep: bool, names_only: bool = False) -> Checkpoint:
    """Read the checkpoint, and every byte of its state where that is asked for."""
    opened = open_for_start(uri, storage_options, names_only=names_only or deep)
    return open_deep(uri, storage_options) if deep and opened.state is not None else opened
