"""Messages made from Spark's exceptions."""

import pytest

from ckpt.spark.jobs import SparkFailed, translate_failures

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
