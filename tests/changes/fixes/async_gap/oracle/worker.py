"""A Spark session that starts queries on repaired checkpoints: JSON jobs and answers, a line each (see record.py)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.restart.oracle import observe, worker
from tests.support.spark import queries


def run(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    """Start the query of a job on `<folder>/ck`: one batch, then two more; and, if asked, a copy asynchronously.

    The keys of the answer are described in README.md.
    """
    folder, query = Path(job["folder"]), queries.QUERIES[job["query"]]
    how: dict[str, Any] = {"store": job["store"], "inputs": folder / "inputs"}
    if query.inputs:
        queries.write_input_files(folder / "inputs" / query.name, worker.INPUT_FILES)
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
            worker.forget_state(spark)


if __name__ == "__main__":
    worker.serve(run)
