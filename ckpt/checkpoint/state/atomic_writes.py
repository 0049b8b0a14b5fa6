"""State files in an object store, where a file is there only with all its bytes: which need no look at their ends.

What Spark writes there is complete, whenever it is killed. A file that is cut off was already cut off when somebody
copied it there. File times tell the two apart: Spark writes the log of batch B after the commit of B - 1 and before
that of B, while a copied tree is written folder by folder.
"""

from ckpt.checkpoint.checkpoint import COMMITS, OFFSETS
from ckpt.formats.statefiles import END_MARK
from ckpt.model import StateFile, StateFileKind
from ckpt.storage.base import Listing

_LOGS = (StateFileKind.DELTA, StateFileKind.CHANGELOG)


def written_there(listing: Listing, file: StateFile) -> bool:
    """Tell whether a log has the time of its own batch, and more bytes than an end alone.

    Times are in whole seconds in some stores: the time of the commit before has to be an earlier one.
    """
    if file.kind not in _LOGS or file.size <= len(END_MARK):
        return False
    batch = file.version - 1
    before = listing.info(f"{COMMITS}/{batch - 1}") or listing.info(f"{OFFSETS}/{batch}")
    times = [info and info.mtime_ms for info in (before, listing.info(file.path), listing.info(f"{COMMITS}/{batch}"))]
    match times:
        case [int(earlier), int(written), int(committed)]:
            return earlier < written <= committed
    return False
