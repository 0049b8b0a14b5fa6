"""Diagnoses: everything that can be said about a checkpoint is declared here once, and nowhere else.

Codes, names, severities, exit status, JSON and ``docs/findings.md`` all derive from these declarations. A code is never
reused. In ``meaning`` and ``remedy``, ``{checkpoint}`` is the path that was inspected, ``{path}`` the place of the
finding and ``{batch}`` the batch that this place belongs to.
"""

from ckpt.restart.diagnoses import logs, modes, others, sinks, sources, starting, state
from ckpt.restart.findings import Diagnosis


def all_diagnoses() -> tuple[Diagnosis, ...]:
    """Every diagnosis, in the order of its code."""
    blocks = (logs, modes, state, others, sinks, sources, starting)
    declared = (value for block in blocks for value in vars(block).values() if isinstance(value, Diagnosis))
    return tuple(sorted(declared, key=lambda diagnosis: diagnosis.code))
