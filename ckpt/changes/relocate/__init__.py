"""From the place where a checkpoint was written to the one where it is opened (``ckpt relocate``)."""

from ckpt.changes.relocate.outside import Holder, OutsidePaths
from ckpt.changes.relocate.plan import RelocationPlan, plan_relocation
from ckpt.changes.relocate.relocate import relocate

__all__ = ["Holder", "OutsidePaths", "RelocationPlan", "plan_relocation", "relocate"]
