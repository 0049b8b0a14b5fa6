"""Go back by as few batches as possible, or let a stateless query read again what may be missing, in a new batch.

After going back, the next batch runs again over its range, or gets a new one. To read again under batch ids that no
sink has seen, all batches after the newest finished one get its offsets, so they are empty, and all that comes after it
is read by a batch that is new. Nothing is lost in any sink, as it would be in one that remembers batch ids if the batch
number went back (measured on 3.5.9 to 4.3.0 with a file sink, on 4.2.0 with Delta).
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice

from ckpt.changes.book import BOOK
from ckpt.changes.check_fix import MOST_TRIES, Cost, Draft
from ckpt.changes.plan import NoWay, Replay, name_lost_part
from ckpt.changes.rewind.plan import Replayed, list_possible_targets, plan_rewind, show_batch
from ckpt.changes.steps import plan_writing
from ckpt.checkpoint.checkpoint import OFFSETS, Checkpoint
from ckpt.checkpoint.history import find_uncomputed
from ckpt.checkpoint.sources.registry import source_ranges
from ckpt.checkpoint.state.ranges import contains
from ckpt.inspection.inspection import Inspection
from ckpt.model import Unreadable
from ckpt.restart.sinks import AnySink, Ids, list_sinks
from ckpt.storage import Storage
from ckpt.texts import span

_MOST = 1_000  # batches that are emptied, a file each


def _draft_rewind(replayed: Replayed, storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Rewind to the newest committed batch after which a start runs. Raises NoWay, StorageError."""
    checkpoint = inspection.checkpoint
    committed = [i for i in reversed(checkpoint.commits.ids) if i in checkpoint.offsets]
    uncomputed = find_uncomputed(checkpoint)
    if uncomputed is not None and uncomputed.first == 0:
        committed = [-1] if replayed is Replayed.SAME else []
    elif uncomputed is not None:
        committed = [batch for batch in committed if batch < uncomputed.first]
    if inspection.deep and not (uncomputed and uncomputed.first == 0):
        possible = list_possible_targets(checkpoint, replayed)
        committed = [batch for batch in committed if contains(possible, batch)]
    reason = "there is no batch to go back to"
    for batch in islice(committed, MOST_TRIES):
        plan = plan_rewind(storage, batch, replayed, inspection)
        again = plan.again
        if not plan.steps or plan.refused is not None or again is None:
            reason = str(plan.refused or plan.why)
            continue
        if again.same is (replayed is Replayed.SAME):
            cost = Cost.MAY_LOSE if again.loses else Cost.FINISHED_AGAIN if again.repeats else Cost.UNFINISHED_AGAIN
            yield Draft(
                f"back to {f'batch {again.kept}' if again.kept >= 0 else 'the beginning'}: batch {again.kept + 1} "
                + ("runs again over its old offsets" if again.same else "gets new offsets"),
                cost,
                plan.steps,
                again.newest - again.kept,
                plan.replay or (),
                plan.warnings,
                plan.first,
                any_sink=plan.any_sink,
            )
        return
    raise NoWay(reason)


draft_run_again = partial(_draft_rewind, Replayed.SAME)
draft_plan_again = partial(_draft_rewind, Replayed.NEW)


def draft_read_again(storage: Storage, inspection: Inspection) -> Iterator[Draft]:
    """Empty the batches after the newest finished one whose offsets can be read. Raises NoWay, StorageError."""
    checkpoint = inspection.checkpoint
    if checkpoint.stateful:
        return
    offsets, commits = checkpoint.offsets, checkpoint.commits
    top = max((*offsets.ids[-1:], *commits.ids[-1:]), default=-1)
    finished = [i for i in reversed(offsets.ids) if commits.ids and i <= commits.ids[-1] and top - _MOST <= i < top]
    origins = [i for i in finished if not isinstance(offsets.entries.get(i), Unreadable)]
    if not origins:
        raise NoWay("none of the newest finished batches has readable offsets")
    if all(reasons := [name_lost_part(checkpoint, i) for i in origins]):
        raise NoWay(str(reasons[0]))
    origins = [i for i, reason in zip(origins, reasons, strict=True) if reason is None]
    yield from (_draft_from(origin, top, checkpoint, storage) for origin in origins)


def _draft_from(origin: int, top: int, checkpoint: Checkpoint, storage: Storage) -> Draft:
    """Give all batches after ``origin``, up to ``top``, its offsets. Raises StorageError."""
    offsets, source = checkpoint.offsets, f"{OFFSETS}/{origin}"
    data = storage.read(source)
    first, new = origin + 1, top + 1  # the batches that become empty, and the one that reads their rows
    steps = [
        step
        for batch in range(first, new)
        for step in plan_writing(storage, checkpoint.listing, f"{OFFSETS}/{batch}", data, source)
    ]
    is_finished = top > first or first in checkpoint.commits  # a batch is planned when the one before is finished
    emptied = span("batch", first, top)
    text = BOOK.text("read_again", emptied=emptied)
    ranges = source_ranges(offsets.readable(origin), offsets.readable(top))
    return Draft(
        f"{emptied} {'becomes' if first == top else 'become'} empty, and the rows after batch {origin} are read again "
        f"in batch {new}",
        Cost.FINISHED_AGAIN if is_finished else Cost.UNFINISHED_AGAIN,
        tuple(steps),
        new - first,
        (Replay(new, ranges, finished=is_finished),),
        any_sink=AnySink(text, Ids.NEW, kinds=show_batch(checkpoint, top, list_sinks(Ids.NEW))),
    )
