"""Runs a function over tasks in processes of this machine: ``python -m ckpt.processes``.

A worker reads its tasks from its standard input, as a pickle, and answers with pickled results. It starts no Python of
the caller again, as ``multiprocessing`` would, and it ends with whoever started it.
"""

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain, zip_longest
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, TypeAlias

from ckpt.advice.words import find_speech, speaking_everywhere
from ckpt.errors import CkptError

Work: TypeAlias = Callable[[Any], Callable[[Any], Iterable[Any]]]
"""A function of a module: from what all tasks share to a function of one task, which gives results."""

_RESULT, _DONE, _REFUSED = b"\0", b"\1", b"\2"  # what a message begins with
_AHEAD = 64 << 20  # bytes of results that wait for their turn, of one worker


class Runner(Protocol):
    """Runs work over tasks. Tasks, their results and what tasks share can be pickled."""

    def run(
        self, work: Work, shared: Any, tasks: Sequence[Any], *, ordered: bool = False
    ) -> Generator[tuple[Any, Any], None, None]:
        """Each result with its task; ``ordered`` keeps the order of tasks.

        Raises what the work raises, and CkptError where a worker ends before its work is done.
        """
        ...


@dataclass(frozen=True, slots=True)
class Processes:
    """Runs tasks in ``count`` processes of this machine; 1 is this process."""

    count: int
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def run(
        self, work: Work, shared: Any, tasks: Sequence[Any], *, ordered: bool = False
    ) -> Generator[tuple[Any, Any], None, None]:
        """Run work as every ``Runner`` does; results that wait for their turn are bounded."""
        count = min(self.count, len(tasks))
        if count <= 1:
            do = work(shared)
            yield from ((task, result) for task in tasks for result in do(task))
            return
        shares = [tasks[first::count] for first in range(count)]
        with _started(work, shared, shares, self.environment) as workers:
            messages = _ordered(workers) if ordered else _in_any_order(workers)
            yield from (
                (task, pickle.loads(memoryview(message)[1:])) for task, message in messages if message is not None
            )


def _in_any_order(workers: list["_Worker"]) -> Iterator[tuple[Any, bytes | None]]:
    while any(worker.tasks or worker.messages for worker in workers):
        _receive([worker for worker in workers if worker.tasks])
        for worker in workers:
            while worker.messages:
                yield worker.next()


def _ordered(workers: list["_Worker"]) -> Iterator[tuple[Any, bytes | None]]:
    turns = chain.from_iterable(zip_longest(*([worker] * len(worker.tasks) for worker in workers)))
    for worker in filter(None, turns):
        message: bytes | None = b""
        while message is not None:
            while not worker.messages:
                _receive([other for other in workers if other is worker or (other.tasks and other.waiting < _AHEAD)])
            task, message = worker.next()
            yield task, message


class _Worker:
    def __init__(self, process: "subprocess.Popen[bytes]", tasks: Iterable[Any]) -> None:
        assert process.stdout is not None
        self.process = process
        self.tasks = deque(tasks)  # that are not done
        self.messages: deque[tuple[Any, bytes | None]] = deque()
        self.waiting = 0  # bytes of messages
        self.pipe = Connection(os.dup(process.stdout.fileno()), writable=False)

    def next(self) -> tuple[Any, bytes | None]:
        task, message = self.messages.popleft()
        self.waiting -= len(message or b"")
        return task, message

    def receive(self) -> None:
        try:
            message = self.pipe.recv_bytes()
        except (EOFError, OSError):
            code = self.process.wait()
            raise CkptError.of("a worker process ended early ({code}): try fewer {--jobs}", code=code) from None
        if message.startswith(_REFUSED):
            module, name, text = pickle.loads(message[1:])
            raise getattr(import_module(module), name)(text)
        result = None if message == _DONE else message
        self.messages.append((self.tasks[0], result))
        self.waiting += len(result or b"")
        if result is None:
            self.tasks.popleft()


def _receive(workers: Sequence[_Worker]) -> None:
    ready = wait([worker.pipe for worker in workers])
    for worker in workers:
        if worker.pipe in ready:
            worker.receive()


@contextmanager
def _started(
    work: Work, shared: Any, shares: Iterable[Sequence[Any]], environment: Mapping[str, str]
) -> Iterator[list[_Worker]]:
    """A worker for each share; all are gone afterwards."""
    command = [sys.executable, "-P", "-m", __name__]  # -P: no module is taken from the folder that it is run in
    path = os.pathsep.join(filter(None, sys.path))
    variables = {"OPENBLAS_NUM_THREADS": "1", **environment, "PYTHONPATH": path}
    workers: list[_Worker] = []
    with ExitStack() as stack:
        for share in shares:
            pipe = subprocess.PIPE
            with _without_interrupts():
                process = stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe, env=variables))
            stack.callback(process.kill)
            workers.append(_Worker(process, share))
        for worker in workers:
            _send_tasks(worker, pickle.dumps((find_speech(), work, shared, list(worker.tasks))))
        yield workers


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl-C waits; a process that is started meanwhile never sees it, also not while its Python starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _send_tasks(worker: _Worker, tasks: bytes) -> None:
    assert worker.process.stdin is not None
    try:
        worker.process.stdin.write(tasks)
        worker.process.stdin.close()
    except BrokenPipeError:
        raise CkptError.of("a worker process ended before it began: try fewer {--jobs}") from None


def _serve() -> None:
    """Do the tasks of a worker. Ctrl-C is for whoever started it, and without whom it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    pipe = Connection(os.dup(sys.stdout.fileno()), readable=False)
    gc.set_threshold(100_000)  # imports make many objects, and nothing to collect
    try:
        try:
            speech, work, shared, tasks = pickle.load(sys.stdin.buffer)
        except (EOFError, pickle.UnpicklingError):
            return  # whoever started it was interrupted before all was sent
        with speaking_everywhere(speech):
            do = work(shared)
            for task in tasks:
                for result in do(task):
                    pipe.send_bytes(_RESULT + pickle.dumps(result, pickle.HIGHEST_PROTOCOL))
                pipe.send_bytes(_DONE)
    except CkptError as error:
        pipe.send_bytes(_REFUSED + pickle.dumps([type(error).__module__, type(error).__qualname__, error.args[0]]))


if __name__ == "__main__":
    _serve()
