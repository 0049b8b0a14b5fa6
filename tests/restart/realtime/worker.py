"""A Spark session that runs the starts of `cases.py`; see `tests/restart/oracle/worker.py`."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.restart.oracle import observe
from tests.restart.oracle.worker import INPUT_FILES, forget_state, serve, session
from tests.restart.realtime import cases
from tests.support.spark import mutations, queries

SLOTS = "local[6]"  # real-time mode needs one for each partition of each stage


def run(spark: Any, start: cases.Start, folder: Path, prepared: str | None = None) -> dict[str, Any]:
    """Run one start on a fresh copy of its sample below `folder`, which is removed afterwards, or on one prepared."""
    folder.mkdir(parents=True)
    case = start.case
    query = queries.QUERIES[case.query]
    if start.mode == "realtime" and start.updates:
        query = replace(query, output_mode="update")
    try:
        checkpoint = Path(prepared) if prepared else mutations.copy_of(case.folder, folder / "ck", case.mutations)
        if query.inputs:
            queries.write_input_files(folder / "inputs" / query.name, INPUT_FILES)
        sink = start.sink if start.mode == "realtime" else observe.SINK
        return observe.observe(
            spark,
            query,
            checkpoint,
            start.mode,
            store=case.settings,
            inputs=folder / "inputs",
            conf=start.conf,
            sink=sink,
        )
    finally:
        if case.stateful:
            forget_state(spark)
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    by_name = {start.name: start for start in cases.STARTS}
    serve(
        lambda spark, job, folder: run(spark, by_name[job["start"]], folder, job.get("checkpoint")),
        lambda scratch: session(scratch, SLOTS),
    )


if __name__ == "__main__":
    main()
