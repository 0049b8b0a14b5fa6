"""Plugins: functions that other distributions register as entry points, loaded only when somebody needs them."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ckpt.errors import CkptError
from ckpt.texts import mask_secrets

Answer = TypeVar("Answer")


def ask_plugins(group: str, ask: Callable[[Any], Answer | None]) -> Iterator[Answer]:
    """Ask each plugin of a group of entry points, in the order of their names, and yield every answer but None.

    A plugin that cannot be loaded, or that raises anything but a CkptError, is left out with a warning of one line.
    Python prints that on standard error unless the program has set up logging. Raises a plugin's CkptError.
    """
    from importlib.metadata import entry_points

    for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value)):
        try:
            answer = ask(entry.load())
        except CkptError:
            raise
        except Exception as error:
            blame_plugin(group, entry.name, error)
            continue
        if answer is not None:
            yield answer


def blame_plugin(group: str, name: str, error: Exception) -> None:
    """Warn in one line of an error that a plugin of a group made."""
    import logging

    reason = ascii(mask_secrets(str(error)))[1:-1]
    logging.getLogger("ckpt").warning("%s", f"ckpt: plugin {name} of {group}: {type(error).__name__}: {reason}")
