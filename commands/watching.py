"""For people who watch: a bar on standard error, and a line where a run is interrupted."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from ckpt.errors import CkptError
from ckpt.texts import plural, size

if TYPE_CHECKING:
    from ckpt.state.verify.verify import Estimate

_WIDTH = 30
_SURE = 3.0  # seconds after which the pace is known


@contextmanager
def bar(*, quiet: bool, of: str = "tasks") -> Iterator[Callable[[int, int], None] | None]:
    """Reports how far a job of so many tasks is, or ``of`` something else; None if nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    try:
        yield partial(_show_bar, of)
    finally:
        _clear_bar()


def _clear_bar() -> None:
    _write("\r" + " " * (_WIDTH + 50) + "\r")


def _show_bar(of: str, done: int, total: int) -> None:
    full = _WIDTH * done // max(total, 1)
    shown = "#" * full + "." * (_WIDTH - full)
    _write(f"\r  [{shown}] {done} of {total} {of}   ")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


@contextmanager
def reading(*, quiet: bool) -> Iterator[tuple["Callable[[Estimate], None] | None", Callable[[int, int], None] | None]]:
    """For people who watch: how much is about to be read, and then how far that is."""
    with bar(quiet=quiet, of="MiB") as watcher:
        if watcher is None:
            yield None, None
            return
        yield _tell_estimate, watch_bytes(quiet=quiet)


def watch_bytes(*, quiet: bool) -> Callable[[int, int], None] | None:
    """Show how many of so many bytes were read, until they all were; None if nobody watches."""
    if quiet or not sys.stderr.isatty():
        return None
    began = monotonic()

    def show(done: int, total: int) -> None:
        _show_bar(f"MiB{_tell_time_left(monotonic() - began, done, total)}", _to_mib(done), _to_mib(total))
        if done == total:
            _clear_bar()

    return show


def _to_mib(count: int) -> int:
    """Rounded up, so that the last of them is that of all."""
    return -(-count >> 20)


def _tell_time_left(seconds: float, done: int, total: int) -> str:
    """``, 3 min left``, if the pace stays what it was; empty in the first and the last seconds."""
    left = seconds * (total - done) / max(done, 1)
    if seconds < _SURE or left < _SURE:
        return ""
    return f", {left / 60:.0f} min left" if left >= 90 else f", {left:.0f} s left"


def _tell_estimate(estimate: "Estimate") -> None:
    _write(f"ckpt: {plural(estimate.files, 'file')} to read, {size(estimate.bytes)}\n")


@contextmanager
def interruptible() -> Iterator[None]:
    """Say in a line that a run was interrupted; by whom the session is ended, as by Ctrl-C, and nothing is left."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        for number, handler in before.items():
            if handler is signal.SIG_DFL:  # nohup has it ignored
                signal.signal(number, signal.default_int_handler)
        yield
    except KeyboardInterrupt:
        raise CkptError("interrupted; nothing was written") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
