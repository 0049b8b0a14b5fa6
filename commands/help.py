"""The help of a command, from which ``--help``, ``docs/commands.md`` and the man pages are written.

Help text comes from the docstring of the command: a summary, paragraphs, "Examples:" and exit codes. Options are
under the heading of their panel, the usual ones first, one line each.
"""

import re
import textwrap
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from functools import cache, cached_property, wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from ckpt.advice import Option, words
from ckpt.errors import CkptError

from .plain_types import convert_plain_words
from .render.blocks import TYPED, TypedStorage

_HEADINGS = {
    "Which state": ("operator", "store", "side", "variable", "timers", "all_units"),
    "Change the checkpoint": ("apply", "undo", "accept_skip", "accept_replay", "backup", "grace"),
    "Also ask sources and sink": ("sink", "sources", "source_option"),
    "Engine": ("engine", "jobs", "master", "conf"),
    "Storage and output": ("storage_option", "to_storage_option", "output", "quiet", "help"),
}
"""Headings of options that several commands share, in help order; a command's own options come first."""
_ORDER = ("Arguments", "Options", *_HEADINGS)
_SHARED = [name for names in _HEADINGS.values() for name in names]
_EXTRAS = re.compile(r"  \[([^\]]*)\]$")
_EXITS = re.compile(r"\s*\bExit status: ")
_OF_CHANGES = "0 nothing to do, or done; 1 there is something to do, or another problem; 2 bad usage; 3 could not do it"
"""The exit codes of a command that changes a checkpoint, unless it says others."""
_WIDTH, _SPELLING_WIDTH = 80, 31


@dataclass(frozen=True)
class Manual:
    """Help of a command, or of a group of commands."""

    name: str
    command: Any
    context: typer.Context

    @cached_property
    def inner(self) -> dict[str, list["Manual"]]:
        """The commands of a group by the heading under which the help lists them, in its order."""
        inner: dict[str, list[Manual]] = {}
        for name, command in getattr(self.command, "commands", {}).items():
            if not command.hidden:
                context = make_context(command, name, self.context)
                manual = Manual(f"{self.name} {name}", command, context)
                inner.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append(manual)
        return inner

    def below(self) -> Iterator["Manual"]:
        """Yield itself, and the manuals of all commands in it."""
        yield self
        for manuals in self.inner.values():
            for manual in manuals:
                yield from manual.below()

    @cached_property
    def _paragraphs(self) -> list[str]:
        return [textwrap.dedent(paragraph) for paragraph in (self.command.help or "").split("\n\n")]

    @property
    def summary(self) -> str:
        """The first sentence."""
        return _one_line(self._paragraphs[0])

    @property
    def description(self) -> list[str]:
        """The other paragraphs, except examples and exit codes."""
        texts = (_one_line(_EXITS.split(text)[0]) for text in self._paragraphs[1:] if not _find_examples(text))
        return [text for text in texts if text]

    @property
    def examples(self) -> list[str]:
        """Command lines."""
        return [line for paragraph in self._paragraphs for line in _find_examples(paragraph)]

    @property
    def exits(self) -> list[tuple[str, str]]:
        """Each exit code and its meaning."""
        text = "".join(_one_line(_EXITS.split(text)[1]) for text in self._paragraphs if _EXITS.search(text))
        if not text and any(param.name == "apply" for param in self.command.params):
            text = _OF_CHANGES
        codes = re.split(r"[,;] (?=\d )", text.rstrip(".")) if text else []
        return [(code, meaning) for code, _, meaning in (text.partition(" ") for text in codes)]

    @property
    def synopsis(self) -> str:
        """The command line: arguments, options that have to be there, and whether there are others."""
        required = [param for param in self.command.params if param.required and param.param_type_name == "option"]
        rest = "COMMAND ..." if self.inner else "[OPTIONS]"
        arguments = (_spell_argument(param) for param in self._arguments)
        return " ".join([self.name, *arguments, *(_spell(param, self.context) for param in required), rest])

    @property
    def lists(self) -> dict[str, list[tuple[str, str]]]:
        """Commands, arguments, options and exit codes by heading, in the order of the help: spelling and meaning."""
        lists: dict[str, list[tuple[str, str]]] = {}
        options = [param for param in self.command.get_params(self.context) if param.param_type_name == "option"]
        options.sort(key=lambda param: _SHARED.index(param.name) if param.name in _SHARED else -1)
        for param in [*self._arguments, *(param for param in options if not param.hidden)]:
            heading = "Options" if self.inner else _find_heading(param)
            lists.setdefault(heading, []).append((_spell(param, self.context), _explain(param, self.context)))
        commands = {
            heading: [(inner.name, inner.summary) for inner in manuals] for heading, manuals in self.inner.items()
        }
        options_by_rank = {heading: lists[heading] for heading in sorted(lists, key=_ORDER.index)}
        return commands | options_by_rank | ({"Exit status": self.exits} if self.exits else {})

    @property
    def _arguments(self) -> list[Any]:
        params = self.command.params
        return [
            param for param in params if param.param_type_name == "argument" and not getattr(param, "hidden", False)
        ]

    def page(self) -> str:
        """Help as a terminal of 80 columns shows it."""
        parts = [
            _fill(self.synopsis, "Usage: ", "       "),
            self.summary if len(self.summary) <= _WIDTH else _fill(self.summary),
            *map(_fill, self.description),
        ]
        if self.examples:
            parts.append("\n".join(["Examples", *(f"  {example}" for example in self.examples)]))
        parts += (self._tabulate(heading, rows) for heading, rows in self.lists.items())
        return "\n\n".join(parts) + "\n"

    def _tabulate(self, heading: str, rows: list[tuple[str, str]]) -> str:
        names = [name.removeprefix(f"{self.name} ") for name, _ in rows]
        width = min(max(map(len, names)), _SPELLING_WIDTH)
        lines = [heading]
        for name, (_, meaning) in zip(names, rows, strict=True):
            start = f"  {name:{width}}  "
            if len(name) > width:
                lines.append(f"  {name}")
                start = " " * (width + 4)
            lines.append(_fill(meaning, start, " " * (width + 4)))
        return "\n".join(lines)


class HelpCommand(TyperCommand):
    """A command whose ``--help`` is its manual."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Convert plain words without pydantic."""
        convert_plain_words(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the manual."""
        formatter.write(Manual(ctx.command_path, self, ctx).page())


class HelpGroup(TyperGroup):
    """A group of commands whose ``--help`` is its manual."""

    format_help = HelpCommand.format_help

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Convert plain words without pydantic."""
        convert_plain_words(self.get_params(ctx))
        return super().parse_args(ctx, args)


class CommandGroup(typer.Typer):
    """A group such as ``ckpt state``: functions, modules that have one of the same name, or ``module:function``."""

    def __init__(self, help: str, commands: Mapping[str, str | Callable[..., None]]) -> None:
        super().__init__(cls=HelpGroup, no_args_is_help=True, rich_markup_mode=None, help=help)
        self.by_name = commands


class Commands(UserDict[str, Any]):
    """Commands by name, each imported when it is asked for: what a run does not need costs it nothing."""

    def __init__(self, by_name: Mapping[str, str | Callable[..., None]], headings: Mapping[str, str] | None = None):
        super().__init__(by_name)
        self._headings = headings or {}

    def __getitem__(self, name: str) -> Any:
        return _load_command(name, super().__getitem__(name), self._headings.get(name))


@cache
def _load_command(name: str, command: str | Callable[..., None], heading: str | None) -> Any:
    loaded: Any = command
    if isinstance(command, str):
        module, _, name_there = command.partition(":")
        loaded = getattr(import_module(f".{module}", __package__), name_there or module)
    if isinstance(loaded, CommandGroup):
        group = typer.main.get_group(loaded)
        group.name, group.rich_help_panel, group.commands = name, heading, Commands(loaded.by_name)
        return group
    alone = typer.Typer(add_completion=False)
    alone.command(name, cls=HelpCommand, rich_help_panel=heading)(split_groups(loaded))
    return typer.main.get_command(alone)


def split_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command with an option for each field of the dataclasses among its parameters; all are passed by name."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in groups:
            fields = get_type_hints(groups[name], include_extras=True)
            parameters += (
                field.replace(annotation=fields[field.name], kind=Parameter.KEYWORD_ONLY)
                for field in signature(groups[name]).parameters.values()
            )
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def flat(**arguments: Any) -> None:
        typed = dict(arguments)
        made = {
            name: kind(**{word: arguments.pop(word) for word in signature(kind).parameters})
            for name, kind in groups.items()
        }
        with _repeating_storage_options(typed):
            command(**arguments, **made)

    flat.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what typer looks at
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


@contextmanager
def _repeating_storage_options(typed: Mapping[str, Any]) -> Iterator[None]:
    """Let the commands that pages advise repeat the storage options of this one."""
    options, own = (tuple(typed.get(f"{name}storage_option") or ()) for name in ("", "to_"))
    old = next(filter(None, (typed.get("checkpoint"), typed.get("like"), *(typed.get("checkpoints") or ()))), "")
    new = tuple(uri.rstrip("/") for uri in (typed.get("new"), *(typed.get("others") or ())) if uri)
    token = TYPED.set(TypedStorage(str(old), new, options, own) if options or own else None)
    try:
        yield
    except CkptError as error:
        if new and not own and Option("storage_options") in error.words.parts:
            error.words += words("; {--to-storage-options} is for NEW")
        raise
    finally:
        TYPED.reset(token)


def make_context(command: Any, name: str, parent: typer.Context | None = None) -> typer.Context:
    """Make the context in which a command would run, to ask it for its parameters."""
    return typer.Context(command, parent=parent, info_name=name, **command.context_settings)


def _find_heading(param: Any) -> str:
    """Find the heading of a parameter."""
    shared = (heading for heading, names in _HEADINGS.items() if param.name in names)
    return next(shared, f"{param.param_type_name}s".capitalize())


def _spell_argument(param: Any) -> str:
    name = param.metavar or param.name.upper()
    return name if param.required or name.startswith("[") else f"[{name}]"


def _spell(param: Any, context: typer.Context) -> str:
    if param.param_type_name == "argument":
        return _spell_argument(param).strip("[]")
    return re.sub(r"<(.*)>$", r"\1", param.get_help_record(context)[0])


def _explain(param: Any, context: typer.Context) -> str:
    """The help of a parameter with its default, such as "Show N rows. Default: 20"."""
    text: str = param.get_help_record(context)[1]
    extras = _EXTRAS.search(text)
    if not extras:
        return text
    defaults = [extra.partition(": ")[2] for extra in extras[1].split("; ") if extra.startswith("default: ")]
    return _EXTRAS.sub("", text) + "".join(f" Default: {default}." for default in defaults)


def _find_examples(paragraph: str) -> list[str]:
    """The command lines of a paragraph that begins with "Examples:"."""
    heading, *lines = [line.strip() for line in paragraph.strip().splitlines()] or [""]
    return lines if heading == "Examples:" else []


def _fill(text: str, first: str = "", later: str = "") -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
