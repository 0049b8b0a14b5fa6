"""``ckpt rewind`` as a whole: the plan, for a batch or for a version of the sink, and what came of it."""

from collections.abc import Mapping
from dataclasses import replace
from os import fspath
from typing import Unpack

from ckpt.changes.apply import ChangeResult, How, run_change
from ckpt.changes.plan import adapt_to_sink, add_mark
from ckpt.changes.rewind.plan import Replayed, RewindPlan, plan_rewind
from ckpt.changes.rewind.restoring import restore_table
from ckpt.changes.rewind.with_table import plan_with_table
from ckpt.errors import UsageError, parse_choice
from ckpt.live.sink.reader import ask_sink
from ckpt.live.sink.versions import SinkVersion
from ckpt.model import Location
from ckpt.storage import Storage
from ckpt.storage.locations import is_same_kind


def rewind(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    to_batch: int | None = None,
    to_sink_version: int | str | None = None,
    restore_sink: bool = False,
    replay: Replayed | str = Replayed.SAME,
    sink: str | None = None,
    **how: Unpack[How],
) -> ChangeResult[RewindPlan]:
    """All that ``ckpt rewind`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        to_batch: The last batch that counts; required, or a version, unless an earlier rewind is undone.
        to_sink_version: A version of the Delta table ``sink``, a snapshot of the Iceberg table, or a time in ISO 8601:
            the last batch that counts is the one that the table had then. The plan is applied once the table is there.
        restore_sink: Restore that table first: a Delta table on a local disk, S3 or HDFS, or an Iceberg table by its
            name in a catalog.
        replay: Whether the batch after it runs again over its old range (``same``), or gets a new one (``new``).
        sink: The place that the query writes to, as ``inspect`` takes it: the plan is then for that sink.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier rewind; see ``How``.

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
        _must_fit(to_batch, to_sink_version, sink, restore_sink=restore_sink)

    def plan(storage: Storage) -> RewindPlan:
        if to_sink_version is not None and sink is not None:
            planned = plan_with_table(storage, sink, str(to_sink_version), replayed, of_sink, restore=restore_sink)
        else:
            planned = adapt_to_sink(plan_rewind(storage, to_batch, replayed), ask_sink(sink, uri, options))
        return add_mark(planned, storage)

    restored: list[SinkVersion] = []

    def restore(plan: RewindPlan) -> None:
        if plan.restores and plan.table is not None:
            restore_table(plan.table, of_sink)
            restored.append(plan.table)

    result = run_change(RewindPlan, plan, uri, storage_options, first=restore, **how)
    problem = result.receipt.problem
    if problem is None or not restored:
        return result
    problem = f"{problem}; the table was restored before, so run this command again"
    return result._replace(receipt=replace(result.receipt, problem=problem))


def _must_fit(to_batch: int | None, version: int | str | None, sink: str | None, *, restore_sink: bool) -> None:
    """Raise UsageError where options do not go together."""
    if version is None and restore_sink:
        raise UsageError.of("{--restore-sink} goes with {--to-sink-version}")
    if version is not None and to_batch is not None:
        raise UsageError.of("name {--to-batch} or {--to-sink-version}, not both")
    if version is not None and sink is None:
        raise UsageError.of("{--to-sink-version} needs the table, with {--sink}")
