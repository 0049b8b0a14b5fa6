"""Jobs of Spark: how far they are, from its own counts of tasks; their end when somebody interrupts; their errors."""

import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession, functions as F

from ckpt.errors import one_line
from ckpt.spark.installed import SparkFailed, Watcher
from ckpt.texts import mask_secrets

_EVERY_SECONDS = 0.25
_LONGEST = 400
_WORKER_ENDED = re.compile(
    r"Python worker exited unexpectedly|pyspark\.daemon's stdout"
    r"|(?:Broken pipe|Connection reset)[^\n]*\n(?s:.*?)\n\tat org\.apache\.spark\.api\.python\."
)
"""Said by ``org.apache.spark.api.python.BasePythonRunner`` and ``PythonWorkerFactory``, or thrown in the former."""


@contextmanager
def translate_failures(doing: str) -> Iterator[None]:
    """Turn whatever Spark throws into SparkFailed: ``doing`` says what was tried."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkFailed(f"{doing} failed in Spark: {words_of(error)}") from error


def words_of(error: Exception) -> str:
    """The message that says most: that of the innermost cause that has an error condition, or of the last cause.

    Where a Python worker is gone, that; the causes say what it did to the JVM, such as an ``EOFException``.
    """
    if isinstance(error, Py4JJavaError):
        messages = [str(cause.toString()) for cause in list_causes(error.java_exception)]
    else:
        messages = [str(error)]
    if any(_WORKER_ENDED.search(message) for message in messages):
        return "a Python worker ended before its task did: it crashed or was killed, perhaps because of its memory use"
    named = [message for message in messages if re.search(r"\[[A-Z][A-Z0-9_.]{4,}\]", message)]
    text = _shorten_traceback((named or messages)[-1])
    first = re.split(r"\n\s*(?:at |JVM stacktrace|Driver stacktrace)|\nCaused by", text.strip())[0]
    line = one_line(mask_secrets(" ".join(first.split())))
    return line if len(line) <= _LONGEST else line[:_LONGEST] + " ..."


def _shorten_traceback(text: str) -> str:
    """Shorten a Python worker's traceback to its last line, which says what it was; leave other text as it is."""
    _, mark, traceback = text.partition("Traceback (most recent call last):")
    lines = re.split(r"\n\s*\n?\tat ", traceback)[0].split("\n")
    messages = [line for line in lines if line and not line[0].isspace()]
    return f"in a Python worker: {messages[-1]}" if mark and messages else text


def list_causes(thrown: Any) -> Iterator[Any]:
    """An exception of the JVM, and its causes."""
    for _ in range(20):
        if thrown is None:
            return
        yield thrown
        thrown = thrown.getCause()


@contextmanager
def run_jobs(spark: SparkSession, doing: str, watcher: Watcher | None) -> Iterator[None]:
    """Run jobs in a group of their own, tell ``watcher`` of their tasks, and cancel them when anything is raised.

    Raises SparkFailed as ``translate_failures`` does.
    """
    context = spark.sparkContext
    group = f"ckpt-{uuid.uuid4().hex}"
    context.setJobGroup(group, doing)
    done = threading.Event()
    thread = threading.Thread(target=_report_tasks, args=(context, group, watcher, done), daemon=True)
    if watcher is not None:
        thread.start()
    try:
        with translate_failures(doing):
            yield
    except BaseException:
        context._jsc.sc().cancelJobGroupAndFutureJobs(group)  # the JVM may be about to start one
        raise
    finally:
        done.set()
        if watcher is not None:
            thread.join()
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


def _report_tasks(context: Any, group: str, watcher: Watcher, done: threading.Event) -> None:
    tracker = context.statusTracker()
    while not done.wait(_EVERY_SECONDS):
        finished = total = 0
        for job in tracker.getJobIdsForGroup(group):
            job_info = tracker.getJobInfo(job)
            for stage in job_info.stageIds if job_info else ():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    finished += info.numCompletedTasks
                    total += info.numTasks
        if total:
            watcher(finished, total)


def write_counted(
    spark: SparkSession, frame: DataFrame, doing: str, watcher: Watcher | None, save: Callable[[Any], None]
) -> int:
    """Have ``save`` write a frame with its writer, and count the rows on the way. Raises SparkFailed."""
    rows = Observation()
    with run_jobs(spark, doing, watcher):
        save(frame.observe(rows, F.count(F.lit(1)).alias("rows")).write)
        return int(rows.get["rows"])
