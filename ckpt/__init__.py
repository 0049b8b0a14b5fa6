"""ckpt: what is wrong with a Structured Streaming checkpoint, what Spark will do, and how to get out.

Every public name is in ``__init__.pyi`` and is imported when it is first asked for, so that nothing is imported that
is not needed, and pyspark only by what asks Spark. What calls return is in ``ckpt.types``. ``docs/api.md`` lists all.
"""

from functools import cache
from importlib import import_module

from ckpt.names import import_name, read_stub
from ckpt.values import Renderers, Value
from ckpt.versions import __version__ as __version__

_RENAMED = {
    "ask_sources": "inspect(..., live=...)",
    "copy_checkpoint": "copy",
    "count_state": "state_count",
    "diff_state": "state_diff",
    "document_of": "offsets_export(...).document",
    "explain_error": "explain",
    "export_offsets": "offsets_export",
    "hand_off": "handoff",
    "import_offsets": "offsets_import",
    "measure_state": "state_keys",
    "migrate_to_transform_with_state": "migrate_transform_with_state",
    "move_provider": "migrate_provider",
    "plan_export": "export_state(..., action='plan')",
    "prune_checkpoint": "prune",
    "read_query": "types.QueryDescription.read",
    "read_sink": "inspect(..., sink=...)",
    "relocate_checkpoint": "relocate",
    "repair_checkpoint": "repair",
    "rewrite_checkpoint": "rewrite",
    "set_offsets": "offsets_set",
    "show_offsets": "offsets_show",
    "show_state": "state_show",
    "snippet": "handoff(...).snippet",
    "switch_changelog": "migrate_changelog",
    "verify_changelog": "migrate_changelog(..., verify=True)",
}
"""Names before 0.1.0, and what replaced them."""


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
    if name == "__all__":
        return __dir__()
    if name == "types":
        return import_module("ckpt.types")
    if name not in _names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_point_to(name)}")
    return globals().setdefault(name, import_name(*_names()[name]))


def _point_to(name: str) -> str:
    """Where a name is that is not here, as the end of an error."""
    if name in _RENAMED:
        return f": it is ckpt.{_RENAMED[name]}"
    return f": it is ckpt.types.{name}" if name in dir(import_module("ckpt.types")) else ""
