"""A consistent copy of a checkpoint as of one of its committed batches, also while the query runs (``ckpt copy``)."""

from ckpt.copies.copy.copy import CheckpointCopy, copy_checkpoint
from ckpt.copies.copy.selection import Selection, select

__all__ = ["CheckpointCopy", "Selection", "copy_checkpoint", "select"]
