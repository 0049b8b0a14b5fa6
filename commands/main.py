"""The application: its commands, and the one place where an error becomes a line and an exit code."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer

import ckpt
from ckpt.advice.spelling import SHELL
from ckpt.advice.words import speaking_everywhere
from ckpt.errors import CkptError, UsageError
from ckpt.texts import escape_unprintable, mask_secrets

from .help import Commands, HelpGroup
from .render.reports import Exit

_REPAIR = "Repair (damage: repair; wrong rows: rewind; a batch that always fails: skip)"
GROUPS = {
    "Look": ("inspect", "scan", "preflight", "explain", "sql"),
    _REPAIR: ("repair", "repair-async", "rewind", "skip", "offsets", "relocate", "prune"),
    "State": ("state", "export-state"),
    "New checkpoints": ("copy", "rewrite", "merge", "split", "import-state"),
    "New queries": ("evolve", "handoff", "migrate"),
}
"""Commands by heading, in the order of the help page."""
MODULES = {name: name.replace("-", "_") for names in GROUPS.values() for name in names}
MODULES |= {name: f"rewrite:{name.replace('-', '_')}" for name in ("merge", "split", "import-state")}
MODULES["repair-async"] = "repair:repair_async"
"""The module of each command. The command is the function or group of that name, or of the name after the colon."""
_HEADINGS = {name: heading for heading, names in GROUPS.items() for name in names}
_WORDS = {
    r"Value error, ": "",
    r"Input should be greater than or equal to (\S+)": r"it must be at least \1",
    r"Input should be less than or equal to (\S+)": r"it must be at most \1",
    r"Input should be a valid integer.*": "it must be an integer",
    r"Input should be a valid number.*": "it must be a number",
}
"""Messages of pydantic, which Typer uses to read options, and ckpt's wording for each."""


class _Group(HelpGroup):
    """Imports the command that is run, and shows any CkptError as one line on standard error."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(MODULES, _HEADINGS)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; exit with 2 for a request that makes no sense, with 3 where ckpt could not do it."""
        for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character gets its escape
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        with speaking_everywhere(SHELL), _print_errors():
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The words before the name of a command."""
        with speaking_everywhere(SHELL), _print_errors():
            return super().parse_args(ctx, args)


# What the parser raises for options, commands and arguments that are wrong or missing.
_MISUSE: Any = typer.BadParameter.__bases__


@contextmanager
def _print_errors() -> Iterator[None]:
    """Errors become one line on standard error, and an exit code."""
    try:
        yield
    except CkptError as error:
        typer.echo(f"ckpt: {escape_unprintable(mask_secrets(str(error)))}", err=True)
        raise typer.Exit(code=Exit.USAGE if isinstance(error, UsageError) else Exit.FAILED) from error
    except _MISUSE as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # no words at all: the page of help is the answer
            raise
        message = " ".join(error.format_message().split()).rstrip(".")
        for theirs, ours in _WORDS.items():
            message = re.sub(theirs, ours, message)
        command = error.ctx.command_path.partition(" ")[2] if error.ctx else ""
        option = getattr(error, "option_name", "")
        from .render.book import BOOK  # not at the top: few runs are wrong

        moved = BOOK.content["moved"]
        if hint := moved.get(f"{command} {option}") or moved.get(option):
            message = f"{message.partition(' (Possible')[0]}: {hint}"
        help_for = f"; see {error.ctx.command_path} --help" if error.ctx else ""
        typer.echo(f"ckpt: {escape_unprintable(mask_secrets(message + help_for))}", err=True)
        raise typer.Exit(code=Exit.USAGE) from error
    except BrokenPipeError:
        _give_up()  # whoever read our output has gone
        raise typer.Exit(code=Exit.FAILED) from None
    except MemoryError as error:
        typer.echo("ckpt: this machine does not have enough memory for the answer", err=True)
        raise typer.Exit(code=Exit.FAILED) from error
    except OSError as error:
        _give_up()
        typer.echo(f"ckpt: the report cannot be written: {escape_unprintable(error.strerror or str(error))}", err=True)
        raise typer.Exit(code=Exit.FAILED) from error


def _give_up() -> None:
    """Let what is still to be written go nowhere, so that Python does not try again at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version; with -v, everything for a bug report.")
    ] = False,
    verbose: Annotated[bool, typer.Option("-v", hidden=True)] = False,
) -> None:
    """Show what is wrong with a Structured Streaming checkpoint, what Spark will do next, and how to fix it.

    Each command has --help with examples. -o json prints JSON, -o html a page for a browser. Commands that change
    CHECKPOINT only print a plan until you add --apply.

    Exit status: 0 nothing wrong, 1 something found, 2 bad usage, 3 could not do it.
    """
    if version:
        text = import_module(".version", __package__).describe() if verbose else f"ckpt {ckpt.__version__}"
        typer.echo(text)
        raise typer.Exit
    if verbose:
        raise UsageError.of("{code:-v} needs {code:--version}")
    if context.invoked_subcommand is None:
        context.fail("Missing command.")
