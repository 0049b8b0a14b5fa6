"""Which Spark a command has."""

from ckpt.export.reading import NEWEST_SPARK
from ckpt.spark.needs import SparkMissing, pyspark_version


def spark_version(*, needed: bool) -> tuple[int, int]:
    """The version of Spark that will read; a plan can be made without one."""
    try:
        return pyspark_version()
    except SparkMissing:
        if needed:
            raise
        return NEWEST_SPARK
