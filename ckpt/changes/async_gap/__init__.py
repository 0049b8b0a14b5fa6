"""Out of the gaps that asynchronous progress tracking leaves: planned, backed up, undoable (``ckpt repair-async``)."""

from ckpt.changes.async_gap.plan import RepairPlan, Strategy
from ckpt.changes.async_gap.planner import plan_repair
from ckpt.changes.async_gap.repair_async import repair_async

__all__ = ["RepairPlan", "Strategy", "plan_repair", "repair_async"]
