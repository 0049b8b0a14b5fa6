"""From the place where a checkpoint was written to the one where it is opened (``ckpt relocate``)."""

from ckpt.relocate.outside import Holder, OutsidePaths
from ckpt.relocate.perform import relocate
from ckpt.relocate.plan import RelocationPlan, plan_relocation

__all__ = ["Holder", "OutsidePaths", "RelocationPlan", "plan_relocation", "relocate"]
