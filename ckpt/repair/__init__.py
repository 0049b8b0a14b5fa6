"""Out of the gaps that asynchronous progress tracking leaves: planned, backed up, undoable (``ckpt repair-async``)."""

from ckpt.change.apply import Receipt
from ckpt.repair.perform import repair, repair_async, undo_repair
from ckpt.repair.plan import Plan, Replay, Strategy
from ckpt.repair.planner import plan_repair

__all__ = ["Plan", "Receipt", "Replay", "Strategy", "plan_repair", "repair", "repair_async", "undo_repair"]
