"""Go back by as few batches as possible: the next batch runs again over its range, or is planned anew."""

from collections.abc import Iterator
from functools import partial
from itertools import islice

from ckpt.changes.draft import MOST_TRIES, Cost, Draft
from ckpt.changes.plan import NoWay
from ckpt.changes.rewind.plan import Replayed, plan_rewind
from ckpt.inspection.inspection import Inspection
from ckpt.storage import Storage


def _draft_rewind(replayed: Replayed, storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Rewind to the newest committed batch after which a start runs. Raises NoWay, StorageError."""
    checkpoint = inspection.checkpoint
    committed = (i for i in reversed(checkpoint.commits.ids) if i in checkpoint.offsets)
    reason = "there is no batch to go back to"
    for batch in islice(committed, MOST_TRIES):
        plan = plan_rewind(storage, batch, replayed, inspection)
        again = plan.again
        if not plan.steps or plan.refused is not None or again is None:
            reason = plan.refused or plan.why
            continue
        if again.same is (replayed is Replayed.SAME):
            cost = Cost.MAY_LOSE if again.loses else Cost.FINISHED_AGAIN if again.repeats else Cost.UNFINISHED_AGAIN
            yield Draft(
                f"back to batch {again.kept}: batch {again.kept + 1} "
                + ("runs again over its range" if again.same else "is planned anew"),
                cost,
                plan.steps,
                again.newest - again.kept,
                plan.replay or (),
                plan.warnings,
                plan.first,
            )
        return
    raise NoWay(reason)


draft_run_again = partial(_draft_rewind, Replayed.SAME)
draft_plan_again = partial(_draft_rewind, Replayed.NEW)
