"""What ``ckpt prune`` removes, as a value: checked against what could be restarted and rewound before."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from ckpt.changes.plan import STOP_FIRST, ChangePlan
from ckpt.changes.prune.unneeded import Pruned, unneeded_files
from ckpt.changes.rewind.targets import Replayed, possible
from ckpt.changes.steps import Changed, Step, unread_removals
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.checkpoint.state.context import oldest_needed
from ckpt.checkpoint.state.load import is_serious
from ckpt.checkpoint.state.read_steps import run
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.model import Provider
from ckpt.restart.forecast import Forecast
from ckpt.settings import PROVIDER_CLASS
from ckpt.storage import Storage

_BACKUP = (
    "The backup takes the space that is freed, until it is deleted: on a full disk put it elsewhere with `backup`."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunePlan(ChangePlan):
    """Which files go, and from which version of state on everything stays."""

    command: ClassVar[str] = "prune"

    keep_batches: int | None = None  # how many of the newest batches can be gone back to afterwards, at least
    oldest_version: int | None = None  # of state, that stays loadable; None: without state, or not known
    pruned: tuple[Pruned, ...] = ()


def plan_prune(
    storage: Storage, keep_batches: int | None = None, verify: Callable[[], str | None] = lambda: None
) -> PrunePlan:
    """What ``ckpt prune`` would do; nothing is written.

    Args:
        storage: The checkpoint; its complete logs are read, and of state the zips, and the beginnings of changelogs
            of state store checkpoint format 2.
        keep_batches: Keep the state of so many of the newest batches, if the logs do not show that it is needed for
            more. By default for as many as the logs hold.
        verify: Looks at every byte of state, and says why nothing may go: Spark may fall back to what would be gone.

    Raises:
        NotACheckpoint, NotFound, StorageError: It cannot be read.

    """
    found = inspect(read_checkpoint(storage, batches=0))
    checkpoint = found.checkpoint
    oldest = _oldest(checkpoint, keep_batches)
    plan = PrunePlan(inspection=found, needed=False, oldest_version=oldest)
    latest = checkpoint.offsets.latest
    if oldest is not None and latest is not None:
        plan = replace(plan, keep_batches=max(latest + 2 - oldest, 0))
    reason = _refusal(checkpoint)
    if reason is not None:
        return replace(plan, needed=True, refused=reason)
    pruned = () if oldest is None else run(unneeded_files(checkpoint, oldest), storage.read_many)
    steps = tuple(_steps(checkpoint, pruned))
    if not steps:
        return replace(plan, why=_why_not(checkpoint, oldest))
    after = inspect(read_checkpoint(Changed(storage, checkpoint.listing, steps), batches=0))
    changed = _difference(found, after)
    if changed is not None:
        return replace(plan, needed=True, refused=f"without these files {changed}, so ckpt leaves them")
    damaged = verify() if checkpoint.state else None
    if damaged is not None:
        return replace(plan, needed=True, refused=damaged)
    return replace(
        plan,
        needed=True,
        why=_why(plan),
        steps=steps,
        inspection_after=after,
        pruned=pruned,
        warnings=(STOP_FIRST, _BACKUP),
    )


def _oldest(checkpoint: Checkpoint, keep_batches: int | None) -> int | None:
    """The oldest version of state that a start needs, or that is to be kept; without state any will do."""
    if checkpoint.state is None:
        return 0
    oldest, latest = oldest_needed(checkpoint.offsets, checkpoint.commits), checkpoint.offsets.latest
    if oldest is None or latest is None or keep_batches is None:
        return oldest
    return max(min(oldest, latest + 2 - keep_batches), 0)


def _refusal(checkpoint: Checkpoint) -> str | None:
    state = checkpoint.state
    if checkpoint.moving:
        return "a query is writing to this checkpoint: stop it first"
    if state is None:
        return None
    if state.provider is Provider.UNKNOWN and PROVIDER_CLASS in _conf(checkpoint):
        return f"{_conf(checkpoint)[PROVIDER_CLASS]} is no state store that ckpt knows"
    damage = next((one for one in state.damages if is_serious(one.kind, checksummed=one.checksummed)), None)
    if damage is not None:
        return because_of(damage.path, damage.detail)
    return None


def because_of(path: str, damage: str) -> str:
    """Why nothing may go where a file of state is damaged."""
    return f"state is damaged ({path}: {damage}), and Spark may fall back to older files"


def _conf(checkpoint: Checkpoint) -> dict[str, str]:
    entry = checkpoint.offsets.readable(checkpoint.offsets.latest)
    return dict(entry.metadata.conf) if entry and entry.metadata else {}


def _steps(checkpoint: Checkpoint, pruned: Iterable[Pruned]) -> Iterable[Step]:
    return unread_removals(checkpoint.listing, dict.fromkeys(path for one in pruned for path in one.paths))


def _why(plan: PrunePlan) -> str:
    if plan.inspection.checkpoint.state is None:
        return "no start reads them"
    return f"the logs go back to batch {(plan.oldest_version or 1) - 1}, and no start needs state before that"


def _why_not(checkpoint: Checkpoint, oldest: int | None) -> str:
    if oldest is None:
        return "the logs do not show which state a start needs"
    return "every file may be needed" if checkpoint.state else "there is no state, and no temporary file"


def _difference(before: Inspection, after: Inspection) -> str | None:
    """What would be another than before; None if nothing is."""
    if [_essence(one) for one in before.forecasts] != [_essence(one) for one in after.forecasts]:
        return "the next start would do something else"
    if any(possible(before.checkpoint, way) != possible(after.checkpoint, way) for way in Replayed):
        return "the query could not be taken back to some batches"
    return None


def _essence(one: Forecast) -> tuple[object, ...]:
    return one.spark, one.progress, one.outcome, one.batch_id, one.reexecutes, one.error, one.never_run
