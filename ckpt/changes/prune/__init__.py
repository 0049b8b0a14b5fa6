"""``ckpt prune``: removes files that no restart needs."""

from ckpt.changes.prune.plan import PrunePlan
from ckpt.changes.prune.prune import prune
from ckpt.changes.prune.unneeded import Kind, Pruned

__all__ = ["Kind", "PrunePlan", "Pruned", "prune"]
