"""Spark for a command: the session that was asked for, and a bar on standard error for people who watch."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ckpt.errors import CkptError
from ckpt.spark.calls import Session

from . import options

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


@contextmanager
def session(master: str | None, conf: list[str] | None, *, quiet: bool) -> Iterator[Session]:
    """The Spark that was asked for; it is not started by this."""
    confs = options.pairs("--conf", conf)
    with bar(quiet=quiet) as watcher:
        yield Session(master=master, confs=confs, watcher=watcher)


@contextmanager
def interruptible() -> Iterator[None]:
    """Say in a line that a run was interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        raise CkptError("interrupted; nothing was written") from None
