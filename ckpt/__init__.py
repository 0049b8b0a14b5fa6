"""ckpt: what is wrong with a Structured Streaming checkpoint, what Spark will do, and how to get out."""

from ckpt.inspection import inspect
from ckpt.reader import open_checkpoint

__version__ = "0.1.0"

__all__ = ["__version__", "inspect", "open_checkpoint"]
