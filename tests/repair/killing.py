"""Stop a process with SIGKILL after the n-th system call by which it changes a disk, in the middle of one, or fail it.

Calls are counted where Python makes them; a test under strace shows that none is missing.
"""

import errno
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

CALLS = ("open", "write", "fsync", "link", "unlink", "rename", "replace", "fchmod", "fchown", "utime", "mkdir", "rmdir")


def arm(last: int, record: list[str] | None = None, *, without_links: bool = False) -> None:
    """From now on count what this process changes, and kill it at the ``last`` change (from 1); 0 is never.

    A write counts twice: when half of it is done, and when it is.
    """
    seen = [] if record is None else record

    def happened(name: str) -> None:
        seen.append(name)
        if len(seen) == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **kwargs: Any) -> Any:
            if name == "link" and without_links:
                raise OSError(errno.EPERM, "no hard links here")
            if name == "write" and len(args[1]) > 1 and len(seen) + 1 == last:
                call(args[0], bytes(args[1])[: len(args[1]) // 2])
            if name == "write":
                happened("half a write")
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads of other tests
        child = os.fork()
    if child == 0:
        try:
            arm(at, without_links=without_links)
            action()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the child failed by itself"
    return False


def main(at: int, record: Path, words: Sequence[str]) -> None:
    """Run the real command, killed at its ``at``-th change; without a kill, ``record`` gets what it changed."""
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="ckpt")
    app = script.load()
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
