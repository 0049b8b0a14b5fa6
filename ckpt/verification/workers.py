"""Files verified side by side, in processes of their own: ``python -m ckpt.verification.workers``.

A worker reads what it is to do from its standard input (a line for the place, then one for each file) and writes a line
for each file that is done. It starts no Python of the caller again, as ``multiprocessing`` would.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from queue import SimpleQueue

from ckpt.errors import CkptError
from ckpt.model import DamageKind, StateFileKind
from ckpt.state import NeededFile, Verdict
from ckpt.storage import open_storage
from ckpt.verification.one_file import Outcome, check_file

_WORTH_A_PROCESS = 48 << 20  # bytes: what takes as long to verify as a process to start


def outcomes(
    uri: str, options: Mapping[str, str], files: Sequence[NeededFile], jobs: int
) -> Iterator[tuple[NeededFile, Outcome]]:
    """What comes of each file, in the order in which they are done.

    Raises CkptError where a process ends before its work is done.
    """
    total = sum(file.size for file in files)
    count = min(jobs, len(files), total // _WORTH_A_PROCESS + 1)
    if count <= 1:
        storage = open_storage(uri, options)
        yield from ((file, check_file(storage, file)) for file in files)
        return
    done = SimpleQueue[tuple[NeededFile, Outcome] | None]()
    workers = _Workers()
    with ThreadPoolExecutor(count) as threads:
        try:
            running = [
                threads.submit(_run, uri, options, share, workers.add, done.put) for share in _shares(files, count)
            ]
            left = len(running)
            while left:
                one = done.get()
                left -= one is None
                if one is not None:
                    yield one
            for each in running:
                each.result()
        finally:
            workers.kill()


class _Workers:
    """The processes that were started; once they are killed, so is one that a thread was about to start."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[str]] = []
        self._over = False

    def add(self, worker: subprocess.Popen[str]) -> None:
        """A process was started."""
        self._started.append(worker)
        if self._over:
            worker.kill()

    def kill(self) -> None:
        """End all."""
        self._over = True
        for worker in self._started:
            worker.kill()


def _shares(files: Sequence[NeededFile], count: int) -> list[list[NeededFile]]:
    """The files in ``count`` lots of about the same size, the largest first."""
    shares: list[list[NeededFile]] = [[] for _ in range(count)]
    sizes = [0] * count
    for file in sorted(files, key=lambda file: file.size, reverse=True):
        least = sizes.index(min(sizes))
        shares[least].append(file)
        sizes[least] += file.size + 1
    return shares


def _run(
    uri: str,
    options: Mapping[str, str],
    files: Sequence[NeededFile],
    started: Callable[[subprocess.Popen[str]], None],
    done: Callable[[tuple[NeededFile, Outcome] | None], None],
) -> None:
    """One worker, from its start to its end; ``done`` is called with None last."""
    try:
        command = [sys.executable, "-P", "-m", __name__]  # -P: no module is taken from the folder that it is run in
        path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=path) as worker:
            started(worker)
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write(json.dumps({"uri": uri, "options": dict(options)}) + "\n")
            worker.stdin.writelines(json.dumps(asdict(file)) + "\n" for file in files)
            worker.stdin.close()
            for file, line in zip(files, worker.stdout, strict=False):
                verdict, unknown = json.loads(line)
                done((file, Outcome(verdict and Verdict(DamageKind(verdict[0]), *verdict[1:]), unknown)))
            if worker.wait():
                raise CkptError(f"a process that verified files ended early ({worker.returncode}): try fewer `jobs`")
    except BrokenPipeError:
        raise CkptError("a process that verified files ended before it began: try fewer `jobs`") from None
    finally:
        done(None)


def _work() -> None:
    """What a worker does. Ctrl-C is for whoever started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    place = json.loads(sys.stdin.readline())
    files = [json.loads(line) for line in sys.stdin]
    storage = open_storage(place["uri"], place["options"])
    for each in files:
        kind = each.pop("kind")
        file = NeededFile(**each, kind=StateFileKind(kind) if kind is not None else None)
        sys.stdout.write(json.dumps(check_file(storage, file)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _work()
