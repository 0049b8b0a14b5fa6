"""State moved by the executors of Spark, which write the new checkpoint themselves: for more than one machine takes.

Rows that change their partition go through Spark's shuffle. Importing this imports nothing of Spark.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import pairwise
from typing import TypeAlias

import pyarrow as pa

from ckpt.copies.rewrite.moving import Move, Task
from ckpt.copies.rewrite.stored_rows import Stored
from ckpt.errors import CkptError
from ckpt.spark.calls import Session
from ckpt.spark.tasks import TaskOutcome, absolute, left, raise_refused, refused, written

_Part: TypeAlias = tuple[TaskOutcome | None, bytes | None]
"""What came of an old partition, or None; and its rows for a new one, as Arrow's stream, or None."""


def moved(session: Session, move: Move, old: list[Task], new: list[Task]) -> Iterator[Mapping[str, int]]:
    """Have executors move the rows. Raises CkptError."""
    from ckpt.spark.installed import pyspark_version

    pyspark_version()
    from ckpt.spark.errors import spark_failures
    from ckpt.spark.session import classic
    from ckpt.spark.session import session as opened

    place = json.dumps({**move.place(), **{name: absolute(move.place()[name]) for name in ("uri", "into")}})
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
            raise_refused(done)
        except BaseException:
            yield from left(move.into, move.given, new)
            raise
    for outcome in done:
        for task, said in outcome.said:
            move.take(task, said)
        yield outcome.sizes


def moved_there(place: str, task: Task) -> TaskOutcome:
    """Move a store whose rows stay in their partitions, as a task of Spark."""
    move = _there(place)
    try:
        return TaskOutcome(written(move.into, move.given, {task: move.made(task)}), [(task, move.said(task))])
    except CkptError as error:
        return refused(error)


def parts_there(place: str, numbers: Mapping[Task, int], task: Task) -> Iterator[tuple[int, _Part]]:
    """Divide an old partition by the numbers of the new ones, as a task of Spark."""
    move, first = _there(place), numbers[task._replace(partition=0)]
    try:
        rows, starts = move.parts(task)
    except CkptError as error:
        yield first, (refused(error), None)
        return
    yield first, (TaskOutcome({}, [(task, move.said(task))]), None)
    for partition, (start, end) in enumerate(pairwise(starts)):
        if end > start:
            yield first + partition, (None, _packed(rows.part(start, end)))


def made_there(place: str, tasks: list[Task], number: int, parts: Iterable[tuple[int, _Part]]) -> Iterator[TaskOutcome]:
    """Write a new partition, as a task of Spark."""
    move, task = _there(place), tasks[number]
    rows: list[Stored] = []
    for _, (outcome, data) in parts:
        if outcome is not None:
            yield outcome
        if data is not None:
            rows.append(_unpacked(data))
    try:
        yield TaskOutcome(written(move.into, move.given, {task: move.filled(task, rows)}), [])
    except CkptError as error:
        yield refused(error)


@lru_cache(maxsize=1)
def _opened(place: str, process: int) -> Move:
    return Move.opened(json.loads(place))


def _there(place: str) -> Move:
    """Open the storage of a Python worker of Spark, once, and forget the counts of tasks before."""
    move = _opened(place, os.getpid())
    move.forget()
    return move


def _packed(rows: Stored) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([rows.keys, rows.values], names=["keys", "values"])
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _unpacked(data: bytes) -> Stored:
    return Stored(*pa.ipc.open_stream(data).read_next_batch().columns)
