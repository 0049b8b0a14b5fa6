"""A file that another program reads at any moment: it sees the old content or the new one."""

import os
from contextlib import suppress
from pathlib import Path

from ckpt.errors import CkptError, UsageError, one_line
from ckpt.storage.base import temporary


def must_be_writable(path: str) -> None:
    """Raise UsageError where no file can be written, before anything else is done."""
    file = Path(path)
    if (file.exists() and not file.is_file()) or not file.absolute().parent.is_dir():
        raise UsageError(f"--textfile {one_line(path)}: name a file in a folder that exists")


def write_whole(path: str, text: str) -> None:
    """Write a file of mode 0644 under a hidden name, and rename it. Raises CkptError."""
    unfinished = Path(temporary(path))
    try:
        try:
            with open(unfinished, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            unfinished.chmod(0o644)
            unfinished.rename(path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise
    except OSError as error:
        raise CkptError(f"{one_line(path)} cannot be written: {error.strerror or error}") from error
