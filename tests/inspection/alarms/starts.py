"""Starts queries on damaged samples, batch after batch: a role of `tests/record/process.py`."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.inspection.alarms.damages import STARTED, Damage, damages
from tests.restart.oracle import observe
from tests.restart.oracle.cases import SAMPLES
from tests.restart.oracle.starts import forget_state
from tests.support.spark import mutations, queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STARTS = 2
INPUT_FILES = 14
"""Input files of a file source: those that the samples have read, and two more."""
_MOST_BATCHES = 8
_PATIENCE_S = 25


def answer(spark: Any, job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run the damage that a job names."""
    return run(spark, next(damage for damage in damages() if damage.name == job["damage"]), folder)


def run(spark: Any, damage: Damage, folder: Path) -> dict[str, Any]:
    """Start the query of a sample on a damaged copy, again and again: a fingerprint of the rows of each batch.

    ``error`` is what the last start ended with, and None if each ran.
    """
    folder.mkdir(parents=True)
    sample = STARTED[damage.sample]
    query = queries.QUERIES[sample.query]
    checkpoint = mutations.copy_of(SAMPLES / damage.sample, folder / "ck", damage.mutations)
    if query.inputs:
        queries.write_input_files(folder / "inputs" / query.name, INPUT_FILES)
    rows: dict[str, str] = {}
    error: list[str] | None = None
    try:
        for _ in range(STARTS):
            error = _start(spark, query, checkpoint, None if sample.store == "hdfs" else sample.store, folder, rows)
            forget_state(spark)
            if error is not None:
                break
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"rows": rows, "error": error and error[-1][:200]}


def _start(
    spark: Any, query: queries.Query, checkpoint: Path, store: str | None, folder: Path, rows: dict[str, str]
) -> list[str] | None:
    def keep(batch: DataFrame, number: int) -> None:
        if len(rows) < _MOST_BATCHES:
            text = "\n".join(sorted(map(str, batch.collect())))
            rows[str(number)] = hashlib.sha256(text.encode()).hexdigest()[:8] if text else ""

    try:
        handle = queries.start(spark, query, checkpoint, store=store, sink=keep, inputs=folder / "inputs")
    except Exception as failure:
        return [observe.neutral(str(failure).splitlines()[0], checkpoint)]
    try:
        ended = handle.awaitTermination(_PATIENCE_S)
    except Exception:
        return observe._failure(handle._jsq.streamingQuery(), checkpoint)
    handle.stop()
    return None if ended else ["it did not end"]
