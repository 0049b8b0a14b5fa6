"""What is wrong besides what a forecast already says: one function per finding, grouped by what it looks at.

Whatever stops or spoils a start is found by the forecast (``ckpt.restart``) and not looked for again here.
"""

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.inspection.checks import files, logs, sources, state
from ckpt.restart.findings import Finding

_CHECKS = (*logs.CHECKS, *sources.CHECKS, *state.CHECKS, *files.CHECKS)


def check(checkpoint: Checkpoint) -> list[Finding]:
    """Everything that the checks find, in the order of the checks."""
    return [found for one in _CHECKS for found in one(checkpoint)]
