"""Perform a plan, or take a repair back; what was promised is checked before ckpt says that it is done."""

from dataclasses import replace

from ckpt.change.apply import Receipt, apply, undo
from ckpt.change.backup import Change
from ckpt.checkpoint import Checkpoint
from ckpt.errors import CkptError
from ckpt.inspection import inspect
from ckpt.model import QueryMetadata
from ckpt.reader import read_checkpoint
from ckpt.repair.plan import Plan
from ckpt.storage import Storage
from ckpt.storage.writer import Writer

COMMAND = "repair-async"


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
        return Receipt(
            problem="rows of finished batches would be read again: look at the plan, then add --accept-replay"
        )
    checkpoint = plan.inspection.checkpoint
    change = Change(COMMAND, query_id(checkpoint), checkpoint.listing, plan.steps)
    return apply(change, storage, writer, backup, grace_s, lambda: _broken_promise(plan, storage))


def undo_repair(storage: Storage, writer: Writer, backup: Storage, grace_s: float) -> tuple[Checkpoint, Receipt]:
    """Put back what a repair changed; the checkpoint as it was before that, and what came of it.

    Raises NotACheckpoint, NotFound or StorageError where the checkpoint cannot be read.
    """
    checkpoint = read_checkpoint(storage)
    return checkpoint, undo(storage, writer, backup, query_id(checkpoint), checkpoint.listing, grace_s)


def query_id(checkpoint: Checkpoint) -> str | None:
    """The id in ``metadata``, where it can be read."""
    return checkpoint.metadata.query_id if isinstance(checkpoint.metadata, QueryMetadata) else None


def _broken_promise(plan: Plan, storage: Storage) -> str | None:
    """What is not as the plan promised, or None."""
    versions = tuple(dict.fromkeys(f.spark for f in plan.after))
    try:
        now = inspect(read_checkpoint(storage), versions).forecasts
    except CkptError as error:
        return f"the result cannot be checked: {error}"
    promised = [replace(f, because=()) for f in plan.after]
    if [replace(f, because=()) for f in now] == promised:
        return None
    return "the checkpoint is not as the plan promised: a query or somebody else wrote to it meanwhile"
