"""``ckpt prune``: removes files that no restart needs."""

from ckpt.prune.perform import prune
from ckpt.prune.plan import PrunePlan
from ckpt.prune.unneeded import Kind, Pruned

__all__ = ["Kind", "PrunePlan", "Pruned", "prune"]
