"""Advice that was tried: a repair for which there is no plan is not advised."""

from collections.abc import Mapping

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.inspection.inspection import Inspection
from ckpt.model import Location
from ckpt.storage import open_storage

_READ_AGAIN = 256 << 20
"""Bytes of state up to which a repair is tried with every byte, where that was asked for; of more by a plain look."""


def leave_out_impossible(
    inspection: Inspection,
    checkpoint: Location,
    storage_options: Mapping[str, str] | None,
    *,
    names_only: bool = False,
) -> Inspection:
    """Replace advice to repair where no fix is possible; the checkpoint is read again for that, and not written.

    One that was given as a ``Checkpoint`` is not read again, unless every byte of it was read before.
    """
    state = inspection.checkpoint.state
    every_byte = state and state.every_byte
    advised = (rated.finding.advised for rated in inspection.troubles)
    if (isinstance(checkpoint, Checkpoint) and not every_byte) or not any(each and each.repairs for each in advised):
        return inspection
    from ckpt.changes.fixes.advised import leave_out_refused  # a sound checkpoint needs none of it

    storage = open_storage(inspection.checkpoint.uri, storage_options or {})
    storage.names_only = names_only
    if every_byte and every_byte.bytes <= _READ_AGAIN:
        from ckpt.state.verify.verify import look_at_every_byte

        look_at_every_byte(storage, storage_options or {})
    return leave_out_refused(inspection, storage)
