"""Temporary folders that do not stay, even if the process is killed that made them."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ckpt.errors import CkptError

_PREFIX = "ckpt-state-"


def report_no_room(reason: str, folder: str | None = None) -> CkptError:
    """Files of a snapshot cannot be put there; ``folder`` where it was not this process that asked which it is."""
    folder = folder or tempfile.tempdir
    which = f"the temporary folder {folder} cannot" if folder else "no temporary folder can"
    return CkptError(f"{which} hold the files of a snapshot: {reason}; set TMPDIR to another one")


@contextmanager
def make_temporary_folder() -> Iterator[str]:
    """A folder that is removed afterwards; if this process is killed, by the next one, which finds no lock on it.

    Raises CkptError where there is no folder that it could be in, and OSError where it cannot be made.
    """
    try:
        base = tempfile.gettempdir()
    except OSError as error:
        raise report_no_room(str(error.strerror)) from None
    for name in os.listdir(base):
        if name.startswith(_PREFIX):
            _remove_if_left(f"{base}/{name}")
    folder, lock = _make_locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _make_locked_folder() -> tuple[str, int]:
    """A new folder with a lock on it. Until it is locked, another process may take it for one that was left."""
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY)
            with suppress(OSError):  # a mount without flock, where nobody else removes it either
                fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.exists(folder):
                return folder, lock
            os.close(lock)


def _remove_if_left(folder: str) -> None:
    with suppress(OSError):  # it is locked, another user's, or gone
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
