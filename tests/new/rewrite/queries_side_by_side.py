"""Runs queries side by side for some batches, and then dies.

`python -m tests.new.rewrite.queries_side_by_side INPUTS`.

Reads from standard input a JSON list of runs: query of `tests.support.spark.queries`, store, settings and checkpoint,
`until`, the batch in which the query is held, and `passed`, a batch whose rows nothing asks for, if there is one. When
all are held, with their state written and nothing committed, it prints the rows of every batch, and kills Spark by
SIGKILL. Without `until` each query ends as it should.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

from tests.support.spark import queries

SECONDS = 600
ALONE = ("transform-with-state", "collecting")
"""The first batch of these queries runs before others start: it has a Python worker that must start in ten seconds."""


def main(folder: Path) -> None:
    """Run them all."""
    runs = json.load(sys.stdin)
    conf = {"spark__driver__memory": "3g", "spark__python__daemon__module": "tests.support.spark.daemon"}
    spark = queries.session(app="ckpt-rewrite", **conf)
    spark.sparkContext.setLogLevel("OFF")
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
    sys.stdout.write(json.dumps({"spark": spark.version, "runs": told}) + "\n")
    sys.stdout.flush()
    if any(run["until"] is not None for run in runs):
        os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
        os._exit(0)
    spark.stop()


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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
