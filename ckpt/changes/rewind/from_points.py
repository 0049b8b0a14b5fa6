"""Going back further than the batches that Spark keeps: a checkpoint becomes a point that ``ckpt copy --keep`` made.

Only files that differ are written, and SST files stay. The offsets before the latest ones are removed first, because no
synchronous start begins without them, and the latest ones last (``files_after``): in between, Spark runs no mixture.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from ckpt.changes.relocate.plan import plan_relocation
from ckpt.changes.rewind.files_after import find_files_after
from ckpt.changes.rewind.plan import Again, Replayed, RewindPlan, check_steps, plan_rewind
from ckpt.changes.steps import FileContent, FileStep, plan_unread_removals, sidecar
from ckpt.checkpoint.checkpoint import COMMITS, FIRST_START, METADATA, OFFSETS, SKIPPED, SOURCES, STATE
from ckpt.checkpoint.points import list_points
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.state.folders import LOGS, SSTS
from ckpt.checkpoint.times import NotHere, read_time
from ckpt.errors import CkptError
from ckpt.inspection.inspection import inspect
from ckpt.storage import Listing, Root, Storage
from ckpt.storage.locations import spark_uri

_REMOVED = (OFFSETS, COMMITS, STATE, SOURCES, FIRST_START, SKIPPED, sidecar(METADATA))


def plan_from_points(storage: Storage, folder: Root, moment: datetime, replayed: Replayed) -> RewindPlan:
    """Plan as ``plan_rewind`` does, or a return to the newest point at or before a time. Raises CkptError."""
    try:
        plan = plan_rewind(storage, moment, replayed)
        if plan.refused is None:
            return plan
    except NotHere:
        pass
    inspection = inspect(read_checkpoint(storage, batches=0))
    checkpoint, (ms, spelled) = inspection.checkpoint, read_time(moment)
    latest, points = checkpoint.offsets.latest or 0, list_points(folder)[0].get(checkpoint.query_id or "", ())
    point = next((each for each in reversed(points) if each.time.timestamp() * 1000 <= ms), None)
    if point is None:
        oldest = f"the oldest is {points[0].name}" if points else "it has none of this query"
        raise CkptError(f"{folder.uri} has no point of query {checkpoint.query_id} at or before {spelled}: {oldest}")
    why = f"the checkpoint becomes {point.name}, the newest point at or before {spelled}"
    plan = RewindPlan(inspection=inspection, needed=True, to_batch=point.batch, replayed=replayed, why=why)
    plan, kept = replace(plan, point=point.name, folder=folder.uri), folder.below(point.name)
    made = read_checkpoint(kept, batches=0)
    planned = made.offsets.latest or 0
    contents = dict[str, bytes | FileContent | None].fromkeys(path for path, _ in made.listing.walk())
    if any(operator.schema_paths for operator in made.operators):
        moved = plan_relocation(kept, to=spark_uri(storage.uri))
        if moved.refused is not None:
            return plan.refusing(moved.refused)
        contents |= {step.path: step.after for step in moved.steps}
    same = replayed is Replayed.SAME and planned > point.batch
    gone = plan_unread_removals(made.listing, () if same else find_files_after(made, point.batch))
    for path in [step.path for step in gone] + [path for path in contents if "/." in f"/{path}" and not storage.local]:
        contents.pop(path, None)
    plan = replace(plan, steps=tuple(_list_steps(storage, checkpoint.listing, latest, kept, contents)))
    if not plan.steps:
        return replace(plan, needed=False, why=f"it matches {point.name}, the newest point at or before {spelled}")
    if planned > latest - 2:
        return plan.refusing(f"{point.name} is not older by two batches or more: copy the point to a new folder")
    again = Again(point.batch, latest, same, committed=True, stateful=bool(checkpoint.stateful))
    offsets = replace(checkpoint.offsets, entries={**checkpoint.offsets.entries, **made.offsets.entries})
    return check_steps(replace(plan, again=again), storage, replace(checkpoint, offsets=offsets), again)


def _list_steps(
    storage: Storage, listing: Listing, latest: int, kept: Storage, contents: Mapping[str, bytes | FileContent | None]
) -> Iterator[FileStep]:
    """Remove files that the point does not have, and write files that differ, with the bytes in ``contents`` if any."""
    first, last = f"{OFFSETS}/{latest - 1}", f"{OFFSETS}/{latest}"
    stay = {last, sidecar(last), *contents}
    others = (path for path, _ in listing.walk() if path.partition("/")[0] in _REMOVED)
    removed = [path for path in (first, *others) if path not in stay and not {SSTS, LOGS} & {*path.split("/")}]
    yield from {step.path: step for step in plan_unread_removals(listing, removed)}.values()
    for path in sorted(contents, key=lambda path: "/." in f"/{path}"):
        info, own = listing.info(path), contents[path]
        data = kept.read(path) if own is None else own
        if info is None or storage.read(path) != data:
            before = None if info is None else FileContent(info.size, None)
            after, holder = (FileContent.of(data), kept) if own is None else (own, None)
            yield FileStep(path, before, after, like=last, holder=holder)
    yield from plan_unread_removals(listing, {last}.difference(contents))
