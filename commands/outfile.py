"""A file that the user names for what a command prints: checked before the work, and replaced as a whole after it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ckpt.advice import Option
from ckpt.errors import CkptError, UsageError, one_line
from ckpt.storage.base import temporary


def must_be_writable(name: str, path: str) -> None:
    """Raise UsageError where no file can be written, before anything else is done."""
    file = Path(path)
    if (file.exists() and not file.is_file()) or not file.absolute().parent.is_dir():
        option = Option(name, one_line(path))
        raise UsageError.of("{option}: name a file in an existing folder", option=option)


@contextmanager
def replace_whole(path: str) -> Iterator[str]:
    """Give a hidden name to write to, and rename that file, of mode 0644: a reader sees the old or the new one."""
    unfinished = Path(temporary(path))
    try:
        try:
            yield str(unfinished)
            with open(unfinished, "rb") as file:
                os.fsync(file.fileno())
            unfinished.chmod(0o644)
            unfinished.rename(path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise
    except OSError as error:
        raise CkptError(f"{one_line(path)} cannot be written: {error.strerror or error}") from error
