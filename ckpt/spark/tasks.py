"""Answers and files of the tasks of Spark's executors that make a new checkpoint.

An executor needs ckpt with its extra ``native``, a way to both places, and room for one partition of a store. Importing
this imports nothing of Spark.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from ckpt.copies.copy.placing import open_new
from ckpt.copies.rewrite.moving import Task
from ckpt.copies.rewrite.writing import folder_of
from ckpt.errors import CkptError
from ckpt.storage.locations import local_path


class TaskOutcome(NamedTuple):
    """The answer of a task: the bytes of each file that it has written, its counts, and why it was refused."""

    sizes: dict[str, int]
    said: list[Any]
    refused: tuple[str, str, str] | None = None  # module, name and text of an exception


def refused(error: CkptError) -> TaskOutcome:
    """The outcome of a task that raised this."""
    return TaskOutcome({}, [], (type(error).__module__, type(error).__qualname__, str(error)))


def raise_refused(outcomes: Iterable[TaskOutcome]) -> None:
    """Raise CkptError as the first task did that was refused, if any was."""
    for outcome in outcomes:
        if outcome.refused is not None:
            module, name, text = outcome.refused
            raise getattr(import_module(module), name)(text)


def absolute(place: str) -> str:
    """A place as an executor finds it."""
    local = local_path(place)
    return place if local is None else os.path.abspath(local)


def written(into: str, options: Mapping[str, str], files: Mapping[Task, Mapping[str, bytes]]) -> dict[str, int]:
    """Write the files of some stores, and say how large they are; those of an attempt that failed are removed first."""
    from pyspark import TaskContext

    context = TaskContext.get()
    placing = open_new(into, options)
    if context is not None and context.attemptNumber():
        folders = tuple(f"{folder_of(*task)}/" for task in files)
        for path, _ in placing.storage.list_tree().walk():
            if path.startswith(folders):
                placing.writer.remove(path)
    for own in files.values():
        for path, data in own.items():
            placing.put({path: data})
    return placing.sizes


def left(into: str, options: Mapping[str, str], tasks: Iterable[Task]) -> Iterator[Mapping[str, int]]:
    """Yield the sizes of files that tasks have written which failed together."""
    placing = open_new(into, options)
    folders = tuple(f"{folder_of(*task)}/" for task in tasks)
    for path, info in placing.storage.list_tree().walk():
        if path.startswith(folders):
            yield {path: info.size}
