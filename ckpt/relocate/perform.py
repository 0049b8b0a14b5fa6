"""Perform a relocation, or take one back."""

from collections.abc import Mapping

from ckpt.change import apply as changing
from ckpt.change.apply import Receipt
from ckpt.change.backup import Change
from ckpt.change.places import backup_at, backup_to
from ckpt.change.promise import broken_promise
from ckpt.change.steps import Changed
from ckpt.inspection import inspect
from ckpt.reader import read_checkpoint
from ckpt.relocate.plan import Plan, plan_relocation
from ckpt.storage import Storage, open_storage
from ckpt.storage.writer import Writer, open_writer

COMMAND = "relocate"


def relocate(
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    to: str | None = None,
    apply: bool = False,
    backup: str | None = None,
    undo: str | None = None,
    grace_s: float = 30.0,
) -> tuple[Plan, Receipt]:
    """All that ``ckpt relocate`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Args:
        uri: Where the checkpoint lies now: a local path, or any URI that ``open_checkpoint`` opens.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        to: The URI under which Spark will open it; by default where it lies.
        apply: Perform the plan.
        backup: A folder that does not exist yet; by default ``<checkpoint>.ckpt-backup-<UTC time>``.
        undo: The folder that an earlier relocation named: put back what it changed instead.
        grace_s: How many seconds old the youngest file must be before anything is changed.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would lie inside the checkpoint.

    """
    given = storage_options or {}
    storage = open_storage(uri, given)
    if undo is not None:
        return _undo(storage, open_writer(uri, given), backup_at(undo, given), grace_s)
    plan = plan_relocation(storage, to)
    if not (apply and plan.steps):
        return plan, Receipt()
    return plan, _apply(plan, storage, open_writer(uri, given), backup_to(backup, uri, given), grace_s)


def _apply(plan: Plan, storage: Storage, writer: Writer, backup: Writer, grace_s: float) -> Receipt:
    checkpoint = plan.inspection.checkpoint
    change = Change(COMMAND, checkpoint.query_id, checkpoint.listing, plan.steps)
    promised = plan.after.forecasts if plan.after else ()

    def check() -> str | None:
        return broken_promise(promised, Changed(storage, storage.list_tree(), uri=plan.to))

    return changing.apply(change, storage, writer, backup, grace_s, check)


def _undo(storage: Storage, writer: Writer, backup: Storage, grace_s: float) -> tuple[Plan, Receipt]:
    found = inspect(read_checkpoint(storage))
    checkpoint = found.checkpoint
    receipt = changing.undo(storage, writer, backup, checkpoint.query_id, checkpoint.listing, grace_s)
    after = inspect(read_checkpoint(storage)) if receipt.undone else None
    return Plan(found, steps=receipt.steps, after=after), receipt
