"""Out of the gaps that asynchronous progress tracking leaves: planned, backed up, undoable (``ckpt repair-async``)."""

from ckpt.repair.perform import repair, undo_repair
from ckpt.repair.plan import Plan, Replay, Strategy
from ckpt.repair.planner import plan_repair

__all__ = ["Plan", "Replay", "Strategy", "plan_repair", "repair", "undo_repair"]
