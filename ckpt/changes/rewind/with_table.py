"""``ckpt rewind --to-sink-version``: a query and the table that it writes to go back together.

First the table, then the query: a crash between the two leaves a table that knows of batches whose rows it no longer
has, which ``ckpt inspect --sink`` says (CKPT418), and the same command finishes. The other way round rows would be
written twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import path as os_path
from uuid import uuid4

from ckpt.changes.plan import adapt_to_sink
from ckpt.changes.rewind.plan import Replayed, RewindPlan, plan_rewind
from ckpt.changes.steps import Step, plan_writing
from ckpt.checkpoint.checkpoint import METADATA
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.errors import StorageError, one_line
from ckpt.extras import install_command
from ckpt.formats.metadata import build_metadata
from ckpt.inspection.checks.sink_times import describe_times, find_dropped
from ckpt.inspection.inspection import inspect
from ckpt.live.sink.records import SinkKind, SinkLog
from ckpt.live.sink.versions import SinkVersion, read_sink_version
from ckpt.storage import Storage
from ckpt.storage.locations import local_path

_ONLY_LOCAL_DELTA = (
    "ckpt restores local Delta tables only: restore this one in a session of Spark, with {statement}, and then leave "
    "out `restore_sink`"
)


def plan_with_table(
    storage: Storage, sink: str, wanted: str, replayed: Replayed, options: Mapping[str, str], *, restore: bool
) -> RewindPlan:
    """Plan to go back to the batch that a version of a table had last; ``options`` are for the sink.

    Raises NotACheckpoint, NotFound, StorageError, UsageError.
    """
    inspection = inspect(read_checkpoint(storage, batches=0))
    checkpoint = inspection.checkpoint
    table = read_sink_version(sink, wanted, checkpoint.query_id, options)
    if table.batch is None:
        plan = RewindPlan(inspection=inspection, needed=True, replayed=replayed, table=table)
        had = f"{table.name} has no batch of query {checkpoint.query_id}"
        return replace(plan, refused=f"{had}: name the batch to keep with `to_batch`, and restore the table yourself")
    dropped = find_dropped(checkpoint, table.log)
    if dropped is not None and not dropped.past and dropped.first <= table.batch <= dropped.last:
        plan = RewindPlan(inspection=inspection, needed=True, replayed=replayed, table=table)
        other = describe_times(checkpoint, table.log, table.batch)
        before = f"the newest version before batch {dropped.first} has only batches of this checkpoint"
        return replace(plan, refused=f"batch {table.batch} of {table.name} is another one: {other}; {before}")
    new_id = str(uuid4()) if table.keeps_ids else None
    renaming = () if new_id is None else tuple(_rename(storage, new_id))
    plan = plan_rewind(storage, table.batch, replayed, inspection, renaming)
    plan = replace(plan, table=table)
    if not plan.steps:
        return plan if plan.refused or table.is_current else replace(plan, why=f"{plan.why}; {_say_restore(table)}")
    if restore and not table.is_current and (table.log.kind != SinkKind.DELTA or local_path(sink) is None):
        return plan.refusing(_ONLY_LOCAL_DELTA.format(statement=table.statement))
    log = _follow_rename(table, checkpoint.query_id, new_id or checkpoint.query_id or "")
    plan = adapt_to_sink(plan, log)
    gone = f"restoring the table also removes commits of others: {', '.join(table.others)}" if table.others else None
    waits_for = None if table.is_current or restore else f"{_say_restore(table)}, or add `restore_sink`"
    return replace(
        plan,
        warnings=(*plan.warnings, *_warn(table, new_id)),
        skips="; ".join(filter(None, (plan.skips, None if table.is_current else gone))) or None,
        waits_for=waits_for,
        restores=restore and not table.is_current,
    )


def _rename(storage: Storage, new_id: str) -> Iterator[Step]:
    return plan_writing(storage, storage.list_tree(), METADATA, build_metadata(new_id))


def _follow_rename(table: SinkVersion, old: str | None, new: str) -> SinkLog:
    """The table as the renamed query finds it: it has the rows of these batches, and drops none after them."""
    writer = table.log.writer(old)
    assert writer is not None
    assert table.batch is not None
    renamed = replace(writer, app_id=new, last_batch=table.batch, taken_back=None)
    others = (each for each in table.log.writers if each.app_id != old)
    return replace(table.log, writers=(renamed, *others))


def _say_restore(table: SinkVersion) -> str:
    return f"the table has later rows than those of {table.name}: first run {table.statement}"


def _warn(table: SinkVersion, new_id: str | None) -> Iterator[str]:
    if new_id is not None:
        yield (
            f"The query gets a new id, {new_id}: under the old one the table would drop batches whose transactions "
            "RESTORE keeps."
        )
    if not table.is_current:
        yield f"`--undo` restores the checkpoint only. To undo the restore of the table, run {table.undo}"


def restore_table(table: SinkVersion) -> None:
    """Restore a local Delta table, if its newest version is the one that was read.

    Raises StorageError: it is not, files of that version are gone, or ``deltalake`` is not there or cannot.
    """
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise StorageError(f"to restore a table one more package is needed: {install_command('deltalake')}") from None
    try:
        opened = DeltaTable(os_path.abspath(local_path(table.log.uri) or ""))
        if opened.version() != table.newest:
            raise StorageError(f"the table has version {opened.version()} by now, and {table.newest} was the newest")
        opened.restore(table.number)  # fails if anybody has committed since it was opened
    except (DeltaError, OSError, ValueError) as error:
        raise StorageError(f"the table cannot be restored ({one_line(str(error))}); {_say_restore(table)}") from error
