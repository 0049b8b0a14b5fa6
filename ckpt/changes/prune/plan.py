"""``ckpt prune``: files that no restart needs go, and every restart and rewind that was possible stays possible.

Files to keep are found first, and doubtful ones are kept. Format 1: the oldest version needed is loaded from the newest
snapshot at or below it, so everything before that snapshot may go; Spark's own maintenance does the same
(``HDFSBackedStateStoreProvider.cleanup``, ``RocksDBFileManager.deleteOldVersions``). Format 2: each version that a
commit names is followed back through the lineage of its changelog to the snapshot where that begins.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter
from os import fspath
from typing import Annotated, ClassVar, Unpack

from ckpt.advice import words
from ckpt.changes.apply import ApplyOptions, ChangeResult, inspect_root, run_change
from ckpt.changes.check_fix import Rule, check_fix
from ckpt.changes.plan import STOP_FIRST, ChangePlan
from ckpt.changes.rewind.plan import Replayed, list_possible_targets
from ckpt.changes.steps import plan_unread_removals
from ckpt.checkpoint.checkpoint import METADATA, PARTS, Checkpoint
from ckpt.checkpoint.pipelines import parse_flow, sort_versions
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.state.chains import Context, chain_to, context_of, oldest_needed, read_lineages
from ckpt.checkpoint.state.file_ends import Verified, verify
from ckpt.checkpoint.state.folders import FileId, StorePartition, find_store_partitions
from ckpt.checkpoint.state.load import is_serious, judge_ssts
from ckpt.checkpoint.state.read_steps import Step, run
from ckpt.checkpoint.state.space import find_base, find_orphans, find_temporary_files, list_below
from ckpt.errors import UsageError
from ckpt.formats.names import parse_java_int
from ckpt.formats.sidecars import shown_name
from ckpt.formats.statefiles import CHECKSUM, LZ4
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import Location, Provider
from ckpt.settings import PROVIDER_CLASS
from ckpt.state.verify.verify import state_verify
from ckpt.storage import Listing, Root, Storage
from ckpt.versions import Progress, Spark

_BACKUP = words("The backup uses the freed space until you delete it: on a full disk, put it elsewhere: {--backup}.")
_BY_PATH = words(
    "A pipeline is recognized by its path only: if these folders are your own queries', each may be in use."
)


class PruneReason(StrEnum):
    """Why nothing needs a file."""

    OLD_VERSION = "old-version"  # state before any version that a restart can load
    KILLED_TASK = "killed-task"  # state that a task wrote and no commit names
    ORPHAN = "orphan"  # an SST file that no snapshot names
    TEMPORARY = "temporary"  # what an interrupted write left
    SUPERSEDED = "superseded"  # a version of a flow of a declarative pipeline that no run uses


@dataclass(frozen=True, slots=True)
class Pruned:
    """Files of one kind that may go."""

    kind: PruneReason
    paths: tuple[str, ...]  # without their hidden checksum files; in the order in which they may go


@dataclass(frozen=True, slots=True)
class _Kept:
    """The files that stay of one store in one partition."""

    base: int  # everything of this version, and of later ones, but for strays
    strays: tuple[str, ...] = ()  # names of files of no version that a commit names, without hidden checksum files


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunePlan(ChangePlan):
    """The files that go, and the oldest version from which all state stays."""

    command: ClassVar[str] = "prune"

    keep_batches: Annotated[
        int | None, "how many of the newest batches keep their state; null if unknown, and after an undo"
    ] = None
    wanted_batches: int | None = None  # ``keep_batches`` as named in the call
    superseded: bool = False  # as named in the call
    oldest_version: Annotated[int | None, "the oldest state version that stays loadable"] = None  # nor without state
    pruned: tuple[Pruned, ...] = ()


def prune(
    checkpoint: Location,
    *,
    storage_options: Mapping[str, str] | None = None,
    keep_batches: int | None = None,
    superseded: bool = False,
    **how: Unpack[ApplyOptions],
) -> ChangeResult[PrunePlan]:
    """Do what ``ckpt prune`` does; return the plan and its receipt. Without ``apply`` or ``undo`` it only plans.

    Removes state versions that no start needs, unreferenced state and SST files, and temporary files.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        keep_batches: Keep the state of this many of the newest batches; never fewer than are in the logs.
        superseded: ``checkpoint`` is the folder of a declarative pipeline's flow: remove the versions that no run uses
            completely.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier one; see ``ApplyOptions``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.prune("sample_checkpoints/aggregation-hdfs-4.2")
    >>> plan.needed, plan.why, plan.oldest_version
    (False, 'every file may be needed', 1)
    """
    uri = fspath(checkpoint)
    if keep_batches is not None and keep_batches < 1:
        raise UsageError.of("{--keep-batches} must be at least 1")

    if superseded and keep_batches is not None:
        raise UsageError.of("{--superseded} removes whole versions: leave out {--keep-batches}")

    def plan(storage: Root) -> PrunePlan:
        if superseded:
            return plan_superseded(storage)
        return replace(plan_prune(storage, keep_batches, find_damage), wanted_batches=keep_batches)

    def find_damage() -> str | None:  # reads every byte of state; raises CkptError, also without the extra ``native``
        damages = state_verify(uri, storage_options=storage_options).damages
        return _explain_refusal(damages[0].path, damages[0].detail) if damages else None

    return run_change(PrunePlan, plan, uri, storage_options, **how)


def plan_superseded(storage: Root) -> PrunePlan:
    """Plan to remove the versions of a flow of a declarative pipeline that a full refresh has superseded.

    Raises UsageError where this is not the folder of a flow, NotFound, StorageError.
    """
    parsed = parse_flow(storage.uri)
    if parsed is None or parsed[1] is not None:
        like = "STORAGE/_checkpoints/CATALOG/SCHEMA/TABLE/FLOW"
        raise UsageError.of("{--superseded} is for a flow's folder in a declarative pipeline, {like}", like=like)
    inspection = inspect_root(storage)
    listing = storage.list_tree()
    versions = sort_versions(listing.subfolders(""))
    plan = PrunePlan(inspection=inspection, needed=False, superseded=True, around=(storage.uri, listing))
    if len(versions) < 2:
        return replace(plan, why="the flow has one version, which runs use")
    live = versions[-1]
    if (reason := _doubt_live(inspection, versions, listing)) is not None:
        return replace(plan, needed=True).refusing(reason)
    paths = [path for name in versions[:-1] for path, _ in listing.walk(name) if _is_of_checkpoint(path)]
    paths.sort(key=lambda path: path.rpartition("/")[2].startswith("."))  # last: they are removed with what they are of
    steps = {step.path: step for step in plan_unread_removals(listing, paths)}
    if not steps:
        return replace(plan, why=f"runs use version {live}, and the others contain no checkpoint file")
    return replace(
        plan,
        needed=True,
        steps=tuple(steps.values()),
        why=f"runs use version {live}, and no other",
        inspection_after=inspection,
        pruned=(Pruned(PruneReason.SUPERSEDED, tuple(steps)),),
        warnings=(STOP_FIRST, _BY_PATH, _BACKUP),
    )


def _doubt_live(inspection: Inspection, versions: Sequence[str], listing: Listing) -> str | None:
    """Say why an earlier version of a flow may still be needed; None where runs surely continue in the last one."""
    live = versions[-1]
    if (tied := versions[-2]) and parse_java_int(tied) == parse_java_int(live):
        order = "the version that runs use depends on the order in which the storage lists them"
        return f"{tied} and {live} are the same number, and {order}"
    if live in listing.links:
        return f"version {live}, which runs use, is a symbolic link, and may point to files that would be removed"
    if inspection.checkpoint.commits.latest is None:
        return f"version {live}, which runs use, has not committed a batch yet"
    starts = [start for start in inspection.forecasts if start.spark.at_least(Spark.V4_1)]  # the first with pipelines
    if not any(start.outcome.runs for start in starts if start.progress is Progress.SYNC):
        return f"version {live}, which runs use, is not known to restart: repair it first, or go back to an earlier one"
    return None


def _is_of_checkpoint(path: str) -> bool:
    part = path.split("/")[1]
    return part in PARTS or (path.count("/") == 1 and part == f".{METADATA}.crc")


def plan_prune(
    storage: Storage, keep_batches: int | None = None, verify: Callable[[], str | None] = lambda: None
) -> PrunePlan:
    """Plan to prune a checkpoint, as ``prune`` does. Raises NotACheckpoint, NotFound, StorageError.

    Of state the zips are read, and the beginnings of changelogs of state store checkpoint format 2. ``verify`` looks at
    every byte of it, and says why nothing may go: Spark may fall back to what would be gone.
    """
    inspection = inspect(read_checkpoint(storage, batches=0))
    checkpoint = inspection.checkpoint
    oldest = _find_oldest_version(checkpoint, keep_batches)
    plan = PrunePlan(inspection=inspection, needed=False, oldest_version=oldest)
    latest = checkpoint.offsets.latest
    if oldest is not None and latest is not None:
        plan = replace(plan, keep_batches=max(latest + 2 - oldest, 0))
    reason = _refuse_checkpoint(checkpoint)
    if reason is not None:
        return replace(plan, needed=True, refused=reason)
    pruned = () if oldest is None else run(_find_unneeded_files(checkpoint, oldest), storage.read_many)
    paths = dict.fromkeys(path for files in pruned for path in files.paths)
    steps = tuple(plan_unread_removals(checkpoint.listing, paths))
    if not steps:
        why = "every file may be needed" if checkpoint.state else "there is no state, and no temporary file"
        return replace(plan, why="the logs do not show which state a start needs" if oldest is None else why)
    plan = check_fix(replace(plan, needed=True, steps=steps), storage, _SAME_STARTS, batches=0)
    if plan.refused is not None:
        return plan
    damaged = verify() if checkpoint.state else None
    if damaged is not None:
        return plan.refusing(damaged)
    why = "no start reads them"
    if checkpoint.state:
        why = f"the logs go back to batch {(oldest or 1) - 1}, and no start needs earlier state"
    return replace(plan, why=why, pruned=pruned, warnings=(STOP_FIRST, _BACKUP))


def _find_oldest_version(checkpoint: Checkpoint, keep_batches: int | None) -> int | None:
    """The oldest version of state that a start needs, or that is to be kept; without state any will do."""
    if checkpoint.state is None:
        return 0
    oldest, latest = oldest_needed(checkpoint.offsets, checkpoint.commits), checkpoint.offsets.latest
    if oldest is None or latest is None or keep_batches is None:
        return oldest
    return max(min(oldest, latest + 2 - keep_batches), 0)


def _refuse_checkpoint(checkpoint: Checkpoint) -> str | None:
    state = checkpoint.state
    if checkpoint.moving:
        return "a query is writing to this checkpoint: stop it first"
    if state is None:
        return None
    provider = checkpoint.conf.get(PROVIDER_CLASS)
    if state.provider is Provider.UNKNOWN and provider is not None:
        return f"ckpt does not know the state store {provider}"
    for damage in state.damages:
        if is_serious(damage.kind, checksummed=damage.checksummed):
            return _explain_refusal(damage.path, damage.detail)
    return None


def _explain_refusal(path: str, damage: str) -> str:
    return f"state is damaged ({path}: {damage}), and Spark may fall back to older files"


def _find_unneeded_files(checkpoint: Checkpoint, oldest: int) -> Step[tuple[Pruned, ...]]:
    """Find files that may go if ``oldest`` is the oldest version that a start needs; needs the complete commit log."""
    context = context_of(checkpoint.offsets, checkpoint.commits)
    places = find_store_partitions(checkpoint.listing, context.provider)
    kept = yield from _find_kept_files(checkpoint, context, places, oldest)
    staying = [
        partition.snapshot(file_id)
        for partition, keep in kept.items()
        for file_id, name in partition.names.snapshots.items()
        if file_id[0] >= keep.base and name not in keep.strays
    ]
    verified = yield from verify(staying, context.codec or LZ4)
    paths: dict[PruneReason, list[str]] = {reason: [] for reason in PruneReason}
    for partition, keep in kept.items():
        if _is_sound(checkpoint.listing, partition, keep.base, verified):
            old = list_below(partition, keep.base)
            orphans = find_orphans(checkpoint.listing, partition, {*old, *keep.strays}, verified.snapshots) or ()
            paths[PruneReason.OLD_VERSION] += (f"{partition.folder}/{name}" for name in old)
            paths[PruneReason.KILLED_TASK] += (f"{partition.folder}/{name}" for name in keep.strays)
            paths[PruneReason.ORPHAN] += (path for path in orphans if not path.endswith(".tmp"))
    paths[PruneReason.TEMPORARY] += find_temporary_files(checkpoint.listing)
    return tuple(Pruned(reason, tuple(files)) for reason, files in paths.items() if files)


def _find_kept_files(
    checkpoint: Checkpoint, context: Context, places: list[StorePartition], oldest: int
) -> Step[Mapping[StorePartition, _Kept]]:
    """Find the files that each store needs; a store that is left out is doubtful and stays as it is."""
    kept: dict[StorePartition, _Kept] = {}
    named = []
    for partition in places:
        base = None if context.unique_ids else find_base(partition.names, oldest)
        if base is not None:
            kept[partition] = _Kept(base)
        elif all(unique_id for _, unique_id in (*partition.names.logs, *partition.names.snapshots)):
            named.append(partition)
    kept |= yield from _keep_by_lineage(checkpoint, context, named, oldest)
    return kept


def _keep_by_lineage(
    checkpoint: Checkpoint, context: Context, places: list[StorePartition], oldest: int
) -> Step[dict[StorePartition, _Kept]]:
    """Format 2: the files of the chain to each version from ``oldest`` on that a commit names."""
    used: dict[StorePartition, set[FileId]] = {partition: set() for partition in places}
    named: dict[int, Mapping[int, tuple[tuple[str, ...], ...]]] = {}
    for batch in checkpoint.commits.ids:
        commit = checkpoint.commits.readable(batch)
        if batch + 1 < oldest:
            continue
        if commit is None or not commit.state_unique_ids:
            return {}
        named[batch + 1] = commit.state_unique_ids
        at = replace(context, needed_version=batch + 1, unique_ids=commit.state_unique_ids)
        targets = {partition: target for partition in used if (target := at.target(partition)) is not None}
        lineages = yield from read_lineages(targets, context.codec or LZ4)
        chains = {
            partition: chain_to(partition.names, target, lineages.get(partition))
            for partition, target in targets.items()
            if partition in lineages
            or (target.version, target.unique_id) in partition.names.snapshots  # else it is unknown
        }
        used = {
            partition: ids | {*chain.logs, *([chain.snapshot] if chain.snapshot else [])}
            for partition, ids in used.items()
            if (chain := chains.get(partition)) is not None and chain.complete
        }
    strays = ((partition, ids, _find_strays(partition, ids, named)) for partition, ids in used.items() if ids)
    return {partition: _Kept(min(ids)[0], tuple(sorted(names))) for partition, ids, names in strays}


def _find_strays(
    partition: StorePartition, used: set[FileId], named: Mapping[int, Mapping[int, tuple[tuple[str, ...], ...]]]
) -> set[str]:
    """Files of versions whose commit names others: a task that was killed, or ran twice, wrote them."""
    wanted: set[str] = set()
    for files in (partition.names.logs, partition.names.snapshots):
        for version, unique_id in files.keys() - used:
            partitions = named.get(version, {}).get(partition.operator, ())
            if partition.partition < len(partitions) and unique_id not in partitions[partition.partition]:
                wanted.add(files[version, unique_id])
    return {shown for name in partition.files if (shown := shown_name(name)).removesuffix(CHECKSUM) in wanted}


def _is_sound(listing: Listing, partition: StorePartition, base: int, verified: Verified) -> bool:
    """Tell whether the snapshots under later versions are sound; if not, Spark may want older ones."""
    for file_id, name in partition.names.snapshots.items():
        path = f"{partition.folder}/{name}"
        if file_id[0] == base and (path in verified.wrong or any(judge_ssts(listing, partition, name, verified))):
            return False
    return True


def _refuse_difference(before: Inspection, after: Inspection) -> str | None:
    """Name what a start or a rewind would do otherwise than before; None if nothing."""
    changed = None
    parts = attrgetter("spark", "progress", "outcome", "batch_id", "reexecutes", "error", "never_run")
    old, new = before.checkpoint, after.checkpoint
    if [*map(parts, before.forecasts)] != [*map(parts, after.forecasts)]:
        changed = "the next start would behave differently"
    elif any(list_possible_targets(old, way) != list_possible_targets(new, way) for way in Replayed):
        changed = "the query could not be rewound to some batches"
    return changed and f"without these files {changed}, so ckpt leaves them"


_SAME_STARTS = Rule(_refuse_difference)
"""Every start, and every rewind, does what it did before."""
