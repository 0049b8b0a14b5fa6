"""Spark's daemon of Python workers with pandas loaded before it forks them, which saves each of them a second of CPU.

Sessions name it in `spark.python.daemon.module`.
"""

import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.sql.pandas.serializers  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
