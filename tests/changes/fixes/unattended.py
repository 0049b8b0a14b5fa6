"""Incidents that ``ckpt preflight --fix safe`` may end, kills of it at random points, and two of it at once.

`python -m tests.changes.fixes.unattended work` is a process that does what its standard input says, line by line;
with `work-without-flock` it has a lock that the operating system does not know.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from ckpt.inspection import activity
from tests.support.places import SAMPLES
from tests.support.services.fixtures import storage_words

Files = dict[str, bytes]


def _lose_commit(folder: Path) -> None:
    """The newest commit is empty, and its checksum proves what it was."""
    newest = max(folder.glob("commits/[0-9]*"), key=lambda path: int(path.name))
    newest.write_bytes(b"")


def _orphan(folder: Path) -> None:
    """Operator metadata deleted by hand, its hidden checksum left."""
    (folder / "state/0/_metadata/metadata").unlink()


INCIDENTS: Mapping[str, tuple[str, Callable[[Path], None]]] = {
    "fill": ("async-kafka-4.2", lambda folder: None),
    "write-commit": ("aggregation-hdfs-4.2", _lose_commit),
    "tidy": ("aggregation-hdfs-4.2", _orphan),
    "relocate": ("tws-changelog-4.0", lambda folder: None),
}
"""By the fix that ends it: a sample, and what happens to it."""


def make(name: str, folder: Path) -> Path:
    """A checkpoint with an incident; without hidden checksums some of it cannot be, so they are kept."""
    sample, happen = INCIDENTS[name]
    shutil.copytree(SAMPLES / sample, folder)
    happen(folder)
    return folder


def files_of(folder: Path) -> Files:
    """Every file below a folder, by its path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def preflight(uri: str, options: Mapping[str, str], *more: str) -> dict[str, Any]:
    """The document of the command, run in this process and without a pause between two looks."""
    from commands import main

    activity.LOOKS_APART_S = 0.0
    command = ["preflight", uri, "--fix", "safe", "--grace", "0", *storage_words(options), *more, "-o", "json"]
    result = CliRunner().invoke(main.app, command, catch_exceptions=False)
    if not result.stdout:
        return {"go": False, "fixed": [], "not_fixed": result.stderr, "exit": result.exit_code}
    document: dict[str, Any] = json.loads(result.stdout)
    return {key: document[key] for key in ("go", "fixed", "not_fixed")} | {"exit": result.exit_code}


def kill_once(name: str, folder: Path, longest_s: float, rng: random.Random) -> tuple[bool, dict[str, Any], list[str]]:
    """Kill a run after some time at most; then run it again.

    Returns whether it was killed before its end, the answer of the second run, and what is less than was there.
    """
    checkpoint = make(name, folder / "checkpoint")
    before = files_of(checkpoint)
    child = os.fork()
    if child == 0:
        try:
            preflight(str(checkpoint), {})
        finally:
            os._exit(0)
    time.sleep(rng.uniform(0, longest_s))
    os.kill(child, signal.SIGKILL)
    killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
    answer = preflight(str(checkpoint), {})
    return killed, answer, list(_find_losses(before, checkpoint, folder))


def _find_losses(before: Files, checkpoint: Path, folder: Path) -> Iterator[str]:
    """Files that are neither as they were nor, as they were, in a complete backup."""
    now = files_of(checkpoint)
    kept = [files_of(path) for path in folder.iterdir() if path.name.startswith("checkpoint.ckpt-backup-")]
    saved = {data for files in kept if "manifest.json" in files for data in files.values()}
    yield from (path for path, data in before.items() if now.get(path) != data and data not in saved)


class Workers:
    """Two processes that ask the same at the same moment."""

    def __init__(self, *, flock: bool) -> None:
        command = [sys.executable, "-m", "tests.changes.fixes.unattended", "work" if flock else "work-without-flock"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._processes = [subprocess.Popen(command, **pipes) for _ in range(2)]

    def race(self, uri: str, options: Mapping[str, str]) -> list[dict[str, Any]]:
        """Let both run, and return the answer of each."""
        job = json.dumps({"uri": uri, "options": dict(options), "at": time.time() + 0.02})
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(f"{job}\n")
            process.stdin.flush()
        return [json.loads(process.stdout.readline()) for process in self._processes if process.stdout is not None]

    def end(self) -> None:
        """Let both processes end."""
        for process in self._processes:
            process.communicate(timeout=60)


@contextmanager
def workers(*, flock: bool = True) -> Iterator[Workers]:
    """Two processes, ended afterwards; without ``flock`` they are on a mount that has none."""
    both = Workers(flock=flock)
    try:
        yield both
    finally:
        both.end()


def judge_race(answers: list[dict[str, Any]]) -> str:
    """How a race ended: one applied and the other held, or the other came when all was done; or what is wrong."""
    applied = [answer for answer in answers if answer["fixed"]]
    others = [answer for answer in answers if not answer["fixed"]]
    if len(applied) != 1:
        return f"{len(applied)} applied: {[answer['not_fixed'] for answer in answers]}"
    if not applied[0]["go"]:
        return "who applied holds"
    (other,) = others
    return "the other held" if not other["go"] else "the other came later"


def fail_flock(handle: object, kind: int) -> None:
    """Do as ``fcntl.flock`` does on a mount without it."""
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def _work() -> None:
    if sys.argv[1] == "work-without-flock":
        fcntl.flock = fail_flock
    preflight(str(SAMPLES / "aggregation-hdfs-4.2"), {})  # imports everything
    for line in sys.stdin:
        job = json.loads(line)
        time.sleep(max(0.0, job["at"] - time.time()))
        sys.stdout.write(json.dumps(preflight(job["uri"], job["options"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _work()
