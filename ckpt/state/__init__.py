"""What ``state/`` holds, and whether the next start can load it: pure steps, see ``ckpt.state.steps``."""

from ckpt.state.survey import read_state

__all__ = ["read_state"]
