"""Sessions of Spark Connect, which have no JVM that ckpt could ask: state reaches them as Arrow, read without Spark."""

from typing import TYPE_CHECKING, Any

from ckpt.advice import Code, Words, words
from ckpt.errors import LeftToSpark, UsageError, one_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READ_STATE = words("{read} is a data frame of this session", read=Code("ckpt.read_state(CHECKPOINT, session=spark)"))
A_CLASSIC_ONE = words("a classic session ({builder}, spark-submit)", builder=Code("SparkSession.builder.master(...)"))
NO_PLAN = words("it does not show ckpt a query's plan: build it in {session}", session=A_CLASSIC_ONE)
_FOR_ANYTHING_ELSE = words("{read}; for anything else use {session}", read=READ_STATE, session=A_CLASSIC_ONE)


class ConnectSession(UsageError):
    """The session is one of Spark Connect, and what was asked for needs a classic one; the text says what to use."""


def is_connect(spark: Any) -> bool:
    """Tell whether a session has no JVM of its own: it is one of Spark Connect."""
    return not hasattr(spark, "_jsparkSession")


def require_classic(spark: "SparkSession", instead: Words = _FOR_ANYTHING_ELSE) -> "SparkSession":
    """The session, if it has a JVM of its own. Raises ConnectSession, with ``instead``, for Spark Connect."""
    if is_connect(spark):
        raise ConnectSession.of("this is a Spark Connect session: {instead}", instead=instead)
    return spark


def make_frame(spark: "SparkSession", read: Any) -> "DataFrame":
    """Make a data frame of a Connect session of the Arrow table that ``read`` gives.

    Raises what that raises, and UsageError for state of a type that only Spark itself reads, or that the session
    cannot take.
    """
    from pyspark.errors import PySparkException

    try:
        return spark.createDataFrame(read())
    except LeftToSpark as error:
        raise ConnectSession.of(
            "{kind}: only Spark itself reads it, in {session}", kind=error.kind, session=A_CLASSIC_ONE
        ) from error
    except PySparkException as error:
        reason = one_line(str(error))
        raise ConnectSession.of(
            "Spark Connect does not accept this state ({reason}): use {session}", reason=reason, session=A_CLASSIC_ONE
        ) from error
