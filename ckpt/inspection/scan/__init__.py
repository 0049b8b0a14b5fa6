"""``ckpt scan``: every checkpoint below some roots, one line each."""

from ckpt.inspection.scan.rows import ScannedCheckpoint, WorstFinding
from ckpt.inspection.scan.scan import Scan, ScannedRoot, scan

__all__ = ["Scan", "ScannedCheckpoint", "ScannedRoot", "WorstFinding", "scan"]
