"""Spark's executors as who works on state partition by partition, instead of processes of this machine.

An executor needs this version of ckpt with its extra ``native``, a way to all places at their URIs, and room for one
partition of a store. Importing this imports nothing of Spark.
"""

import os
import pickle
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import methodcaller
from typing import Any, ClassVar, NamedTuple, Self

from ckpt.errors import CkptError
from ckpt.new.exchange import Division, FrameSource
from ckpt.processes import Work
from ckpt.spark.installed import ANY, Session

_FEWEST_SLICES = 64  # where there are so many tasks: executors that are yet to be allocated get some too
_SLICES_EACH = 4  # of a core: those that are done early take from the others


class _Job(NamedTuple):
    """The work of tasks: what they share as a pickle, and the folder from which relative paths of it start."""

    shared: bytes
    folder: str


@dataclass(slots=True)
class Executors:
    """Spark's executors, which do the work of a call that takes this as ``engine``, partition by partition.

    They write the state of ``rewrite``, ``import_state`` and ``write_state``, and read that of ``state_verify``,
    ``state_count``, ``state_diff`` and ``state_keys``. Each executor has to have this version of ckpt with its extra
    ``native``, and to find all places at their URIs.

    The call then raises SparkMissing or SparkFailed if Spark is not installed or failed (of what was written nothing is
    left, as far as it can be removed), and UsageError if the session is one of Spark Connect, or settings come too
    late. A session that is started for the work ends with it, or with a ``with`` statement around several calls.

    >>> executors = ckpt.types.Executors(ckpt.types.Session(master="local[2]"))
    >>> old = "sample_checkpoints/aggregation-hdfs-4.2"
    >>> ckpt.rewrite(old, "memory://on-spark", partitions=5, plan=True, engine=executors).new.partitions
    5
    """

    session: Session = ANY
    writes: ClassVar[bool] = True
    _held: ExitStack | None = field(default=None, init=False)  # what ends with the statement
    _started: Any = field(default=None, init=False)  # the session in it

    def __enter__(self) -> Self:
        self._held = ExitStack()
        return self

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            self._held.close()
        self._held = self._started = None

    def run(
        self, work: Work, shared: Any, tasks: Sequence[Any], *, ordered: bool = False
    ) -> Generator[tuple[Any, Any], None, None]:
        """Run work as a ``ckpt.processes.Runner``, in order. Raises SparkMissing, SparkFailed, UsageError."""
        if tasks:
            job = _Job(pickle.dumps((work, shared)), os.getcwd())
            with self._open_context() as context:
                results = _slice(context, tasks).mapPartitions(partial(_run_tasks, job)).collect()
            yield from ((task, result) for task, own in zip(tasks, results, strict=True) for result in _accept(own))

    def exchange(
        self, division: Division, sources: Sequence[Any], targets: Sequence[Any], frames: Sequence[FrameSource] = ()
    ) -> Generator[tuple[Any, Any], None, None]:
        """Exchange rows by Spark's shuffle. Raises SparkMissing, SparkFailed, UsageError."""
        job = _Job(pickle.dumps((_take, division)), os.getcwd())
        with self._open_context() as context:
            if not sources and not frames:  # nothing is exchanged, so one target after the other is in memory
                yield from _accept(_slice(context, targets).mapPartitions(partial(_make_alone, job)).collect())
                return
            parts = _slice(context, sources).flatMap(partial(_divide, job))
            for frame, source in frames:
                rows = frame.mapInArrow(partial(_divide_frame, job, source), "number int, item binary").rdd
                parts = parts.union(rows.map(_load_item))
            made = parts.partitionBy(len(targets), int).mapPartitionsWithIndex(partial(_make, job, targets))
            results = made.collect()
        yield from _accept(results)

    @contextmanager
    def _open_context(self) -> Iterator[Any]:
        """The Spark context, while its failures are one line."""
        from ckpt.spark.installed import find_pyspark_version

        find_pyspark_version()
        from ckpt.spark.jobs import run_jobs
        from ckpt.spark.session import open_session

        with ExitStack() as stack:
            spark = self._started or (self._held or stack).enter_context(open_session(self.session))
            if self._held is not None:
                self._started = spark
            context = spark.sparkContext
            with run_jobs(spark, "processing state on executors", self.session.watcher):
                yield context


def _slice(context: Any, tasks: Sequence[Any]) -> Any:
    """Tasks as an RDD. A task of Spark costs some ms whatever it does, so it has several where there are many."""
    most = max(_FEWEST_SLICES, _SLICES_EACH * context.defaultParallelism)
    return context.parallelize(tasks, max(min(len(tasks), most), 1))


def _work(job: _Job, use: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """The results of a task, or why it was refused; relative paths are as for whoever has asked."""
    try:
        with chdir(job.folder) if os.path.isdir(job.folder) else nullcontext():
            yield from use(_load(job.shared))
    except CkptError as error:
        yield error


@lru_cache(maxsize=1)
def _load(shared: bytes) -> Any:
    """Open what tasks share, once in a Python worker of Spark."""
    work, own = pickle.loads(shared)
    return work(own)


def _take(division: Division) -> Division:
    return division


def _accept(results: Sequence[Any]) -> Iterator[Any]:
    """Yield the results. Raises the CkptError of the first task that was refused, before any of them."""
    for result in results:
        if isinstance(result, CkptError):
            raise result
    yield from results


def _run_tasks(job: _Job, tasks: Iterable[Any]) -> Iterator[list[Any]]:
    """The results of each task, or why one was refused, after which nothing more is done."""
    return ([*_work(job, methodcaller("__call__", task))] for task in tasks)


def _divide(job: _Job, source: Any) -> Iterator[tuple[int, Any]]:
    """Divide a source: pieces, and in the first target's place its results, or why it was refused."""
    for piece in _work(job, lambda division: division.divide(source)):
        if isinstance(piece, CkptError):
            yield 0, piece
        else:
            number, item = piece
            yield (0, (source, item)) if number is None else (number, item)


def _divide_frame(job: _Job, source: Callable[[int, int, Any], Any], batches: Iterable[Any]) -> Iterator[Any]:
    """Divide a partition of a DataFrame; items are pickled."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    partition, first = context.partitionId() if context else 0, 0
    for batch in batches:
        items = [*_divide(job, source(partition, first, batch))]
        numbers = pa.array([number for number, _ in items], pa.int32())
        data = pa.array([pickle.dumps(item) for _, item in items], pa.binary())
        yield pa.record_batch([numbers, data], names=["number", "item"])
        first += batch.num_rows


def _load_item(row: Any) -> tuple[int, Any]:
    return row.number, pickle.loads(row.item)


def _make(job: _Job, targets: Sequence[Any], number: int, items: Iterable[tuple[int, Any]]) -> Iterator[Any]:
    """Make a target of its pieces, unless a source was refused."""
    pieces = []
    for _, item in items:
        if isinstance(item, bytes):
            pieces.append(item)
        else:
            yield item
            if isinstance(item, CkptError):
                return
    for result in _work(job, lambda division: division.make(targets[number], pieces)):
        yield result if isinstance(result, CkptError) else (targets[number], result)


def _make_alone(job: _Job, targets: Iterable[Any]) -> Iterator[Any]:
    for target in targets:
        yield from _make(job, [target], 0, ())
