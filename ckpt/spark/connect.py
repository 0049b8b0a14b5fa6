"""Sessions of Spark Connect, which have no JVM that ckpt could ask: state reaches them as Arrow, read without Spark."""

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ckpt.errors import LeftToSpark, UsageError, one_line

READ_STATE = "`ckpt.read_state(spark, CHECKPOINT)` is a data frame of this session"
A_CLASSIC_ONE = "a classic session (`SparkSession.builder.master(...)`, spark-submit)"
NO_PLAN = f"it shows ckpt no plan of a query: build it in {A_CLASSIC_ONE}"


class ConnectSession(UsageError):
    """The session is one of Spark Connect, and what was asked for needs a classic one; the text says what to use."""


def is_connect(spark: Any) -> bool:
    """Tell whether a session has no JVM of its own: it is one of Spark Connect."""
    return not hasattr(spark, "_jsparkSession")


def require_classic(
    spark: SparkSession, instead: str = f"{READ_STATE}; for anything else use {A_CLASSIC_ONE}"
) -> SparkSession:
    """The session, if it has a JVM of its own. Raises ConnectSession, with ``instead``, for Spark Connect."""
    if is_connect(spark):
        raise ConnectSession(f"this is a session of Spark Connect: {instead}")
    return spark


def make_frame(spark: SparkSession, read: Any) -> DataFrame:
    """Make a data frame of a Connect session of the Arrow table that ``read`` gives.

    Raises what that raises, and UsageError for state of a type that only Spark itself reads, or that the session
    cannot take.
    """
    try:
        return spark.createDataFrame(read())
    except LeftToSpark as error:
        raise ConnectSession(f"{error.kind}: only Spark itself reads it, in {A_CLASSIC_ONE}") from error
    except PySparkException as error:
        reason = one_line(str(error))
        raise ConnectSession(f"Spark Connect does not take this state ({reason}): use {A_CLASSIC_ONE}") from error
