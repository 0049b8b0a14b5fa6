"""Findings that no forecast has: one function for each, grouped by what it looks at.

Whatever stops or spoils a start is found by the forecast (``ckpt.restart``) and not looked for again here.
"""

from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.inspection.checks import files, logs, state
from ckpt.restart.findings import Finding

_CHECKS = (*logs.CHECKS, *state.CHECKS, *files.CHECKS)


def check(checkpoint: Checkpoint) -> list[Finding]:
    """Run every check, and return the findings in the order of the checks."""
    return [finding for find in _CHECKS for finding in find(checkpoint)]
