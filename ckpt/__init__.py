"""ckpt: what is wrong with a Structured Streaming checkpoint, what Spark will do, and how to get out.

Every public name is in ``__init__.pyi`` and is imported when it is first asked for, so that nothing is imported that
is not needed, and pyspark only by what asks Spark. What calls return is in ``ckpt.types``. ``docs/api.md`` lists all.
"""

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
    if name == "__all__":
        return __dir__()
    if name == "types":
        return import_module("ckpt.types")
    if name not in _names():
        elsewhere = f": it is ckpt.types.{name}" if name in dir(import_module("ckpt.types")) else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{elsewhere}")
    return globals().setdefault(name, import_name(*_names()[name]))
