"""ckpt as it is installed, run in this process."""

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from typer.testing import CliRunner, Result


@cache
def load_app() -> Any:
    """The application, found the way the installed ``ckpt`` script finds it."""
    (script,) = entry_points(group="console_scripts", name="ckpt")
    return script.load()


def invoke(*words: object) -> Result:
    """Run a command; whatever it lets escape is raised."""
    return CliRunner().invoke(load_app(), [str(word) for word in words], catch_exceptions=False)
