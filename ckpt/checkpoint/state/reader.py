"""Reading ``state/``: what is there, which version the next start needs, and whether it can be loaded.

``read_state`` is a step (``read_steps``): it reads nothing itself. Whatever the size of the state, it makes a
handful of rounds of requests: metadata, schemas and tails at once, and more only where something looks wrong.
"""

from ckpt.checkpoint.checkpoint import Log
from ckpt.checkpoint.state.collected import CollectedState
from ckpt.checkpoint.state.context import context_of
from ckpt.checkpoint.state.descriptions import describe
from ckpt.checkpoint.state.file_ends import NOTHING, Verified
from ckpt.checkpoint.state.folders import STATE, find_operators
from ckpt.checkpoint.state.growth import read_oldest_zips
from ckpt.checkpoint.state.inventory import assemble
from ckpt.checkpoint.state.load import load_stores
from ckpt.checkpoint.state.read_steps import Step, run_together
from ckpt.formats.statefiles import LZ4
from ckpt.model import CommitLog, OffsetLog, StateInventory
from ckpt.storage.base import Listing

MOST_TAILS = 20_000
"""How many file ends are read at most: well beyond what a query of a thousand partitions needs."""

MOST_TAILS_REMOTE = 2_400
"""The same for storage where each read costs a round trip: 200 partitions, each a snapshot and eleven logs."""

_TAILS_FOR_EACH_ZIP = 20
"""The oldest snapshots only tell by how much state grows: of more than 1,000 partitions, or 120, none is read."""


def read_state(
    listing: Listing,
    offsets: Log[OffsetLog],
    commits: Log[CommitLog],
    uri: str,
    most_tails: int = MOST_TAILS,
    fully_read: Verified = NOTHING,
    *,
    whole_files: bool = False,
) -> Step[StateInventory | None]:
    """Take stock of ``state/``; None if the checkpoint has none and no commit mentions any.

    Of ``offsets`` the latest entry is used, of ``commits`` the one before the version that the next start loads;
    ``uri`` is the checkpoint's current location. At most ``most_tails`` files of the version are read besides their
    names and sizes, the newest of each partition first; the rest is counted as ``unverified``. ``seen`` is what is
    known of files of which every byte was read. ``whole_files`` says that the storage has no files in part
    (``ckpt.checkpoint.state.atomic_writes``).
    """
    context = context_of(offsets, commits)
    if not listing.has_folder(STATE) and not context.unique_ids:
        return None
    operators = find_operators(listing, context.provider)
    targets = {}
    for operator in operators:
        for stores in operator.stores.values():
            for store in stores.values():
                target = context.target(store)
                if target is not None:
                    targets[store] = target
    described, loads, oldest = yield from run_together(
        describe(listing, operators),
        load_stores(listing, targets, context.codec or LZ4, most_tails, fully_read, whole_files=whole_files),
        read_oldest_zips(targets, most_tails // _TAILS_FOR_EACH_ZIP),
    )
    return assemble(CollectedState(listing, context, operators, described, loads, oldest, uri, fully_read))
