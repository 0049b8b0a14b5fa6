"""``docs/commands.md`` and the table of README.md: every command as it describes itself for ``--help``."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import typer

from .app import load_group

HEAD = """# Commands

```sh
ckpt COMMAND --help    # the same in a terminal, as is: man ckpt-COMMAND
```

Written by `make docs` from the commands themselves; a test compares the two.
[What programs may rely on](contract.md) has the JSON of each.

"""
_EXTRAS = re.compile(r"  \[([^\]]*)\]$")
_EXITS = re.compile(r"\s*\bExit (?:status|codes?): ", re.I)


@dataclass(frozen=True)
class Manual:
    """What a command, or a group of commands, says of itself."""

    name: str
    command: Any
    context: typer.Context

    @cached_property
    def inner(self) -> dict[str, list["Manual"]]:
        """The commands of a group by the heading under which the help lists them, in its order."""
        inner: dict[str, list[Manual]] = {}
        for name, command in getattr(self.command, "commands", {}).items():
            if not command.hidden:
                context = _context(command, name, self.context)
                manual = Manual(f"{self.name} {name}", command, context)
                inner.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append(manual)
        return inner

    def below(self) -> Iterator["Manual"]:
        """Itself, and the manuals of all commands in it."""
        yield self
        for manuals in self.inner.values():
            for manual in manuals:
                yield from manual.below()

    @cached_property
    def _paragraphs(self) -> list[str]:
        text = "\n\n".join(filter(None, [self.command.help, self.command.epilog]))
        return [paragraph.strip("\b\n ") for paragraph in text.split("\n\n")]

    @property
    def summary(self) -> str:
        """The first sentence."""
        return _one_line(self._paragraphs[0])

    @property
    def description(self) -> list[str]:
        """The other paragraphs, but for examples and exit codes."""
        texts = (_one_line(_EXITS.split(one)[0]) for one in self._paragraphs[1:] if not _examples(one))
        return [text for text in texts if text]

    @property
    def examples(self) -> list[str]:
        """Command lines."""
        return [line for paragraph in self._paragraphs for line in _examples(paragraph)]

    @property
    def exits(self) -> list[tuple[str, str]]:
        """Each exit code and its meaning."""
        text = "".join(_one_line(_EXITS.split(one)[1]) for one in self._paragraphs if _EXITS.search(one))
        return [(code, meaning) for code, _, meaning in (one.partition(" ") for one in _exit_codes(text))]

    @property
    def synopsis(self) -> str:
        """The command line: arguments, options that have to be there, and whether there are others."""
        params = [param for param in self.command.params if param.required]
        required = [_spelling(param, self.context) for param in params if param.param_type_name == "option"]
        rest = "COMMAND ..." if self.inner else "[OPTIONS]"
        return " ".join([self.name, *(_argument(one) for one in self._arguments), *required, rest])

    @property
    def _arguments(self) -> list[Any]:
        return [param for param in self.command.params if param.param_type_name == "argument"]

    @property
    def lists(self) -> dict[str, list[tuple[str, str]]]:
        """Commands, arguments, options and exit codes by heading, as the help lists them: spelling and meaning."""
        lists = {heading: [(one.name, one.summary) for one in ones] for heading, ones in self.inner.items()}
        for param in [*self._arguments, *self._options]:
            lists.setdefault(_panel(param), []).append((_spelling(param, self.context), _meaning(param, self.context)))
        return lists | ({"Exit status": self.exits} if self.exits else {})

    @property
    def _options(self) -> list[Any]:
        params = self.command.get_params(self.context)
        return [param for param in params if param.param_type_name == "option" and not param.hidden]


def read_manual() -> Manual:
    """The manual of ``ckpt``, with those of its commands in it."""
    group = load_group()
    return Manual("ckpt", group, _context(group, "ckpt"))


def _context(command: Any, name: str, parent: typer.Context | None = None) -> typer.Context:
    return typer.Context(command, parent=parent, info_name=name, **command.context_settings)


def commands_table() -> str:
    """Every command with the first sentence of its help."""
    rows = [f"| `{manual.name}` | {manual.summary} |\n" for manual in read_manual().below() if not manual.inner]
    return "".join(["| command | what it does |\n", "|---|---|\n", *rows])


def commands_page() -> str:
    """``docs/commands.md`` as it should read."""
    _, *manuals = read_manual().below()
    return HEAD + "\n".join(map(_section, manuals))


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


def _panel(param: Any) -> str:
    return getattr(param, "rich_help_panel", None) or f"{param.param_type_name}s".capitalize()


def _argument(param: Any) -> str:
    name = param.metavar or param.name.upper()
    return name if param.required or name.startswith("[") else f"[{name}]"


def _spelling(param: Any, context: typer.Context) -> str:
    if param.param_type_name == "argument":
        return _argument(param).strip("[]")
    return re.sub(r"<(.*)>$", r"\1", param.get_help_record(context)[0])


def _meaning(param: Any, context: typer.Context) -> str:
    """The help of an option with its default."""
    text: str = param.get_help_record(context)[1]
    extras = _EXTRAS.search(text)
    if not extras:
        return text
    defaults = [one.partition(": ")[2] for one in extras[1].split("; ") if one.startswith("default: ")]
    return _EXTRAS.sub("", text) + "".join(f" Default: {default}." for default in defaults)


def _examples(paragraph: str) -> list[str]:
    """The command lines of a paragraph that has nothing else, except the word "Examples"."""
    lines = [line.strip().removeprefix("$ ") for line in paragraph.splitlines()]
    lines = lines[1:] if lines and re.fullmatch("Examples?:?", lines[0]) else lines
    return lines if lines and all(line.startswith("ckpt ") for line in lines) else []


def _exit_codes(text: str) -> list[str]:
    return re.split(r"[,;] (?=\d )", text.rstrip(".")) if text else []


def _one_line(text: str) -> str:
    return " ".join(text.split())
