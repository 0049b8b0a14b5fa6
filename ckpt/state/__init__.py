"""What ``state/`` holds, and whether the next start can load it: pure steps, see ``ckpt.state.steps``."""

from ckpt.state.survey import MOST_TAILS, MOST_TAILS_REMOTE, read_state
from ckpt.state.verify import NOTHING, Verdict, Verified

__all__ = [
    "MOST_TAILS",
    "MOST_TAILS_REMOTE",
    "NOTHING",
    "Verdict",
    "Verified",
    "read_state",
]
