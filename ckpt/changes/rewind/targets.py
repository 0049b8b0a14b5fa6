"""The batches to which a query can be rewound, by what its logs hold and by the names of its state files.

A start after batch N wants ``offsets/N`` and the one before it, ``commits/N`` and state version N + 1 of every store
(``MicroBatchExecution.populateStartOffsets``); in format 2 the commit names the unique ids of that version. If the
offsets of batch N + 1 are kept, that batch runs again from the end of N, and the offsets before N are not looked for.
"""

from dataclasses import replace
from enum import StrEnum

from ckpt.checkpoint.checkpoint import Checkpoint, Log
from ckpt.checkpoint.state.context import Context, context_of
from ckpt.checkpoint.state.folders import StorePartition, find_store_partitions
from ckpt.checkpoint.state.ranges import Ranges, ranges_of
from ckpt.model import CommitLog, OffsetLog, Unreadable


class Replayed(StrEnum):
    """How the next start treats the batch after the rewind's target."""

    SAME = "same"  # runs it again over its old range
    NEW = "new"  # plans it anew, with the data and limits of that time


def name_missing_part(checkpoint: Checkpoint, batch: int, replayed: Replayed) -> str | None:
    """Name what the logs lack for a query to stand as after ``batch``; None if nothing."""
    offsets, commits = checkpoint.offsets, checkpoint.commits
    if offsets.latest is not None and batch > offsets.latest:
        return f"batch {batch} was never planned: the latest is {offsets.latest}"
    wanted: list[tuple[Log[OffsetLog] | Log[CommitLog], int]] = [(offsets, batch), (commits, batch)]
    if keeps_planned(checkpoint, batch, replayed):
        wanted.append((offsets, batch + 1))
    elif batch:
        wanted.append((offsets, batch - 1))
    return next((problem for log, i in wanted if (problem := _name_problem(log, i)) is not None), None)


def keeps_planned(checkpoint: Checkpoint, batch: int, replayed: Replayed) -> bool:
    """Tell whether the offsets of the batch after ``batch`` stay."""
    latest = checkpoint.offsets.latest
    return replayed is Replayed.SAME and latest is not None and batch < latest


def _name_problem(log: Log[OffsetLog] | Log[CommitLog], batch: int) -> str | None:
    if batch not in log:
        return f"{log.folder}/{batch} is missing"
    entry = log.entries.get(batch)
    return f"{log.folder}/{batch} cannot be read: {entry.reason}" if isinstance(entry, Unreadable) else None


def list_possible_targets(checkpoint: Checkpoint, replayed: Replayed) -> Ranges:
    """The batches that can be gone back to; of state files only the names are looked at."""
    stores = _Stores(checkpoint)
    there = (i for i in checkpoint.commits.ids if name_missing_part(checkpoint, i, replayed) is None)
    return ranges_of(batch for batch in there if stores.have(batch))


class _Stores:
    """The state of a checkpoint, asked for the version of any batch."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._commits = checkpoint.commits
        self._context = context_of(checkpoint.offsets, checkpoint.commits)
        stores = find_store_partitions(checkpoint.listing, self._context.provider)
        self._places = [store for store in stores if store.names.all]
        self._lost = any(
            {*range(store.expected_partitions or 0)} - {partition.partition for partition in store.partitions}
            for operator in (checkpoint.state.operators if checkpoint.state else ())
            for store in operator.stores
        )
        self._in_format_2 = any(
            unique_id is not None for p in self._places[:1] for _, unique_id in (*p.names.logs, *p.names.snapshots)
        )

    def have(self, batch: int) -> bool:
        """Tell whether version ``batch + 1`` of every store can be loaded."""
        if self._lost:
            return False
        commit = self._commits.readable(batch)
        ids = commit.state_unique_ids if commit and commit.state_unique_ids else {}
        if self._in_format_2 and not ids:
            return False
        context = replace(self._context, needed_version=batch + 1, unique_ids=ids)
        return all(self._has(partition, context) for partition in self._places)

    def _has(self, partition: StorePartition, context: Context) -> bool:
        count = context.shuffle_partitions
        if count is not None and partition.partition >= count:
            return True  # nothing loads it
        target = context.target(partition)
        if target is None:
            return False
        if target.unique_id is not None:
            this = (target.version, target.unique_id)
            return this in partition.names.logs or this in partition.names.snapshots
        return any(first <= target.version <= last for first, last in partition.names.versions)
