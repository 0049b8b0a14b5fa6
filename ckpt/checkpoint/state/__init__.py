"""What ``state/`` holds, and whether the next start can load it: pure steps, see ``ckpt.checkpoint.state.read_steps``."""

from ckpt.checkpoint.state.file_ends import NOTHING, Verdict, Verified
from ckpt.checkpoint.state.reader import MOST_TAILS, MOST_TAILS_REMOTE, read_state

__all__ = [
    "MOST_TAILS",
    "MOST_TAILS_REMOTE",
    "NOTHING",
    "Verdict",
    "Verified",
    "read_state",
]
