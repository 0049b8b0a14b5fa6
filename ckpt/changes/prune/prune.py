"""``ckpt prune`` as one call."""

from collections.abc import Mapping
from functools import partial
from os import fspath
from typing import Unpack

from ckpt.changes.prune.plan import PrunePlan, explain_refusal, plan_prune
from ckpt.changes.run import ChangeResult, How, run_change
from ckpt.errors import UsageError
from ckpt.model import Location
from ckpt.state.verify.verify import verify_state


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
    return explain_refusal(damages[0].path, damages[0].detail) if damages else None
