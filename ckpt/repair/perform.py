"""Perform a plan, or take a repair back; what was promised is checked before ckpt says that it is done."""

from collections.abc import Mapping, Sequence

from ckpt.change.apply import Receipt, apply, undo
from ckpt.change.backup import Change
from ckpt.change.places import backup_at, backup_to
from ckpt.change.promise import broken_promise
from ckpt.inspection import inspect
from ckpt.reader import read_checkpoint
from ckpt.repair.plan import Plan, Strategy
from ckpt.repair.planner import plan_repair
from ckpt.storage import Storage, open_storage
from ckpt.storage.writer import Writer, open_writer
from ckpt.versions import Spark

COMMAND = "repair-async"


def repair_async(
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    strategy: Strategy = Strategy.AUTO,
    versions: Sequence[Spark] = (),
    apply: bool = False,
    backup: str | None = None,
    undo: str | None = None,
    accept_replay: bool = False,
    grace_s: float = 30.0,
) -> tuple[Plan, Receipt]:
    """All that ``ckpt repair-async`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Args:
        uri: A local path, or any URI that ``open_checkpoint`` opens.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        strategy: Which way out; ``auto`` takes the one that reads least again.
        versions: The Spark versions that the query may be started with; none named is all.
        apply: Perform the plan.
        backup: A folder that does not exist yet; by default ``<checkpoint>.ckpt-backup-<UTC time>``.
        undo: The folder that an earlier repair named: put back what it changed instead.
        accept_replay: Rows of finished batches may be read again.
        grace_s: How many seconds old the youngest file must be before anything is changed.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would lie inside the checkpoint.

    """
    given = storage_options or {}
    storage = open_storage(uri, given)
    if undo is not None:
        return undo_repair(storage, open_writer(uri, given), backup_at(undo, given), grace_s, versions)
    plan = plan_repair(storage, strategy, versions)
    if not (apply and plan.steps):
        return plan, Receipt()
    to = backup_to(backup, uri, given)
    return plan, repair(plan, storage, open_writer(uri, given), to, grace_s, accept_replay=accept_replay)


def repair(
    plan: Plan, storage: Storage, writer: Writer, backup: Writer, grace_s: float, *, accept_replay: bool = False
) -> Receipt:
    """Apply a plan that has steps.

    Args:
        plan: What ``plan_repair`` said of this storage.
        storage: Where the checkpoint lies, for reading.
        writer: The same place, for writing.
        backup: A folder that does not exist yet; it is created.
        grace_s: How many seconds old the youngest file of the checkpoint must be.
        accept_replay: Rows of finished batches may be read again.

    """
    if plan.must_accept_replay and not accept_replay:
        return Receipt(problem="rows of finished batches would be read again: check the plan, then add `accept_replay`")
    checkpoint = plan.inspection.checkpoint
    change = Change(COMMAND, checkpoint.query_id, checkpoint.listing, plan.steps)
    return apply(change, storage, writer, backup, grace_s, lambda: broken_promise(plan.after, storage))


def undo_repair(
    storage: Storage, writer: Writer, backup: Storage, grace_s: float, versions: Sequence[Spark] = ()
) -> tuple[Plan, Receipt]:
    """Put back what a repair changed: what was done, told as a plan, and what came of it.

    Args:
        storage: Where the checkpoint lies, for reading.
        writer: The same place, for writing.
        backup: The folder that the repair named.
        grace_s: How many seconds old the youngest file must be; those that the backup accounts for do not count.
        versions: The Spark versions that the forecasts are for; none named is all.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.

    """
    found = inspect(read_checkpoint(storage), versions)
    checkpoint = found.checkpoint
    receipt = undo(storage, writer, backup, checkpoint.query_id, checkpoint.listing, grace_s)
    if not receipt.undone:
        return Plan(found, needed=False), receipt
    after = inspect(read_checkpoint(storage), versions).forecasts
    return Plan(found, needed=False, steps=receipt.steps, after=after), receipt
