"""Runs the starts of `cases.py`: a role of `tests/record/process.py`, with a core for each partition of each stage."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.restart.oracle import observe
from tests.restart.oracle.starts import INPUT_FILES, forget_state
from tests.restart.realtime import cases
from tests.support.spark import mutations, queries


def answer(spark: Any, job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run the start that a job names."""
    start = next(start for start in cases.STARTS if start.name == job["start"])
    return run(spark, start, folder, job.get("checkpoint"))


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
