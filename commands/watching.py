"""For people who watch: a bar on standard error, and a line where a run is interrupted."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from ckpt.errors import CkptError
from ckpt.verification import Estimate

from .render.text import plural, size

_WIDTH = 30


@contextmanager
def bar(*, quiet: bool, of: str = "tasks") -> Iterator[Callable[[int, int], None] | None]:
    """Reports how far a job of so many tasks is, or ``of`` something else; None if nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    try:
        yield partial(_show, of)
    finally:
        _write("\r" + " " * (_WIDTH + 30) + "\r")


def _show(of: str, done: int, total: int) -> None:
    full = _WIDTH * done // max(total, 1)
    shown = "#" * full + "." * (_WIDTH - full)
    _write(f"\r  [{shown}] {done} of {total} {of} ")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


@contextmanager
def reading(*, quiet: bool) -> Iterator[tuple[Callable[[Estimate], None] | None, Callable[[int, int], None] | None]]:
    """For people who watch: how much is about to be read, and then how far that is."""
    with bar(quiet=quiet, of="MiB") as watcher:
        if watcher is None:
            yield None, None
            return
        yield _tell, lambda done, total: watcher(done >> 20, -(-total >> 20))


def _tell(estimate: Estimate) -> None:
    _write(f"ckpt: {plural(estimate.files, 'file')} to read, {size(estimate.bytes)}\n")


@contextmanager
def interruptible() -> Iterator[None]:
    """Say in a line that a run was interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        raise CkptError("interrupted; nothing was written") from None
