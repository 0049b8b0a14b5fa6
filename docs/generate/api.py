"""``docs/api.md``, from the docstrings of what ``ckpt`` exports."""

import ast
import inspect
import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import ckpt

from .app import load_group

CALLS = {
    "Look": (
        "open_checkpoint",
        "inspect",
        "scan",
        "preflight",
        "describe_query",
        "explain",
        "state_verify",
        "sql",
        "connect",
        "run_sql",
    ),
    "State": (
        "state_units",
        "read_state",
        "read_state_arrow",
        "read_state_batches",
        "read_changes",
        "read_initial_state",
        "state_show",
        "state_count",
        "state_diff",
        "state_keys",
        "state_history",
        "export_state",
    ),
    "Repair": (
        "repair",
        "repair_async",
        "rewind",
        "skip",
        "offsets_show",
        "offsets_set",
        "offsets_export",
        "offsets_import",
        "offsets_move",
        "offsets_commit",
        "relocate",
        "prune",
    ),
    "New checkpoints": ("copy", "rewrite", "merge", "split", "import_state", "write_state"),
    "New queries": (
        "rehearse",
        "evolve",
        "handoff",
        "migrate_changelog",
        "migrate_provider",
        "migrate_real_time",
        "migrate_transform_with_state",
    ),
    "What everything is about": ("Checkpoint", "Inspection", "Spark"),
    "Errors": ("CkptError", "StorageError", "NotFound", "UsageError"),
}
"""The names of ``ckpt``, in the order of the page; those of ``ckpt.types`` follow by the alphabet."""
HEAD = """# ckpt in Python

Written by `make docs` from the docstrings of what `ckpt` exports; a test compares the two and runs the examples, at
the root of this repository. Every command is one of these calls: `import ckpt`. Errors are `CkptError`; damage in a
checkpoint is data. Messages name arguments in backquotes where the command line names options. Importing `ckpt`
imports neither pyspark nor pandas.

Where a call takes a `Location`, give it a path, a URI or a `Checkpoint`. Where it takes an enumeration, its value will
do: `"rocksdb"`, `"4.2"`. What calls return is in `ckpt.types`.
"""


def api_page() -> str:
    """``docs/api.md`` as it should read."""
    parts = [HEAD, calls_table()]
    for title, names in CALLS.items():
        parts.append(f"## {title}\n")
        parts += (_api_entry(name, getattr(ckpt, name)) for name in names)
    parts.append("## ckpt.types\n")
    parts += (_api_entry(name, getattr(ckpt.types, name)) for name in ckpt.types.__all__)
    return "\n".join(parts)


def calls_table() -> str:
    """Every call beside the command of its name."""
    commands = {name.replace(" ", "_").replace("-", "_"): name for name in _command_names(load_group(), ())}
    calls = [name for names in CALLS.values() for name in names if inspect.isfunction(getattr(ckpt, name))]
    shown = ((name, f"`ckpt {commands[name]}`" if name in commands else "") for name in calls)
    lines = ["| call | command |", "|---|---|"]
    lines += (f"| [`ckpt.{name}`](#{name}) | {command or 'in Python only'} |" for name, command in shown)
    return "\n".join(lines) + "\n"


def _command_names(group: Any, words: tuple[str, ...]) -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _command_names(command, (*words, name))
        else:
            yield " ".join((*words, name))


def _api_entry(name: str, found: Any) -> str:
    source = dedent(inspect.getsource(found))
    (node,) = ast.parse(source).body
    if isinstance(node, ast.ClassDef):
        base = "".join(f"({ast.unparse(one)})" for one in node.bases[:1])
        lines = source.splitlines()
        fields = [
            _show_field(field, lines[field.lineno - 1])
            for field in node.body
            if isinstance(field, ast.AnnAssign | ast.Assign)
        ]
        shown = "\n".join([f"class {name}{base}", *fields])
    else:
        assert isinstance(node, ast.FunctionDef)
        node.name, node.body, node.decorator_list = name, [ast.Pass()], []
        shown = ast.unparse(node).removesuffix(":\n    pass")
    return f"### {name}\n\n```python\n{shown}\n```\n\n{_docstring(inspect.getdoc(found) or '')}\n"


def _show_field(node: ast.AnnAssign | ast.Assign, line: str) -> str:
    """A field as it stands in the class; what ``Annotated`` says of it as a comment."""
    match node:
        case ast.AnnAssign(ast.Name(name), ast.Subscript(ast.Name("Annotated"), ast.Tuple([kind, ast.Constant(note)]))):
            default = f" = {ast.unparse(node.value)}" if node.value else ""
            return f"    {name}: {ast.unparse(kind)}{default}  # {note}"
    return line


_SECTION = re.compile(r"^(Args|Raises|Returns):\n((?:    .*\n?|\n)+)", re.M)


def _docstring(text: str) -> str:
    """A docstring as Markdown: its sections as lists, its examples as blocks."""
    text = _SECTION.sub(lambda found: f"**{found[1]}**\n\n{_listed(found[2])}\n", text.replace("``", "`"))
    return re.sub(r"^>>> (?:.+\n?)+", lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text, flags=re.M).rstrip()


def _listed(text: str) -> str:
    entries = re.sub(r"\n\s{4,}", " ", dedent(text).strip()).splitlines()
    return "\n".join(re.sub(r"^([\w, ]+): ", r"- `\1`: ", entry) for entry in entries) + "\n"
