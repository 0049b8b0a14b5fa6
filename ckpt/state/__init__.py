"""What ``state/`` holds, and whether the next start can load it: pure steps, see ``ckpt.state.steps``."""

from ckpt.state.needed import Needed, NeededFile, needed_files
from ckpt.state.survey import MOST_TAILS, MOST_TAILS_REMOTE, read_state
from ckpt.state.verify import NOTHING, Verdict, Verified

__all__ = [
    "MOST_TAILS",
    "MOST_TAILS_REMOTE",
    "NOTHING",
    "Needed",
    "NeededFile",
    "Verdict",
    "Verified",
    "needed_files",
    "read_state",
]
