"""ckpt migrate changelog."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import typer

from ckpt.errors import CkptError, UsageError
from ckpt.migrate import ChangelogSwitch, Comparison, Outcome, To, Verdict, switch_changelog

from . import options
from .progress import bar
from .render.changelog import changelog_document, changelog_page

_STATUS = {
    Outcome.ALREADY: 0,
    Outcome.NOTHING: 0,
    Outcome.SWITCHED: 0,
    Outcome.READY: 1,
    Outcome.PARTLY: 1,
    Outcome.NOT_YET: 1,
    Outcome.REFUSED: 3,
}
_STATUS_OF_STATE = {Verdict.SAME: 0, Verdict.DIFFERENT: 1, Verdict.UNKNOWN: 1, Verdict.NOT_COMPARED: 3}


def changelog(
    checkpoint: options.CheckpointArg,
    to: Annotated[To, typer.Option("--to", help="What changelog checkpointing is to be.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Batches have run with the new setting: say whether it took.")
    ] = False,
    files_only: Annotated[
        bool, typer.Option("--files-only", help="With --verify: leave out what needs Spark, comparing state.")
    ] = False,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
    storage_option: options.StorageOption = None,
    output: options.OutputOption = options.Output.TABLE,
    quiet: options.QuietOption = False,
) -> None:
    """Say whether changelog checkpointing of CHECKPOINT can be switched, with which setting, and whether it was.

    Only reads: the switch is a setting of the session. Starts no JVM, but for --verify, which compares state with
    Spark. Exit status: 0 it is so already, or took and state was compared; 1 it can be made, has not taken everywhere,
    or state differs or cannot be compared yet; 2 bad usage; 3 refused, could not look, or Spark could not compare.
    """
    if not verify and (files_only or master is not None or conf):
        raise UsageError("--files-only, --master and --conf go with --verify; nothing else needs Spark")
    settings = options.pairs("--conf", conf)
    storage_options = options.pairs("--storage-option", storage_option)
    found = switch_changelog(checkpoint, to, storage_options, verify=verify)
    if found.outcome is Outcome.SWITCHED and not files_only:
        found = replace(found, comparison=_compared(found, storage_options, master, settings, quiet=quiet))
    render = changelog_document if output is options.Output.JSON else changelog_page
    typer.echo(render(found))
    sys.stdout.flush()
    raise typer.Exit(code=_STATUS[found.outcome] or _status_of(found.comparison))


def _status_of(comparison: Comparison | None) -> int:
    return 0 if comparison is None else _STATUS_OF_STATE[comparison.verdict]


def _compared(
    found: ChangelogSwitch,
    storage_options: Mapping[str, str],
    master: str | None,
    settings: Mapping[str, str],
    *,
    quiet: bool,
) -> Comparison:
    """What Spark says of state; imports pyspark, where there is something to compare."""
    told = Comparison(found.ways)
    if all(way.why is not None for way in found.ways):
        return told
    from ckpt.spark.needs import pyspark_version

    try:
        pyspark_version()
        from ckpt.spark.compare import Comparing
        from ckpt.spark.session import session

        with session(master, settings, delta=False) as spark, bar(quiet=quiet) as watcher:
            told = replace(told, spark=spark.version)
            comparing = Comparing(spark, found.inspection.checkpoint, storage_options, watcher)
            for compared in comparing.compared(found.ways):
                told = replace(told, compared=(*told.compared, compared))
            for carried in comparing.carried(found.ways):
                told = replace(told, carried=(*told.carried, carried))
    except CkptError as error:
        return replace(told, failed=str(error))
    except KeyboardInterrupt:
        return replace(told, failed="interrupted")
    return told
