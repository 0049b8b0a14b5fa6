"""``ckpt relocate`` as one call."""

from collections.abc import Mapping
from functools import partial
from os import fspath
from typing import Unpack

from ckpt.changes.relocate.plan import RelocationPlan, plan_relocation
from ckpt.changes.run import ChangeResult, How, run_change
from ckpt.model import Location


def relocate(
    checkpoint: Location,
    storage_options: Mapping[str, str] | None = None,
    *,
    to: str | None = None,
    **how: Unpack[How],
) -> ChangeResult[RelocationPlan]:
    """All that ``ckpt relocate`` does: the plan, and what came of it; without ``apply`` or ``undo`` only a plan.

    Args:
        checkpoint: Where it is now: a path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        storage_options: For the file system of the URI, and of the backup where that is remote.
        to: The URI under which Spark will open it; by default where it is.
        how: ``apply=True`` performs the plan, ``undo`` undoes an earlier relocation; see ``How``.

    Raises:
        NotACheckpoint, NotFound, StorageError: The checkpoint cannot be read.
        UsageError: A URI or option is wrong, or the backup would be inside the checkpoint.

    >>> plan, receipt = ckpt.relocate("sample_checkpoints/tws-rocksdb-4.2", to="s3a://bucket/moved")
    >>> plan.needed, plan.to, receipt.applied
    (True, 's3a://bucket/moved', False)

    """
    uri = fspath(checkpoint)
    return run_change(RelocationPlan, partial(plan_relocation, to=to), uri, storage_options, **how)
