"""``ckpt scan``: every checkpoint below some roots, one line each."""

from ckpt.fleet.perform import Scan, ScannedRoot, scan
from ckpt.fleet.rows import ScannedCheckpoint, WorstFinding

__all__ = ["Scan", "ScannedCheckpoint", "ScannedRoot", "WorstFinding", "scan"]
