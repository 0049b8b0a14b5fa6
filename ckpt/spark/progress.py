"""How far a job is, from Spark's own counts of tasks; and its end when somebody interrupts."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

Watcher: TypeAlias = Callable[[int, int], None]
"""Told now and then how many tasks of the running stages are done, and of how many."""

_EVERY_SECONDS = 0.25


@contextmanager
def watch_jobs(spark: SparkSession, doing: str, watcher: Watcher | None) -> Iterator[None]:
    """Run jobs in a group of their own, tell ``watcher`` of their tasks, and cancel them when anything is raised."""
    context = spark.sparkContext
    group = f"ckpt-{uuid.uuid4().hex}"
    context.setJobGroup(group, doing)
    done = threading.Event()
    thread = threading.Thread(target=_report_tasks, args=(context, group, watcher, done), daemon=True)
    if watcher is not None:
        thread.start()
    try:
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
