"""Back beyond the batches that Spark keeps: a checkpoint becomes a point, which ``ckpt copy --keep`` has made of it.

Only files that differ are written. SST files that the point does not have stay, as after any rewind. First goes the
predecessor of the latest offsets, without which no synchronous start begins, and the latest offsets go last
(``files_after``): no moment in between is one in which Spark would run a mixture.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from ckpt.changes.plan import OF_EPOCHS
from ckpt.changes.relocate.plan import plan_relocation
from ckpt.changes.rewind.files_after import find_files_after
from ckpt.changes.rewind.plan import Again, Replayed, RewindPlan, check_steps, plan_rewind
from ckpt.changes.steps import FileContent, FileStep, plan_unread_removals, sidecar
from ckpt.checkpoint.checkpoint import COMMITS, FIRST_START, OFFSETS, SKIPPED, SOURCES, STATE, Checkpoint
from ckpt.checkpoint.points import list_points
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.state.folders import LOGS, SSTS
from ckpt.checkpoint.times import NotHere, read_time
from ckpt.errors import CkptError
from ckpt.formats.sidecars import shown_name
from ckpt.inspection.inspection import inspect
from ckpt.model import Kind
from ckpt.storage import Root, Storage
from ckpt.storage.base import PIECE
from ckpt.storage.locations import spark_uri

_REMOVED = (OFFSETS, COMMITS, STATE, SOURCES, FIRST_START, SKIPPED)


def plan_from_points(storage: Storage, folder: Root, moment: datetime, replayed: Replayed) -> RewindPlan:
    """Plan to go back to a time: as ``plan_rewind`` does, or to the newest point at or before it where that cannot.

    Raises as it does, and CkptError where there is no such point.
    """
    try:
        plan = plan_rewind(storage, moment, replayed)
    except NotHere:
        plan = None
    if plan is not None and plan.refused is None:
        return plan
    inspection = inspect(read_checkpoint(storage, batches=0))
    checkpoint, (ms, spelled) = inspection.checkpoint, read_time(moment)
    points = list_points(folder).points.get(checkpoint.query_id or "", ())
    point = next((each for each in reversed(points) if each.time.timestamp() * 1000 <= ms), None)
    if point is None:
        oldest = f"the oldest is {points[0].name}" if points else "it has none of this query"
        raise CkptError(f"{folder.uri} has no point of query {checkpoint.query_id} by {spelled}: {oldest}")
    why = f"the checkpoint becomes {point.name}, the newest point by {spelled}"
    plan = RewindPlan(inspection=inspection, needed=True, to_batch=point.batch, replayed=replayed, why=why)
    plan, latest = replace(plan, point=point.name, folder=folder.uri), checkpoint.offsets.latest
    place = folder.below(point.name)
    made, changed = read_checkpoint(place, batches=0), dict[str, bytes]()
    if checkpoint.kind is Kind.CONTINUOUS:
        return plan.refusing(OF_EPOCHS)
    if latest is None or made.offsets.latest is None or made.offsets.latest > latest - 2:
        return plan.refusing(
            f"{point.name} is not before the batches of this checkpoint: copy that point to a new folder"
        )
    if any(operator.schema_paths for operator in made.operators):
        moved = plan_relocation(place, to=spark_uri(storage.uri))
        if moved.refused is not None:
            return plan.refusing(moved.refused)
        changed = {step.path: step.after for step in moved.steps if isinstance(step.after, bytes)}
    same = replayed is Replayed.SAME and made.offsets.latest > point.batch
    steps = tuple(
        _list_steps(storage, checkpoint, place, made, changed, () if same else find_files_after(made, point.batch))
    )
    offsets = replace(checkpoint.offsets, entries={**checkpoint.offsets.entries, **made.offsets.entries})
    again = Again(point.batch, latest, same, committed=True, stateful=bool(checkpoint.stateful))
    plan = replace(plan, steps=steps, again=again)
    return check_steps(plan, storage, replace(checkpoint, offsets=offsets), again)


def _list_steps(
    storage: Storage,
    checkpoint: Checkpoint,
    place: Storage,
    made: Checkpoint,
    changed: Mapping[str, bytes],
    left_out: tuple[str, ...],
) -> Iterator[FileStep]:
    """Remove what the point does not have, write what it has; hidden checksum files are there only with their file."""
    listing, latest = checkpoint.listing, checkpoint.offsets.latest or 0
    gone = {step.path for step in plan_unread_removals(made.listing, left_out)}
    files = {path: info for path, info in made.listing.walk() if path not in gone}
    if not storage.local:
        files = {path: info for path, info in files.items() if not _is_sidecar(path)}
    like, removed, written = f"{OFFSETS}/{latest}", list[FileStep](), list[FileStep]()
    for path, own in listing.walk():
        parts = path.split("/")
        if path not in files and parts[0] in _REMOVED and not {SSTS, LOGS} & {*parts}:
            removed.append(FileStep(path, FileContent(own.size, None), None))
    for path, info in files.items():
        own = listing.info(path)
        data = changed.get(path)
        if (
            own is None
            or own.size != (info.size if data is None else len(data))
            or not _is_same(storage, place, path, data)
        ):
            before = None if own is None else FileContent(own.size, None)
            after = FileContent(info.size, None) if data is None else data
            written.append(FileStep(path, before, after, like=like, holder=place if data is None else None))
    first, last = ({path, sidecar(path)} for path in (f"{OFFSETS}/{latest - 1}", like))
    removed.sort(key=lambda step: (step.path not in first, step.path in last, not _is_sidecar(step.path)))
    ending = [step for step in removed if step.path in last]
    yield from removed[: len(removed) - len(ending)]
    yield from sorted(written, key=lambda step: _is_sidecar(step.path))
    yield from ending


def _is_sidecar(path: str) -> bool:
    name = path.rpartition("/")[2]
    return shown_name(name) != name


def _is_same(storage: Storage, place: Storage, path: str, data: bytes | None) -> bool:
    """Tell whether the checkpoint has a file as the point, of the same size, or with these bytes."""
    if data is not None:
        return storage.read(path) == data
    pieces = zip(storage.read_pieces(path, PIECE), place.read_pieces(path, PIECE), strict=False)
    return all(one == other for one, other in pieces)
