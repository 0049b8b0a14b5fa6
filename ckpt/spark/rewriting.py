"""State moved by the executors of Spark, which write the new checkpoint themselves: for more than one machine takes.

An executor needs ckpt with its extra ``native``, a way to both places, and room for one partition of a store. Rows that
change their partition go through Spark's shuffle. Importing this imports nothing of Spark.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from ckpt.copying.placing import open_new
from ckpt.errors import CkptError
from ckpt.rewrite.moving import Move, Mover, Task
from ckpt.rewrite.stored import Stored
from ckpt.rewrite.writing import folder_of
from ckpt.spark.calls import ANY, Session
from ckpt.storage.locations import local_path

_Part: TypeAlias = tuple["Outcome | None", bytes | None]
"""What came of an old partition, or None; and its rows for a new one, as Arrow's stream, or None."""


class Outcome(NamedTuple):
    """What came of a task: the bytes of each file that it has written, what it counted, and why it was refused."""

    sizes: dict[str, int]
    said: list[tuple[Task, list[Any]]]
    refused: tuple[str, str, str] | None = None  # module, name and text of an exception


def on_spark(session: Session = ANY) -> Mover:
    """Have Spark's executors move the rows of ``rewrite_checkpoint``, which is given this as ``by``.

    Each has to have this version of ckpt with its extra ``native``, and to find both checkpoints at their URIs.

    Args:
        session: Which Spark session they belong to.

    Raises:
        SparkMissing, SparkFailed: Once rows are moved: Spark is not installed, or failed; nothing is left then, as far
            as it can be removed.
        UsageError: Likewise: the session is one of Spark Connect, or settings come too late.

    >>> by = ckpt.on_spark(ckpt.Session(master="local[2]"))
    >>> old = "sample_checkpoints/aggregation-hdfs-4.2"
    >>> ckpt.rewrite_checkpoint(old, "memory://on-spark", partitions=5, plan=True, by=by).new.partitions
    5

    """
    return partial(_moved, session)


def _moved(session: Session, move: Move, old: list[Task], new: list[Task]) -> Iterator[Mapping[str, int]]:
    from ckpt.spark.needs import pyspark_version

    pyspark_version()
    from ckpt.spark.session import classic
    from ckpt.spark.session import session as opened
    from ckpt.spark.trouble import spark_failures

    place = json.dumps({**move.place(), **{name: _absolute(move.place()[name]) for name in ("uri", "into")}})
    spread = {task[:2] for task in old}
    alone, wanted = ([task for task in new if (task[:2] in spread) is spreads] for spreads in (False, True))
    with opened(session.master, session.confs or {}, delta=False, given=session.spark) as spark:
        context = classic(spark).sparkContext
        try:
            with spark_failures("rewriting state"):
                done = context.parallelize(alone, max(len(alone), 1)).map(partial(moved_there, place)).collect()
                if old:
                    numbers = {task: number for number, task in enumerate(wanted)}
                    parts = context.parallelize(old, len(old)).flatMap(partial(parts_there, place, numbers))
                    made = parts.partitionBy(len(wanted), int).mapPartitionsWithIndex(
                        partial(made_there, place, wanted)
                    )
                    done += made.collect()
            for outcome in done:
                _raise(outcome.refused)
        except BaseException:
            yield from _left(move, new)
            raise
    for outcome in done:
        for task, said in outcome.said:
            move.take(task, said)
        yield outcome.sizes


def moved_there(place: str, task: Task) -> Outcome:
    """What a task of Spark does for a store whose rows stay in their partitions."""
    move = _there(place)
    try:
        return Outcome(_written(move, task, move.made(task)), [(task, move.said(task))])
    except CkptError as error:
        return _refused(error)


def parts_there(place: str, numbers: Mapping[Task, int], task: Task) -> Iterator[tuple[int, _Part]]:
    """What a task of Spark does with an old partition: its rows, by the numbers of the new ones."""
    move, first = _there(place), numbers[task._replace(partition=0)]
    try:
        rows, starts = move.parts(task)
    except CkptError as error:
        yield first, (_refused(error), None)
        return
    yield first, (Outcome({}, [(task, move.said(task))]), None)
    for partition, (start, end) in enumerate(pairwise(starts)):
        if end > start:
            yield first + partition, (None, _packed(rows.part(start, end)))


def made_there(place: str, tasks: list[Task], number: int, parts: Iterable[tuple[int, _Part]]) -> Iterator[Outcome]:
    """What a task of Spark does for a new partition."""
    move, task = _there(place), tasks[number]
    rows: list[Stored] = []
    for _, (outcome, data) in parts:
        if outcome is not None:
            yield outcome
        if data is not None:
            rows.append(_unpacked(data))
    try:
        yield Outcome(_written(move, task, move.filled(task, rows)), [])
    except CkptError as error:
        yield _refused(error)


def _refused(error: CkptError) -> Outcome:
    return Outcome({}, [], (type(error).__module__, type(error).__qualname__, str(error)))


def _raise(refused: tuple[str, str, str] | None) -> None:
    if refused is not None:
        module, name, text = refused
        raise getattr(import_module(module), name)(text)


def _absolute(place: str) -> str:
    local = local_path(place)
    return place if local is None else os.path.abspath(local)


@lru_cache(maxsize=1)
def _opened(place: str, process: int) -> Move:
    return Move.opened(json.loads(place))


def _there(place: str) -> Move:
    """What a Python worker of Spark has opened, without the counts of tasks before."""
    move = _opened(place, os.getpid())
    move.forget()
    return move


def _written(move: Move, task: Task, files: Mapping[str, bytes]) -> dict[str, int]:
    """Write files, and say how large they are; those of an attempt before that failed are removed."""
    from pyspark import TaskContext

    context = TaskContext.get()
    placing = open_new(move.into, move.given)
    if context is not None and context.attemptNumber():
        for path, _ in placing.storage.list_tree().walk():
            if path.startswith(f"{folder_of(*task)}/"):
                placing.writer.remove(path)
    for path, data in files.items():
        placing.put({path: data})
    return placing.sizes


def _left(move: Move, tasks: Iterable[Task]) -> Iterator[Mapping[str, int]]:
    """What tasks have written that failed together."""
    placing = open_new(move.into, move.given)
    folders = tuple(f"{folder_of(*task)}/" for task in tasks)
    for path, info in placing.storage.list_tree().walk():
        if path.startswith(folders):
            yield {path: info.size}


def _packed(rows: Stored) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([rows.keys, rows.values], names=["keys", "values"])
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _unpacked(data: bytes) -> Stored:
    return Stored(*pa.ipc.open_stream(data).read_next_batch().columns)
