"""From the place where a checkpoint was written to the one where it is opened (``ckpt relocate``)."""

from ckpt.change.apply import Receipt
from ckpt.relocate.outside import Held, Holder
from ckpt.relocate.perform import relocate
from ckpt.relocate.plan import Plan, plan_relocation

__all__ = ["Held", "Holder", "Plan", "Receipt", "plan_relocation", "relocate"]
