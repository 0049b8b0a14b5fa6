"""Which Spark a command has."""

from ckpt.spark.needs import SparkMissing, pyspark_version
from ckpt.versions import NEWEST, Spark


def spark_version(*, needed: bool) -> Spark:
    """The version of Spark that will read; a plan can be made without one."""
    try:
        return pyspark_version()
    except SparkMissing:
        if needed:
            raise
        return NEWEST
