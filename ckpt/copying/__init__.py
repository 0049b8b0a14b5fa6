"""A consistent copy of a checkpoint as of one of its committed batches, also while the query runs (``ckpt copy``)."""

from ckpt.copying.perform import CheckpointCopy, copy_checkpoint
from ckpt.copying.selection import Selection, select

__all__ = ["CheckpointCopy", "Selection", "copy_checkpoint", "select"]
