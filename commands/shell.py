"""The shell of ``ckpt sql``: statements that are typed at a terminal, with history and completion."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from .report import show_text

_PROMPT, _MORE = "ckpt> ", " ...> "
_ENDS = (".exit", ".quit", "exit", "quit")
_KEPT = 1_000  # statements of the history


def read_typed(words: Iterable[str]) -> Iterator[str]:
    """Yield what is typed up to a line that ends with ``;``, until the end of input or ``.exit``.

    Ctrl-C forgets what was begun. ``words`` are those that Tab completes.
    """
    lines: list[str] = []
    with _edit_lines(sorted(words)):
        while True:
            try:
                line = input(_MORE if lines else _PROMPT)
            except EOFError:
                show_text("")
                return
            except KeyboardInterrupt:
                show_text("")
                lines.clear()
                continue
            if not lines and line.strip(" ;") in _ENDS:
                return
            lines += [line] if line.strip() or lines else []
            if line.rstrip().endswith(";"):
                text = "\n".join(lines)
                lines.clear()
                yield text


@contextmanager
def _edit_lines(words: list[str]) -> Iterator[None]:
    """Complete words and keep a history while lines are read, where Python has ``readline``."""
    try:
        import readline
    except ImportError:
        yield
        return
    history = _open_history(readline)
    readline.set_completer(lambda text, number: _complete(words, text, number))
    readline.set_completer_delims(" \t\n,;()'\"=<>")
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    try:
        yield
    finally:
        if history is not None:
            readline.set_history_length(_KEPT)
            with suppress(OSError):
                readline.write_history_file(history)


def _complete(words: list[str], text: str, number: int) -> str | None:
    fitting = [word for word in words if word.startswith(text.lower())]
    return fitting[number] if number < len(fitting) else None


def _open_history(readline: ModuleType) -> Path | None:
    """Read the history of earlier shells, which nobody else may read; None where there is no place for one."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()) / "ckpt"
    file = folder / "sql_history"
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        readline.read_history_file(file)
    except (OSError, RuntimeError):  # of expanduser: there is no home
        return None
    return file
