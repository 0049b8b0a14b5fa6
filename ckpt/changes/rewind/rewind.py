"""``ckpt rewind`` as a whole: the plan, for a batch or for a version of the sink, and what came of it.

``--to-sink-version``: a query and the table that it writes to go back together. First the table, then the query: a
crash between the two leaves a table that knows of batches whose rows it no longer has, which ``ckpt inspect --sink``
says (CKPT418), and the same command finishes. The other way round rows would be written twice.

A table is taken back by ``deltalake`` or ``pyiceberg``, if its newest version is the one that was read. Nobody can slip
in between that look and the commit: delta-rs creates the file of the next version only if it is not there, on S3 by a
conditional put; an Iceberg catalog commits only if its current snapshot is still that one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from os import fspath
from typing import Unpack
from uuid import uuid4

from ckpt.advice import Code, Words, left_out, plain, words
from ckpt.changes.apply import ApplyOptions, ChangeResult, run_change
from ckpt.changes.backup import choose_options
from ckpt.changes.book import BOOK
from ckpt.changes.plan import ToAccept, adapt_to_sink, add_mark
from ckpt.changes.rewind.from_points import plan_from_points
from ckpt.changes.rewind.plan import Replayed, RewindPlan, plan_rewind
from ckpt.changes.steps import plan_writing
from ckpt.checkpoint.checkpoint import METADATA, Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.times import BatchOrTime
from ckpt.errors import StorageError, UsageError, parse_choice
from ckpt.extras import install_command
from ckpt.formats.metadata import build_metadata
from ckpt.inspection.checks.sink_times import Match, describe_times, find_dropped, match_batch
from ckpt.inspection.inspection import inspect
from ckpt.live.asking import ask_sources
from ckpt.live.forecast import foresee_sources
from ckpt.live.outlook import SourceOutcome, SourceOutlook
from ckpt.live.sink.iceberg import is_in_catalog, roll_back
from ckpt.live.sink.reader import ask_sink
from ckpt.live.sink.records import SinkKind, SinkLog
from ckpt.live.sink.versions import SinkVersion, read_sink_version
from ckpt.model import Location
from ckpt.storage import Storage, open_storage
from ckpt.storage.delta_rs import spell_for_delta_rs
from ckpt.storage.errors import shorten_error
from ckpt.storage.locations import is_same_kind


def rewind(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    to_batch: BatchOrTime | None = None,
    to_sink_version: int | str | None = None,
    restore_sink: bool = False,
    replay: Replayed | str = Replayed.SAME,
    sink: str | None = None,
    from_: Location | None = None,
    sources: bool = False,
    source_options: Mapping[int, Mapping[str, str]] | None = None,
    **how: Unpack[ApplyOptions],
) -> ChangeResult[RewindPlan]:
    """Do what ``ckpt rewind`` does; return the plan and its receipt. Without ``apply`` or ``undo`` it only plans.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        to_batch: The last batch to keep, or a time at which it was the newest committed one (without a zone UTC);
            required, or a version, unless an earlier rewind is undone.
        to_sink_version: A version of the Delta table ``sink``, a snapshot of the Iceberg table, or a time in ISO 8601:
            the last batch to keep is the table's last batch then. The plan can be applied after the table is restored.
        restore_sink: Restore that table first: a Delta table on a local disk, S3 or HDFS, or an Iceberg table by its
            name in a catalog.
        replay: Whether the next batch runs again over its old offsets (``same``), or gets new ones (``new``).
        sink: The query's sink, as for ``inspect``: the plan is then for that sink.
        from_: A folder of points that ``copy`` made: if the checkpoint cannot go back to the time ``to_batch`` by
            itself, it becomes the newest point at or before that time.
        sources: Ask the sources whether they still have the rows that are read again.
        source_options: Options of the readers for ``sources``, as for ``inspect``.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier rewind; see ``ApplyOptions``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, the table has no such version, or the backup would be inside the
            checkpoint.

    >>> plan, receipt = ckpt.rewind("sample_checkpoints/aggregation-hdfs-4.2", to_batch=8)
    >>> plan.possible, plan.after[0].batch_id, receipt.applied
    (((0, 9),), 9, False)
    """
    uri, replayed = fspath(checkpoint), parse_choice(Replayed, replay, "replay")

    options = storage_options or {}
    of_sink = options if sink is not None and is_same_kind(sink, uri) else {}
    if how.get("undo") is None:
        _check_target(to_batch, to_sink_version, sink, from_, restore_sink=restore_sink)
        if source_options and not sources:
            raise UsageError.of("{--source-options} needs {--sources}")

    def plan(storage: Storage) -> RewindPlan:
        if to_sink_version is not None and sink is not None:
            planned = plan_with_table(storage, sink, str(to_sink_version), replayed, of_sink, restore=restore_sink)
        else:
            if from_ is not None and isinstance(to_batch, datetime):
                points = open_storage(fspath(from_), choose_options(fspath(from_), options, uri))
                planned = plan_from_points(storage, points, to_batch, replayed)
            else:
                planned = plan_rewind(storage, to_batch, replayed)
            planned = adapt_to_sink(planned, ask_sink(sink, uri, options))
        if sources and (after := planned.inspection_after) is not None:
            answers = ask_sources(after.checkpoint, source_options or {}, options, partial=True)
            planned = _warn_of_sources(planned, foresee_sources(after.counted, answers))
        return add_mark(planned, storage)

    restored: list[SinkVersion] = []

    def restore(plan: RewindPlan) -> None:
        if plan.restores and plan.table is not None:
            restore_table(plan.table, of_sink)
            restored.append(plan.table)

    result = run_change(RewindPlan, plan, uri, storage_options, first=restore, **how)
    failed = result.receipt.problem
    if failed is None or not restored:
        return result
    problem = f"{failed}; the table was restored before, so run this command again"
    return result._replace(receipt=replace(result.receipt, problem=problem))


def _check_target(
    to_batch: BatchOrTime | None, version: object, sink: str | None, folder: Location | None, *, restore_sink: bool
) -> None:
    """Refuse options that do not go together. Raises UsageError."""
    if restore_sink and version is None:
        raise UsageError.of("{--restore-sink} needs {--to-sink-version}")
    if version is not None and to_batch is not None:
        raise UsageError.of("name {--to-batch} or {--to-sink-version}, not both")
    if version is not None and sink is None:
        raise UsageError.of("{--to-sink-version} needs the table, with {--sink}")
    if folder is not None and not isinstance(to_batch, datetime):
        raise UsageError.of("{--from_} goes back to a time, not to a batch")


def _warn_of_sources(plan: RewindPlan, outlooks: Sequence[SourceOutlook]) -> RewindPlan:
    """Say whether the sources still have the rows that the next start reads."""
    remarks = [
        words("Source {index}: {said}.", index=each.live.index, said=each.said) for each in outlooks if each.said
    ]
    gone = any(each.outcome in (SourceOutcome.FAILS, SourceOutcome.SKIPS) for each in outlooks)
    lost = ToAccept(left_out(), words("a source no longer has all rows")) + plan.skips if gone else plan.skips
    return replace(plan, warnings=(*plan.warnings, *remarks), skips=lost)


def plan_with_table(
    storage: Storage, sink: str, wanted: str, replayed: Replayed, options: Mapping[str, str], *, restore: bool
) -> RewindPlan:
    """Plan to go back to the batch that a version of a table had last; ``options`` are for the sink.

    Raises NotACheckpoint, NotFound, StorageError, UsageError.
    """
    inspection = inspect(read_checkpoint(storage, batches=0))
    checkpoint = inspection.checkpoint
    table = read_sink_version(sink, wanted, checkpoint.query_id, options)
    blank = RewindPlan(inspection=inspection, needed=True, replayed=replayed, table=table)
    if table.batch is None:
        return replace(blank, refused=_refuse_without_batch(table, checkpoint))
    dropped = find_dropped(checkpoint, table.log)
    if dropped is not None and not dropped.past and dropped.first <= table.batch <= dropped.last:
        other = describe_times(checkpoint, table.log, table.batch)
        before = f"the newest version before batch {dropped.first} has only batches of this checkpoint"
        return replace(blank, refused=f"batch {table.batch} of {table.name} is a different one: {other}; {before}")
    new_id = str(uuid4()) if table.keeps_ids else None
    renaming = (
        () if new_id is None else tuple(plan_writing(storage, storage.list_tree(), METADATA, build_metadata(new_id)))
    )
    plan = plan_rewind(storage, table.batch, replayed, inspection, renaming)
    plan = replace(plan, table=table)
    if not plan.steps:
        return plan if plan.refused or table.is_current else replace(plan, why=f"{plan.why}; {table.restore_first}")
    if restore and not table.is_current and (obstacle := find_obstacle(table, options)) is not None:
        own = words(
            "run {statement} in a Spark session, and then leave out {--restore-sink}", statement=table.statement
        )
        return plan.refusing(plain(obstacle) + " " + own)
    log = _follow_rename(table, checkpoint.query_id, new_id or checkpoint.query_id or "")
    plan = adapt_to_sink(plan, log)
    skips = plan.skips
    if table.others and not table.is_current:
        what = words("restoring the table also removes others' commits: {commits}", commits=", ".join(table.others))
        gone = ToAccept(left_out(), what)
        skips = gone if skips is None else skips + gone
    or_restore = words("{first}, or add {--restore-sink}", first=table.restore_first)
    waits_for = None if table.is_current or restore else or_restore
    return replace(
        plan,
        warnings=(*plan.warnings, *_warn(table, new_id)),
        skips=skips,
        waits_for=waits_for,
        restores=restore and not table.is_current,
    )


def _refuse_without_batch(table: SinkVersion, checkpoint: Checkpoint) -> Words:
    """Refuse a version without a batch of the query: before a first going back the query may have had another id.

    If the table has another batch under the number, the checkpoint planned that of its own later.
    """
    had = f"{table.name} has no batch of query {checkpoint.query_id}"
    earlier = [writer for writer in table.log.writers if writer.may_be_query]
    ours = replace(table.log, writers=tuple(replace(each, app_id=checkpoint.query_id or "") for each in earlier))
    if (
        len(earlier) != 1
        or earlier[0].taken_back is not None
        or match_batch(checkpoint, ours, earlier[0].last_batch) is not Match.SAME
    ):
        return words("{had}: name the batch to keep with {--to-batch}, and restore the table yourself", had=had)
    batch = earlier[0].last_batch
    others = ", ".join(commit for commit in table.others if "STREAMING" not in commit)
    also = f" (which also removes commits of other writers: {others})" if others else ""
    parts = {"app_id": earlier[0].app_id, "statement": table.statement, "also": also, "uri": checkpoint.uri}
    return BOOK.text("of_other_id", had=had, batch=batch, **parts)


def _follow_rename(table: SinkVersion, old: str | None, new: str) -> SinkLog:
    """The table as the renamed query finds it: it has the rows of these batches, and drops none after them."""
    writer = table.log.writer(old)
    assert writer is not None
    assert table.batch is not None
    renamed = replace(writer, app_id=new, last_batch=table.batch, taken_back=None)
    others = (each for each in table.log.writers if each.app_id != old)
    return replace(table.log, writers=(renamed, *others))


def _warn(table: SinkVersion, new_id: str | None) -> Iterator[Words]:
    if new_id is not None:
        yield BOOK.text("gets_new_id", new_id=new_id)
    if not table.is_current:
        yield BOOK.text("undo_table", statement=Code(table.undo))


def find_obstacle(table: SinkVersion, options: Mapping[str, str]) -> str | None:
    """Find why ckpt cannot take a table back; None if it can try.

    ``options`` are for the storage of the table; the text is continued by what else can be done.
    """
    if table.log.kind is not SinkKind.DELTA:
        if is_in_catalog(table.log.uri):
            return None
        return "a path does not show which catalog has the table: name it as iceberg://CATALOG/NAMESPACE.TABLE, or"
    try:
        spell_for_delta_rs(table.log.uri, options)
    except (StorageError, UsageError) as error:
        return f"{error}:"
    return None


def restore_table(table: SinkVersion, options: Mapping[str, str]) -> None:
    """Restore a Delta table, or roll an Iceberg table back, if its newest version is the one that was read.

    Raises StorageError: it is not, files of that version are gone, or the library is not there or cannot.
    """
    if is_in_catalog(table.log.uri):
        roll_back(table.log.uri, table.newest, table.number)
        return
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise StorageError(f"restoring a table needs one more package: {install_command('deltalake')}") from None
    path, spelled = spell_for_delta_rs(table.log.uri, options)
    try:
        opened = DeltaTable(path, storage_options=spelled)
        if opened.version() != table.newest:
            raise StorageError(f"the table now has version {opened.version()}, but {table.newest} was the newest")
        opened.restore(table.number)  # fails if anybody has committed since it was opened
    except (DeltaError, OSError, ValueError) as error:
        why = f"the table cannot be restored ({shorten_error(error)})"
        raise StorageError(f"{why}; {table.restore_first}") from error
