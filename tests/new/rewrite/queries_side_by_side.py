"""Runs queries side by side for some batches: a role of `tests/record/process.py`, which is killed then.

A job has a list of runs: query of `tests.support.spark.queries`, store, settings and checkpoint,
`until`, the batch in which the query is held, and `passed`, a batch whose rows nothing asks for, if there is one. When
all are held, with their state written and nothing committed, it answers with the rows of every batch. Without `until`
each query ends as it should.
"""

from __future__ import annotations

from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

from tests.support.spark import queries

SECONDS = 600
ALONE = ("transform-with-state", "collecting")
"""The first batch of these queries runs before others start: it has a Python worker that must start in ten seconds."""


def answer(spark: Any, job: dict[str, Any], _: Path) -> dict[str, Any]:
    runs, folder = job["runs"], Path(job["inputs"])
    seen: list[dict[int, list[str]]] = [{} for _ in runs]
    held = [Event() for _ in runs]
    handles = []
    for number, run in enumerate(runs):
        handles.append(_start(spark, run, seen[number], held[number], folder))
        while run["query"].startswith(ALONE) and not seen[number] and handles[-1].isActive:
            sleep(0.1)
    errors: dict[int, str] = {}
    for number, handle in enumerate(handles):
        try:
            if runs[number]["until"] is None:
                handle.awaitTermination(SECONDS)
            while runs[number]["until"] is not None and not held[number].wait(0.2):
                if handle.awaitTermination(0.01):  # which raises what it failed with
                    raise RuntimeError("it ended")
        except Exception as error:
            errors[number] = str(error)[:500]
    told = [{"rows": rows, "error": errors.get(number)} for number, rows in enumerate(seen)]
    return {"spark": spark.version, "runs": told}


def _start(spark: Any, run: dict[str, Any], seen: dict[int, list[str]], held: Event, folder: Path) -> Any:
    def keep(rows: Any, batch: int) -> None:
        if batch == run.get("passed"):
            return
        seen[batch] = sorted(map(str, rows.collect()))
        if run["until"] is not None and batch >= run["until"]:
            held.set()
            Event().wait()

    trigger = None if run["until"] is None else {"processingTime": "0 seconds"}
    query = queries.QUERIES[run["query"]]
    return queries.start(
        spark, query, run["checkpoint"], store=run["store"], sink=keep, trigger=trigger, conf=run["conf"], inputs=folder
    )
