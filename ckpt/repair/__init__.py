"""Out of the gaps that asynchronous progress tracking leaves: planned, backed up, undoable (``ckpt repair-async``)."""

from ckpt.repair.perform import repair_async
from ckpt.repair.plan import RepairPlan, Strategy
from ckpt.repair.planner import plan_repair

__all__ = ["RepairPlan", "Strategy", "plan_repair", "repair_async"]
