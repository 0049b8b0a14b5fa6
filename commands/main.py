"""The application: its commands, and the one place where an error becomes a line and an exit code."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

import ckpt
from ckpt.errors import CkptError, UsageError

from .export_state import export_state
from .handoff import handoff
from .inspect import inspect
from .migrate import migrate
from .relocate import relocate
from .render.text import printable
from .repair_async import repair_async

FOUND, USAGE, FAILED = 1, 2, 3  # 0: nothing wrong, or done


class _Group(TyperGroup):
    """Shows any CkptError as one line on standard error."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; exit with 2 for a request that makes no sense, with 3 where ckpt could not do it."""
        for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character gets its escape
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(ctx)
        except CkptError as error:
            typer.echo(f"ckpt: {printable(str(error))}", err=True)
            raise typer.Exit(code=USAGE if isinstance(error, UsageError) else FAILED) from error
        except BrokenPipeError:
            _give_up(sys.stdout)  # whoever read our output has gone
            raise typer.Exit(code=FAILED) from None
        except OSError as error:
            _give_up(sys.stdout)
            typer.echo(f"ckpt: the report cannot be written: {printable(error.strerror or str(error))}", err=True)
            raise typer.Exit(code=FAILED) from error


def _give_up(stream: TextIO) -> None:
    """Let what is still to be written go nowhere, so that Python does not try again at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(inspect)
app.command("export-state")(export_state)
app.command("repair-async")(repair_async)
app.command()(handoff)
app.add_typer(migrate, name="migrate")
app.command()(relocate)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ckpt {ckpt.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Say what is wrong with a Structured Streaming checkpoint, what Spark will do next, and how to get out.

    Exit status: 0 nothing wrong, 1 something found, 2 bad usage, 3 could not do it.
    """
