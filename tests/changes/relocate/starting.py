"""Starts queries in a session, and reads their state."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.spark import answers, queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class What:
    query: str
    store: str
    conf: dict[str, str] = field(default_factory=dict)


def start(spark: SparkSession, what: What, checkpoint: Path, times: int) -> tuple[list[int], str | None]:
    """Start a query some times, one after the other; the batches that this committed, and the error."""
    error, before = None, _committed(checkpoint)
    try:
        for _ in range(times):
            query = queries.QUERIES[what.query]
            queries.start(spark, query, checkpoint, store=what.store, conf=what.conf).awaitTermination()
            _forget_state(spark)
    except Exception as failure:
        error = str(failure)
    return sorted(_committed(checkpoint) - before), error


def read(spark: SparkSession, checkpoint: Path) -> tuple[dict[str, Any] | None, str | None]:
    """Everything that Spark's own state reader says of the newest batch, and the error."""
    try:
        return answers.answer(spark, checkpoint, False)["operators"], None
    except Exception as failure:
        return None, str(failure)


def _committed(checkpoint: Path) -> set[int]:
    return {int(path.name) for path in checkpoint.glob("commits/[0-9]*")}


def _forget_state(spark: SparkSession) -> None:
    """Have the next start load its state from files."""
    stores: Any = getattr(spark.sparkContext._jvm.org.apache.spark.sql.execution.streaming.state, "StateStore$")
    getattr(stores, "MODULE$").unloadAll()
