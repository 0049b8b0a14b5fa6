"""The application as it is installed, and what its commands print."""

import shlex
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer.main
from typer.testing import CliRunner


@cache
def script() -> EntryPoint:
    """The entry point ``ckpt``; to find it reads the metadata of all that is installed."""
    (found,) = entry_points(group="console_scripts", name="ckpt")
    return found


def load_group() -> Any:
    """All commands."""
    return typer.main.get_command(script().load())


def run_ckpt(command: str) -> str:
    """What a command prints, run in the current folder."""
    return CliRunner().invoke(script().load(), shlex.split(command)[1:]).stdout
