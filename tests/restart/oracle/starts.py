"""What a real Spark does when it starts the queries of cases: roles of `tests/record/process.py`."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

from tests.record import process
from tests.restart.oracle import cases, observe
from tests.support.spark import mutations, queries, topics

INPUT_FILES = 20
"""Input files of a file source: those that the samples have read, and some more."""
RECORDS = 200
"""Records of each Kafka topic."""


def answer(spark: Any, job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run the case that a job names."""
    return run(spark, next(case for case in cases.CASES if case.name == job["case"]), job["mode"], folder)


def run(spark: Any, case: cases.Case, mode: str, folder: Path) -> dict[str, Any]:
    """Run one case on a fresh copy of its sample below `folder`, which is removed afterwards."""
    folder.mkdir(parents=True)
    try:
        checkpoint = mutations.copy_of(case.folder, folder / "ck", case.mutations)
        query = queries.QUERIES[case.query]
        if query.inputs:
            queries.write_input_files(folder / "inputs" / query.name, INPUT_FILES)
        answer = observe.observe(
            spark,
            query,
            checkpoint,
            mode,
            store=case.settings,
            batches=case.batches,
            inputs=folder / "inputs",
        )
        died = answer["outcome"] == "fails-at-start"
        if died and mode == "async" and answer["error"] == _refusal(spark, query, case.settings, folder / "empty"):
            answer["outcome"] = "refused"
        return answer
    finally:
        if case.stateful:
            forget_state(spark)
        shutil.rmtree(folder, ignore_errors=True)


def continue_on(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """Start the query of a job on `<folder>/ck`: one batch, then two more; and, if asked, a copy asynchronously.

    The keys of the answer are described in `tests/changes/fixes/async_gap/oracle/README.md`.
    """
    folder, query = Path(job["folder"]), queries.QUERIES[job["query"]]
    how: dict[str, Any] = {"store": job["store"], "inputs": folder / "inputs"}
    if query.inputs:
        queries.write_input_files(folder / "inputs" / query.name, INPUT_FILES)
    try:
        if job["async"]:
            shutil.copytree(folder / "ck", folder / "async")
        first = observe.observe(spark, query, folder / "ck", "sync", **how)
        then = observe.observe(spark, query, folder / "ck", "sync", batches=2, **how)
        answer = {"first": first, "then": then}
        if job["async"]:
            answer["async"] = observe.observe(spark, query, folder / "async", "async", **how)
        return answer
    finally:
        if query.stateful:
            forget_state(spark)


def open_session(scratch: Path, master: str = "local[1]") -> Any:
    """Return the session that all cases of a worker share; each query gets a session of its own below it."""
    spark = process.open_session(scratch, master=master)
    observe.observe(spark, queries.QUERIES["stateless"], scratch / "warm-up", "sync")
    for topic in ("orders", "renamed") if topics.settings() else ():
        topics.fill(spark, topic, RECORDS)
    return spark


def _refusal(spark: Any, query: queries.Query, store: str | None, empty: Path) -> list[str] | None:
    """What Spark says to asynchronous tracking of this query whatever the checkpoint: tried on an empty one."""
    error: list[str] | None = observe.observe(spark, query, empty, "async", store=store)["error"]
    return error


def forget_state(spark: Any) -> None:
    """Let go of loaded state stores, which would otherwise stay until the worker ends."""
    with contextlib.suppress(Exception):
        spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.unloadAll()
