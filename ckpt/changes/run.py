"""Everything that a command which changes a checkpoint does around its planner: plan, apply, or undo."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, NamedTuple, TypedDict, Unpack

from ckpt.changes.apply import Receipt, apply, undo
from ckpt.changes.backup import backup_at, backup_to, must_keep
from ckpt.changes.plan import ChangePlan, Planned
from ckpt.changes.steps import Changed
from ckpt.checkpoint.reader import read_checkpoint
from ckpt.errors import CkptError
from ckpt.inspection.activity import must_be_seconds
from ckpt.inspection.inspection import inspect
from ckpt.restart.findings import Forecast
from ckpt.storage import Storage, open_storage
from ckpt.storage.local_writer import open_writer
from ckpt.storage.writer import Writer
from ckpt.values import show_html, show_text
from ckpt.versions import Spark


class ChangeResult(NamedTuple, Generic[Planned]):
    """The plan of a change, and what came of it: ``plan, receipt = ckpt.rewind(...)``."""

    plan: Planned
    receipt: Receipt

    def __str__(self) -> str:
        """Return the page that the command prints, in the words of the library."""
        return show_text(self)

    def _repr_html_(self) -> str | None:
        """Return the page as a part of a notebook; None if the extra ``html`` is not installed."""
        return show_html(self)


class How(TypedDict, total=False):
    """Options of a run; without ``apply`` or ``undo`` a change is only planned."""

    apply: bool  # perform it
    backup: str | None  # a folder that does not exist yet; by default ``<checkpoint>.ckpt-backup-<UTC time>``
    undo: str | None  # the backup folder of an earlier change: undo that change instead
    grace_s: float  # how many seconds old the youngest file must be before anything is changed; by default 30
    accept_skip: bool  # that rows are left out, or dropped by a sink that remembers batch ids
    accept_replay: bool  # that rows of finished batches are read again, or written again by a sink


def run_change(
    kind: type[Planned],
    planner: Callable[[Storage], Planned],
    uri: str,
    storage_options: Mapping[str, str] | None,
    versions: Sequence[Spark] = (),
    **how: Unpack[How],
) -> ChangeResult[Planned]:
    """The plan for a checkpoint, of the class ``kind``, and what came of it; an undo is described as a plan too.

    Raises NotACheckpoint, NotFound, StorageError, or UsageError where a URI or option is wrong, or the backup would be
    inside the checkpoint.
    """
    options, grace_s, back = storage_options or {}, how.get("grace_s", 30.0), how.get("undo")
    must_be_seconds(grace_s)
    kept_at = how.get("backup")
    if kept_at is not None:
        must_keep(kept_at, uri)
    storage = open_storage(uri, options)
    if back is not None:
        return _undo_change(kind, storage, open_writer(uri, options), backup_at(back, options), versions, grace_s)
    plan = planner(storage).if_possible()
    if not (how.get("apply") and plan.steps):
        return ChangeResult(plan, Receipt())
    unaccepted = _name_unaccepted_cost(plan, how)
    if unaccepted is not None:
        return ChangeResult(plan, Receipt(problem=unaccepted))
    backup = backup_to(kept_at, uri, options)
    return ChangeResult(plan, apply_plan(plan, storage, open_writer(uri, options), backup, grace_s))


def _name_unaccepted_cost(plan: ChangePlan, how: How) -> str | None:
    """Why a plan is not applied: what it costs, and nobody has accepted."""
    costs = {"accept_skip": plan.skips, "accept_replay": plan.repeats}
    missing = {name: cost for name, cost in costs.items() if cost is not None and not how.get(name)}
    if not missing:
        return None
    return f"{'; '.join(missing.values())}: check the plan, then add {' and '.join(f'`{name}`' for name in missing)}"


def apply_plan(plan: ChangePlan, storage: Storage, writer: Writer, backup: Writer, grace_s: float) -> Receipt:
    """Perform a plan that has steps; the forecasts that it promised are checked before ckpt says that it is done."""

    def check() -> str | None:
        elsewhere = plan.opened_as is not None
        opened = Changed(storage, storage.list_tree(), uri=plan.opened_as) if elsewhere else storage
        return _find_broken_promise(plan.after, opened)

    return apply(plan, storage, writer, backup, grace_s, check)


def _find_broken_promise(promised: Sequence[Forecast], storage: Storage) -> str | None:
    """Why a changed checkpoint is not as its plan promised, by what the next start does; None if it is."""
    versions = tuple(dict.fromkeys(f.spark for f in promised))
    try:
        now = inspect(read_checkpoint(storage), versions).forecasts
    except CkptError as error:
        return f"the result cannot be checked: {error}"
    if [replace(f, because=()) for f in now] == [replace(f, because=()) for f in promised]:
        return None
    return "the checkpoint is not what the plan promised: a query or something else wrote to it meanwhile"


def _undo_change(
    kind: type[Planned], storage: Storage, writer: Writer, backup: Storage, versions: Sequence[Spark], grace_s: float
) -> ChangeResult[Planned]:
    inspection = inspect(read_checkpoint(storage), versions)
    checkpoint = inspection.checkpoint
    receipt = undo(storage, writer, backup, checkpoint.query_id, checkpoint.listing, grace_s)
    after = inspect(read_checkpoint(storage), versions) if receipt.undone else None
    return ChangeResult(kind(inspection=inspection, needed=False, steps=receipt.steps, inspection_after=after), receipt)
