"""What ``state/`` holds, and whether the version that the next start needs can be loaded; pure, see ``ckpt.state.steps``."""

from ckpt.state.survey import read_state

__all__ = ["read_state"]
