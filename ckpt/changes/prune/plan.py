"""The plan of ``ckpt prune``: every restart and rewind that was possible stays possible."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from os import fspath
from typing import ClassVar, Unpack

from ckpt.changes.check_fix import Rule, check_fix
from ckpt.changes.plan import STOP_FIRST, ChangePlan
from ckpt.changes.prune.unneeded import Pruned, find_unneeded_files
from ckpt.changes.rewind.plan import Replayed, list_possible_targets
from ckpt.changes.run import ChangeResult, How, run_change
from ckpt.changes.steps import plan_unread_removals
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.state.context import oldest_needed
from ckpt.checkpoint.state.load import is_serious
from ckpt.checkpoint.state.read_steps import run
from ckpt.errors import UsageError
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import Location, Provider
from ckpt.settings import PROVIDER_CLASS
from ckpt.state.verify.verify import verify_state
from ckpt.storage import Storage

_BACKUP = (
    "The backup takes the space that is freed, until it is deleted: on a full disk put it elsewhere with `backup`."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunePlan(ChangePlan):
    """The files that go, and the oldest version from which all state stays."""

    command: ClassVar[str] = "prune"

    keep_batches: int | None = None  # how many of the newest batches can be gone back to afterwards, at least
    oldest_version: int | None = None  # of state, that stays loadable; None: without state, or not known
    pruned: tuple[Pruned, ...] = ()


def prune(
    checkpoint: Location,
    storage_options: Mapping[str, str] | None = None,
    *,
    keep_batches: int | None = None,
    **how: Unpack[How],
) -> ChangeResult[PrunePlan]:
    """All that ``ckpt prune`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Removes state of versions that no start needs, state and SST files that nothing refers to, and temporary files.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        keep_batches: Keep the state of so many of the newest batches, and never of fewer than the logs hold.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier one; see ``How``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.prune("sample_checkpoints/aggregation-hdfs-4.2")
    >>> plan.needed, plan.why, plan.oldest_version
    (False, 'every file may be needed', 1)

    """
    uri = fspath(checkpoint)
    if keep_batches is not None and keep_batches < 1:
        raise UsageError("`keep_batches` has to be 1 or more")
    plan = partial(plan_prune, keep_batches=keep_batches, verify=partial(_find_damage, uri, storage_options))
    return run_change(PrunePlan, plan, uri, storage_options, **how)


def _find_damage(uri: str, storage_options: Mapping[str, str] | None) -> str | None:
    """Why nothing may go; every byte of state is read. Raises CkptError, also without the extra ``native``."""
    damages = verify_state(uri, storage_options).damages
    return _explain_refusal(damages[0].path, damages[0].detail) if damages else None


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
    pruned = () if oldest is None else run(find_unneeded_files(checkpoint, oldest), storage.read_many)
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
        why = f"the logs go back to batch {(oldest or 1) - 1}, and no start needs state before that"
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
    log = checkpoint.offsets.readable(checkpoint.offsets.latest)
    provider = log.metadata.conf.get(PROVIDER_CLASS) if log and log.metadata else None
    if state.provider is Provider.UNKNOWN and provider is not None:
        return f"{provider} is no state store that ckpt knows"
    for damage in state.damages:
        if is_serious(damage.kind, checksummed=damage.checksummed):
            return _explain_refusal(damage.path, damage.detail)
    return None


def _explain_refusal(path: str, damage: str) -> str:
    return f"state is damaged ({path}: {damage}), and Spark may fall back to older files"


def _refuse_difference(before: Inspection, after: Inspection) -> str | None:
    """Name what a start or a rewind would do otherwise than before; None if nothing."""
    changed = None
    parts = attrgetter("spark", "progress", "outcome", "batch_id", "reexecutes", "error", "never_run")
    old, new = before.checkpoint, after.checkpoint
    if [*map(parts, before.forecasts)] != [*map(parts, after.forecasts)]:
        changed = "the next start would do something else"
    elif any(list_possible_targets(old, way) != list_possible_targets(new, way) for way in Replayed):
        changed = "the query could not be taken back to some batches"
    return changed and f"without these files {changed}, so ckpt leaves them"


_SAME_STARTS = Rule(_refuse_difference)
"""Every start, and every rewind, does what it did before."""
