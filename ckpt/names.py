"""Public names that are imported when they are first asked for: where a stub says they are."""

import ast
from importlib import import_module
from pathlib import Path


def read_stub(module_file: str) -> dict[str, tuple[str, str]]:
    """Read the stub beside a module: the module of each public name, and its name there."""
    stub = ast.parse(Path(module_file).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: (statement.module, alias.name)
        for statement in stub.body
        if isinstance(statement, ast.ImportFrom) and statement.module
        for alias in statement.names
    }


def import_name(module: str, name: str) -> object:
    """Import one name of a module."""
    return getattr(import_module(module), name)
