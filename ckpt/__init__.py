"""Says what is wrong with a Structured Streaming checkpoint, what Spark does at the next start, and how to fix it.

    >>> ckpt.inspect("sample_checkpoints/kafka-4.2").verdict
    'Restarts with new batch 6, if the query is stateless'

help(ckpt.inspect) explains a call, print(value) shows what it returned as a page, ckpt.types has the classes of these.

Look             inspect, open_checkpoint, scan, preflight, describe_query, explain, state_verify, sql, connect, run_sql
Read state       state_show, state_count, state_diff, state_keys, state_history, state_units, export_state
  without Spark  read_state_arrow, read_state_batches
  with Spark     read_state, read_changes, read_initial_state
Repair           repair, repair_async, rewind, skip, relocate, prune
  offsets        offsets_show, offsets_set, offsets_export, offsets_import, offsets_move, offsets_commit
New checkpoints  copy, rewrite, merge, split, import_state, write_state
New queries      rehearse, evolve, handoff, migrate_changelog, migrate_provider, migrate_real_time,
                 migrate_transform_with_state
Classes          Checkpoint, Inspection, Spark (the versions)
Errors           CkptError and, below it, StorageError, NotFound, UsageError

A call that changes a checkpoint returns a plan, and acts with apply=True; what it changed can be undone.
"""

# Every public name is in ``__init__.pyi`` and is imported when it is first asked for, so that nothing is imported that
# is not needed, and pyspark only by what asks Spark.

import sys
from functools import cache
from importlib import import_module

from ckpt.names import import_name, read_stub
from ckpt.values import Renderers, Value
from ckpt.versions import __version__ as __version__


@cache
def _names() -> dict[str, tuple[str, str]]:
    return read_stub(__file__)


@cache
def _load_renderers() -> Renderers | None:
    """Load who shows values at a prompt, as far as installed."""
    from importlib.metadata import entry_points

    (*points,) = entry_points(group="ckpt.renderers", name="prompt")
    return points[0].load() if points else None


Value.renderers = _load_renderers


def __dir__() -> list[str]:
    return sorted(_names().keys() - {"__version__"})


def __getattr__(name: str) -> object:
    if name == "__all__" and sys._getframe(1).f_globals.get("__name__") != "pydoc":
        return __dir__()  # without it, help(ckpt) is the text above, and not every class and call in full
    if name == "types":
        return import_module("ckpt.types")
    if name not in _names():
        elsewhere = f": it is ckpt.types.{name}" if name in dir(import_module("ckpt.types")) else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{elsewhere}")
    return globals().setdefault(name, import_name(*_names()[name]))
