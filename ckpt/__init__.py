"""ckpt: what is wrong with a Structured Streaming checkpoint, what Spark will do, and how to get out.

Every public name is in ``__init__.pyi`` and is imported when it is first asked for, so that nothing is imported that
is not needed, and pyspark only by what asks Spark. ``docs/api.md`` lists all of them.
"""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path

from ckpt.model import InNotebook


@cache
def _modules() -> dict[str, tuple[str, str]]:
    """The module of each public name, and its name there."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [statement for statement in stub.body if isinstance(statement, ast.ImportFrom)]
    return {
        alias.asname or alias.name: (statement.module or "", alias.name)
        for statement in imports
        for alias in statement.names
    }


def _render_in_notebook(value: object) -> str | None:
    from ckpt.webpage.notebooks import make_part

    return make_part(value)


InNotebook.render = _render_in_notebook


def __dir__() -> list[str]:
    return sorted(_modules())


def __getattr__(name: str) -> object:
    if name == "__all__":
        return __dir__()
    if name not in _modules():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _modules()[name]
    return globals().setdefault(name, getattr(import_module(module), attribute))
