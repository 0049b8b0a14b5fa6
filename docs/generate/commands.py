"""``docs/commands.md``: every command as its ``--help`` describes it."""

from importlib import import_module
from typing import Any

from .app import load_group, script

HEAD = """# Commands

```sh
ckpt COMMAND --help    # the same in a terminal; once installed also: man ckpt-COMMAND
```

Written by `make docs` from the commands themselves; a test compares the two.
[What programs may rely on](contract.md) has the JSON of each.

"""
_ALIASES = ("ckpt state export", "ckpt state import")
Manual = Any
"""``Manual`` of the help of the installed commands."""


def read_manual() -> Manual:
    """Return the manual of ``ckpt``, with those of its commands in it."""
    help_module = import_module(f"{script().module.partition('.')[0]}.help")
    group = load_group()
    return help_module.Manual("ckpt", group, help_module.make_context(group, "ckpt"))


def commands_table() -> str:
    """Every command below the heading of its group, with the first sentence of its help; one of two names."""
    lines = ["| command | what it does |", "|---|---|"]
    for heading, manuals in read_manual().inner.items():
        lines.append(f"| **{heading.partition(' (')[0]}** | {heading.partition(' (')[2].rstrip(')')} |")
        commands = [command for manual in manuals for command in manual.below() if not command.inner]
        lines += (
            f"| [`{command.name}`](#{command.name.replace(' ', '-')}) | {command.summary} |"
            for command in commands
            if command.name not in _ALIASES
        )
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """``docs/commands.md`` as it should read."""
    _, *manuals = read_manual().below()
    return HEAD + commands_table() + "\n" + "\n".join(map(_section, manuals))


def _section(manual: Manual) -> str:
    level = "#" * (manual.name.count(" ") + 1)
    examples = ["\n".join(["```sh", *manual.examples, "```"])] if manual.examples else []
    parts = [
        f"{level} {manual.name}",
        f"```sh\n{manual.synopsis}\n```",
        manual.summary,
        *manual.description,
        *examples,
        *(_table(heading, rows) for heading, rows in manual.lists.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _table(heading: str, rows: list[tuple[str, str]]) -> str:
    lines = (f"| `{_cell(name)}` | {_cell(meaning)} |" for name, meaning in rows)
    return "\n".join([f"| {heading} | |", "|---|---|", *lines])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
