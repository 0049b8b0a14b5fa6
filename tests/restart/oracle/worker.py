"""A Spark session that runs cases: JSON jobs on standard input, JSON answers on standard output, a line each.

Started by record.py under the Python that has the Spark version wanted; everything else that is printed goes
to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.restart.oracle import cases, observe
from tests.support.spark import mutations, queries, topics

INPUT_FILES = 20
"""Input files of a file source: those that the samples have read, and some more."""
RECORDS = 200
"""Records of each Kafka topic."""


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


def session(scratch: Path, master: str = "local[1]") -> Any:
    """Return the session that all cases of a worker share; each query gets a session of its own below it."""
    spark = queries.session(
        app="ckpt-oracle",
        master=master,
        spark__driver__extraJavaOptions="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # many short queries
        spark__local__dir=str(scratch / "local"),
        spark__sql__warehouse__dir=str(scratch / "warehouse"),
        spark__ui__showConsoleProgress="false",
        spark__python__authenticate__socketTimeout="120s",
        **topics.settings(),
    )
    spark.sparkContext.setLogLevel("OFF")
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


def serve(
    answer_to: Callable[[Any, dict[str, Any], Path], dict[str, Any]],
    open_session: Callable[[Path], Any] = session,
) -> None:
    """Answer jobs until standard input ends. `answer_to` gets the session, the job, and a folder not yet made."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    scratch = Path(tempfile.mkdtemp(prefix="ckpt-oracle-"))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = open_session(scratch)
    try:
        print(json.dumps({"spark": spark.version}), file=answers)
        for number, line in enumerate(sys.stdin):
            answer = answer_to(spark, json.loads(line), scratch / f"{number}")
            print(json.dumps(answer, sort_keys=True), file=answers)
    finally:
        spark.stop()
        shutil.rmtree(scratch, ignore_errors=True)


def main() -> None:
    by_name = {case.name: case for case in cases.CASES}
    serve(lambda spark, job, folder: run(spark, by_name[job["case"]], job["mode"], folder))


if __name__ == "__main__":
    main()
