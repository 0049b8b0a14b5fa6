"""Stop a process with SIGKILL after the n-th system call by which it changes a disk, in the middle of one, or fail it.

Or stop it for a while after every one of them (`stops`): what is on the disk then is what a kill would leave. Calls
are counted where Python makes them; a test under strace shows that none is missing.
"""

import errno
import gc
import itertools
import json
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import load_app

CALLS = ("open", "write", "fsync", "link", "unlink", "rename", "replace", "fchmod", "fchown", "utime", "mkdir", "rmdir")

EACH = -1


def arm(last: int, record: list[str] | None = None, *, without_links: bool = False) -> None:
    """From now on count what this process changes, and kill it at the ``last`` change (from 1); 0 is never.

    With `EACH` it stops at every change, until it gets a SIGCONT. A write counts twice: when half of it is done, and
    when it is.
    """
    seen = [] if record is None else record

    def happened(name: str) -> None:
        seen.append(name)
        if last == EACH:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif len(seen) == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **kwargs: Any) -> Any:
            if name == "link" and without_links:
                raise OSError(errno.EPERM, "no hard links here")
            if name == "write":
                whole = bytes(args[1])
                half = call(args[0], whole[: len(whole) // 2]) if last in (EACH, len(seen) + 1) else 0
                happened("half a write")
                answer = half + call(args[0], whole[half:])
            else:
                answer = call(*args, **kwargs)
            if name != "open" or args[1] & os.O_CREAT:
                happened(name)
            return answer

        return instead

    for name in CALLS:
        setattr(os, name, watched(name, getattr(os, name)))


def failing(patch: pytest.MonkeyPatch, at: int, error: BaseException, *, for_good: bool) -> list[str]:
    """Let the ``at``-th change of this process raise, or every change from it on; what was tried is recorded."""
    tried: list[str] = []

    def watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **kwargs: Any) -> Any:
            if name != "open" or args[1] & os.O_CREAT:
                tried.append(name)
                if len(tried) == at or (for_good and len(tried) > at):
                    raise error
            return call(*args, **kwargs)

        return instead

    for name in CALLS:
        patch.setattr(os, name, watched(name, getattr(os, name)))
    return tried


def killed(at: int, action: Callable[[], object], *, without_links: bool = False) -> bool:
    """Whether a child that does this was killed at its ``at``-th change; False where it ended before that."""
    with tempfile.TemporaryDirectory() as temporary:
        status = os.waitpid(_child(at, action, without_links, temporary), 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the child failed by itself"
    return False


def stops(action: Callable[[], object], *, without_links: bool = False) -> Iterator[int]:
    """Let a child do this to its end, and yield the number of each change, from 1, while it is stopped there."""
    temporary = tempfile.TemporaryDirectory()
    child, ended = _child(EACH, action, without_links, temporary.name), False
    try:
        for at in itertools.count(1):
            status = os.waitpid(child, os.WUNTRACED)[1]
            ended = not os.WIFSTOPPED(status)
            if ended:
                assert status == 0, "the child failed by itself"
                return
            yield at
            os.kill(child, signal.SIGCONT)
    finally:
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        temporary.cleanup()


def _child(at: int, action: Callable[[], object], without_links: bool, temporary: str) -> int:
    """The id of the child, with a temporary folder of its own: ckpt removes from it what a killed process left.

    That of another test, in a folder for all, would be a change that one run makes and the next does not.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads of other tests
        child = os.fork()
    if child == 0:
        gc.freeze()  # what the tests before left to be collected: its finalizers would change the disk, and be counted
        tempfile.tempdir = temporary
        try:
            arm(at, without_links=without_links)
            action()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return child


def main(at: int, record: Path, words: Sequence[str]) -> None:
    """Run the real command, killed at its ``at``-th change; without a kill, ``record`` gets what it changed."""
    app = load_app()
    seen: list[str] = []
    sys.argv = ["ckpt", *words]
    arm(at, seen)
    try:
        app()
    finally:
        text = json.dumps(seen)
        arm(0)
        record.write_text(text)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
