"""A bar on standard error for people who watch; nothing for pipes."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_WIDTH = 30


@contextmanager
def bar(*, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Reports how far a job is; None if nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    try:
        yield _show
    finally:
        _write("\r" + " " * (_WIDTH + 30) + "\r")


def _show(done: int, total: int) -> None:
    full = _WIDTH * done // max(total, 1)
    shown = "#" * full + "." * (_WIDTH - full)
    _write(f"\r  [{shown}] {done} of {total} tasks ")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
