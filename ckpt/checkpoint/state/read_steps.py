"""Reading without touching storage: a step says what it must read, gets the bytes, and continues.

A step is a generator that yields lists of requests and is sent their answers in the same order; what it returns is its
result. So everything in ``ckpt.checkpoint.state`` stays pure, and whoever runs it decides how requests are answered.
"""

from collections.abc import Callable, Generator, Sequence
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from ckpt.errors import StorageError
from ckpt.storage.base import ReadRequest

Answer: TypeAlias = bytes | StorageError
Result = TypeVar("Result")
Step: TypeAlias = Generator[list[ReadRequest], Sequence[Answer], Result]


def run(step: Step[Result], read_many: Callable[[list[ReadRequest]], Sequence[Answer]]) -> Result:
    """Carry a step out, answering its requests with ``read_many`` (``Storage.read_many``)."""
    try:
        requests = next(step)
        while True:
            requests = step.send(read_many(requests) if requests else [])
    except StopIteration as end:
        result: Result = end.value
        return result


def run_together(*steps: Step[Any]) -> Step[list[Any]]:
    """Run steps side by side, so that what they read at the same time is asked for at once."""
    results: dict[Step[Any], Any] = {}
    answers: dict[Step[Any], Sequence[Answer] | None] = dict.fromkeys(steps)
    while answers:
        requests_of: dict[Step[Any], list[ReadRequest]] = {}
        for step, answer in answers.items():
            try:
                requests_of[step] = next(step) if answer is None else step.send(answer)
            except StopIteration as end:
                results[step] = end.value
        if not requests_of:
            break
        answers, answer = {}, None  # what was read before need not be in memory beside what is read now
        got = iter((yield [request for requests in requests_of.values() for request in requests]))
        answers = {step: list(islice(got, len(requests))) for step, requests in requests_of.items()}
        del got
    return [results[step] for step in steps]
