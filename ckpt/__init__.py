"""ckpt: what is wrong with a Structured Streaming checkpoint, what Spark will do, and how to get out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ckpt.inspection import inspect
from ckpt.reader import open_checkpoint
from ckpt.state.units import state_units
from ckpt.version import __version__

if TYPE_CHECKING:
    from ckpt.spark.api import read_changes, read_initial_state, read_state

__all__ = [
    "__version__",
    "inspect",
    "open_checkpoint",
    "read_changes",
    "read_initial_state",
    "read_state",
    "state_units",
]

_WITH_SPARK = ("read_changes", "read_initial_state", "read_state")


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Find what needs pyspark only when it is asked for."""
    if name in _WITH_SPARK:
        return getattr(import_module("ckpt.spark.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
