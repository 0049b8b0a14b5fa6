"""Messages made from Spark's exceptions."""

import os
from typing import Any

import pytest

from ckpt.spark.installed import SparkFailed
from ckpt.spark.jobs import run_jobs, translate_failures

pyspark = pytest.importorskip("pyspark")
TRACEBACK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "pyspark/worker.py", line 3622, in main
    process()
  File "<stdin>", line 6, in f
ModuleNotFoundError: No module named 'ckpt'"""
"""As Spark 4.2.0 tells it where an executor lacks a package."""


@pytest.mark.parametrize("more", ["", "\n\n\tat org.apache.spark.api.python.BasePythonRunner.x(PythonRunner.scala:1)"])
def test_of_a_python_worker_the_error_is_told(more: str) -> None:
    with pytest.raises(SparkFailed) as told, translate_failures("rewriting state"):
        raise pyspark.errors.PySparkException(TRACEBACK + more)
    wanted = "rewriting state failed in Spark: in a Python worker: ModuleNotFoundError: No module named 'ckpt'"
    assert str(told.value) == wanted


def _end(task: int) -> None:
    os._exit(task)


@pytest.mark.spark
def test_a_worker_that_is_gone_is_told(spark: Any) -> None:
    told = "working failed in Spark: a Python worker ended before its task did: it crashed or was killed, perhaps"
    with pytest.raises(SparkFailed, match=told), run_jobs(spark, "working", None):
        spark.sparkContext.parallelize([3], 1).map(_end).collect()


@pytest.mark.parametrize(
    "words",
    [
        "SparkException: EOFException occurred while reading the port number from pyspark.daemon's stdout.",
        "java.io.IOException: Broken pipe\n\tat sun.nio.X.write0(Native)\n\tat org.apache.spark.api.python.Y.z(a:1)",
    ],
)
def test_a_worker_that_is_gone_is_known_by_what_the_jvm_met(words: str) -> None:
    with pytest.raises(SparkFailed, match="a Python worker ended"), translate_failures("working"):
        raise pyspark.errors.PySparkException(words)


def test_another_pipe_is_not_taken_for_a_worker() -> None:
    with pytest.raises(SparkFailed, match="IOException: Broken pipe"), translate_failures("working"):
        raise pyspark.errors.PySparkException("java.io.IOException: Broken pipe\n\tat org.apache.hadoop.hdfs.X.y(a:1)")
