"""What ``state/`` holds, and whether the next start can load it: pure steps, see ``ckpt.state.steps``."""

from ckpt.state.survey import MOST_TAILS, MOST_TAILS_REMOTE, read_state

__all__ = ["MOST_TAILS", "MOST_TAILS_REMOTE", "read_state"]
