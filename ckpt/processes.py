"""Work done side by side, in processes of their own: ``python -m ckpt.processes``.

A worker reads what it is to do from its standard input, as JSON, and answers with messages. It starts no Python of the
caller again, as ``multiprocessing`` would, and it ends with whoever started it.
"""

import gc
import json
import os
import signal
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from itertools import chain, zip_longest
from selectors import EVENT_READ, DefaultSelector
from typing import Any, TypeAlias

from ckpt.errors import CkptError

Work: TypeAlias = Callable[[Any], Callable[[Any], Iterable[Any]]]
"""A function of a module: from what all tasks share to what does one of them, and gives messages (bytes)."""

_HEAD = struct.Struct(">Bq")  # what follows, and its bytes
_MESSAGE, _DONE, _REFUSED = range(3)
_PIECE = 1 << 20
_AHEAD = 64 << 20  # bytes of messages that wait for their turn, of one worker


def can_share(uri: str) -> bool:
    """Whether another process finds the same at a URI."""
    return not uri.startswith("memory:")


def in_any_order(work: Work, place: Any, shares: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, bytes | None]]:
    """Have each share of tasks done by a process of its own: the messages of each task, and None once it is done.

    Raises what the work raises, and CkptError where a process ends before its work is done. Tasks and what they share
    (``place``) are what JSON can hold.
    """
    with _started(work, place, shares, os.environ) as workers:
        while any(worker.tasks or worker.messages for worker in workers):
            _receive([worker for worker in workers if worker.tasks])
            for worker in workers:
                while worker.messages:
                    yield worker.next()


def in_order(
    work: Work, place: Any, tasks: Sequence[Any], count: int, environment: Mapping[str, str] = os.environ
) -> Generator[tuple[Any, bytes | None], None, None]:
    """The same with so many processes, and messages in the order of tasks; what waits for its turn is bounded."""
    shares = [tasks[first::count] for first in range(count)]
    with _started(work, place, shares, environment) as workers:
        turns = chain.from_iterable(zip_longest(*([worker] * len(worker.tasks) for worker in workers)))
        for worker in filter(None, turns):
            message: bytes | None = b""
            while message is not None:
                while not worker.messages:
                    _receive([one for one in workers if one is worker or (one.tasks and one.waiting < _AHEAD)])
                task, message = worker.next()
                yield task, message


class _Worker:
    """A process, and what it has said."""

    def __init__(self, process: "subprocess.Popen[bytes]", tasks: Iterable[Any]) -> None:
        self.process = process
        self.tasks = deque(tasks)  # that are not done
        self.messages: deque[tuple[Any, bytes | None]] = deque()
        self.waiting = 0  # bytes of messages
        self._received = bytearray()

    def next(self) -> tuple[Any, bytes | None]:
        """The next message."""
        task, message = self.messages.popleft()
        self.waiting -= len(message or b"")
        return task, message

    def receive(self) -> None:
        """Take what is there."""
        assert self.process.stdout is not None
        piece = os.read(self.process.stdout.fileno(), _PIECE)
        if not piece:
            code = self.process.wait()
            raise CkptError(f"a process that did a part of the work ended early ({code}): try fewer `jobs`")
        self._received += piece
        while len(self._received) >= _HEAD.size:
            kind, size = _HEAD.unpack_from(self._received)
            if len(self._received) < _HEAD.size + size:
                return
            message = bytes(memoryview(self._received)[_HEAD.size : _HEAD.size + size])
            del self._received[: _HEAD.size + size]
            self._note(kind, message)

    def _note(self, kind: int, message: bytes) -> None:
        if kind == _REFUSED:
            module, name, text = json.loads(message)
            raise getattr(import_module(module), name)(text)
        self.messages.append((self.tasks[0], message if kind == _MESSAGE else None))
        self.waiting += len(message)
        if kind == _DONE:
            self.tasks.popleft()


def _receive(workers: Iterable[_Worker]) -> None:
    """Wait until one of some workers has said something."""
    with DefaultSelector() as selector:
        for worker in workers:
            assert worker.process.stdout is not None
            selector.register(worker.process.stdout, EVENT_READ, worker)
        for key, _ in selector.select():
            key.data.receive()


@contextmanager
def _started(
    work: Work, place: Any, shares: Iterable[Sequence[Any]], environment: Mapping[str, str]
) -> Iterator[list[_Worker]]:
    """A worker for each share; all are gone afterwards."""
    command = [sys.executable, "-P", "-m", __name__]  # -P: no module is taken from the folder that it is run in
    path = os.pathsep.join(filter(None, sys.path))
    given = {"OPENBLAS_NUM_THREADS": "1", **environment, "PYTHONPATH": path}
    workers: list[_Worker] = []
    with ExitStack() as stack:
        for share in shares:
            pipe = subprocess.PIPE
            with _without_interrupts():
                process = stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe, env=given))
            stack.callback(process.kill)
            workers.append(_Worker(process, share))
        for worker in workers:
            _tell(worker, {"work": [work.__module__, work.__qualname__], "place": place, "tasks": list(worker.tasks)})
        yield workers


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl-C waits; a process that is started meanwhile never sees it, also not while its Python starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _tell(worker: _Worker, what: Any) -> None:
    assert worker.process.stdin is not None
    try:
        worker.process.stdin.write(json.dumps(what).encode())
        worker.process.stdin.close()
    except BrokenPipeError:
        raise CkptError("a process that was to do a part of the work ended before it began: try fewer `jobs`") from None


def _serve() -> None:
    """What a worker does. Ctrl-C is for whoever started it, and without whom it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    gc.set_threshold(100_000)  # imports make many objects, and nothing to collect
    try:
        given = json.load(sys.stdin)
    except ValueError:
        return  # whoever started it was interrupted before all was said
    module, name = given["work"]
    try:
        do = getattr(import_module(module), name)(given["place"])
        for task in given["tasks"]:
            for message in do(task):
                _say(_MESSAGE, message)
            _say(_DONE, b"")
    except CkptError as error:
        _say(_REFUSED, json.dumps([type(error).__module__, type(error).__qualname__, str(error)]).encode())


def _say(kind: int, message: Any) -> None:
    content = memoryview(message)
    sys.stdout.buffer.write(_HEAD.pack(kind, content.nbytes))
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()
