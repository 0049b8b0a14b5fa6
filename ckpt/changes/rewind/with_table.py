"""``ckpt rewind --to-sink-version``: a query and the table that it writes to go back together.

First the table, then the query: a crash between the two leaves a table that knows of batches whose rows it no longer
has, which ``ckpt inspect --sink`` says (CKPT418), and the same command finishes. The other way round rows would be
written twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from uuid import uuid4

from ckpt.advice import Code, Words, left_out, plain, words
from ckpt.changes.book import BOOK
from ckpt.changes.plan import ToAccept, adapt_to_sink
from ckpt.changes.rewind.plan import Replayed, RewindPlan, plan_rewind
from ckpt.changes.rewind.restoring import find_obstacle
from ckpt.changes.steps import FileStep, plan_writing
from ckpt.checkpoint.checkpoint import METADATA, Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.formats.metadata import build_metadata
from ckpt.inspection.checks.sink_times import Match, describe_times, find_dropped, match_batch
from ckpt.inspection.inspection import inspect
from ckpt.live.sink.records import SinkLog
from ckpt.live.sink.versions import SinkVersion, read_sink_version
from ckpt.storage import Storage


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
        return replace(plan, refused=_refuse_without_batch(table, checkpoint))
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
        return plan if plan.refused or table.is_current else replace(plan, why=f"{plan.why}; {table.restore_first}")
    if restore and not table.is_current and (obstacle := find_obstacle(table, options)) is not None:
        own = words(
            "run {statement} in a session of Spark, and then leave out {--restore-sink}", statement=table.statement
        )
        return plan.refusing(plain(obstacle) + " " + own)
    log = _follow_rename(table, checkpoint.query_id, new_id or checkpoint.query_id or "")
    plan = adapt_to_sink(plan, log)
    skips = plan.skips
    if table.others and not table.is_current:
        what = words("restoring the table also removes commits of others: {commits}", commits=", ".join(table.others))
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
    also = f" (which also removes commits of others: {others})" if others else ""
    parts = {"app_id": earlier[0].app_id, "statement": table.statement, "also": also, "uri": checkpoint.uri}
    return BOOK.text("of_other_id", had=had, batch=batch, **parts)


def _rename(storage: Storage, new_id: str) -> Iterator[FileStep]:
    return plan_writing(storage, storage.list_tree(), METADATA, build_metadata(new_id))


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
