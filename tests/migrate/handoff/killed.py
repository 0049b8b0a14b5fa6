"""Stateful queries that are killed in a batch, `python -m tests.migrate.handoff.killed FOLDER`, and those after them.

The process starts a query on files and one on a Delta table, which hang in batch `KILLED_IN`, after its rows were read
and its state was written; it says `ready` and waits for its SIGKILL. `new` then writes more rows, and gives
`test_killed.py` what was handed over, exported and read.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.migrate.handoff.continuity import handoff, run, snippet
from tests.support.services.delta import delta_settings
from tests.support.spark import queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KILLED_IN = 3
KEYS = 4
OLD, ALL = 12, 20
"""Rows before and after the kill: ids from 0 on, two in each file or version."""


def files(spark: SparkSession, folder: Path) -> tuple[Callable[[int], None], Callable[[], DataFrame]]:
    """What adds rows with two ids, and what reads them, one file a batch."""
    inputs = folder / "input"
    inputs.mkdir(parents=True, exist_ok=True)

    def add(first: int) -> None:
        staged = folder / "next.json"
        staged.write_text("".join(f'{{"id": {number}}}\n' for number in (first, first + 1)))
        os.utime(staged, (first + 1, first + 1))  # read in this order
        staged.rename(inputs / f"{first:02}.json")

    return add, lambda: spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).json(str(inputs))


def delta(spark: SparkSession, folder: Path) -> tuple[Callable[[int], None], Callable[[], DataFrame]]:
    """The same with a version of a table for each."""
    table = str(folder / "table")

    def add(first: int) -> None:
        spark.range(first, first + 2).coalesce(1).write.format("delta").mode("append").save(table)

    options = {"maxFilesPerTrigger": "1", "startingVersion": "0"}
    return add, lambda: spark.readStream.format("delta").options(**options).load(table)


SOURCES = {"files": files, "delta": delta}


def old(spark: SparkSession, folder: Path) -> None:
    """Start both queries, and say `ready` once both hang; never returns."""
    from pyspark.sql import functions as F

    hanging = []
    for name, source in SOURCES.items():
        add, load = source(spark, folder / name)
        for first in range(0, OLD, 2):
            add(first)
        hangs = threading.Event()
        hanging.append(hangs)
        counts = (
            load().groupBy((F.col("id") % KEYS).alias("key")).agg(F.count("*").alias("n"), F.sum("id").alias("sum"))
        )
        writer = counts.writeStream.outputMode("update").foreachBatch(_hanging(hangs))
        writer.option("checkpointLocation", str(folder / name / "old")).start()
    if all(hangs.wait(300) for hangs in hanging):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
    time.sleep(300)


def _hanging(hangs: threading.Event) -> Callable[[DataFrame, int], None]:
    def put(batch: DataFrame, number: int) -> None:
        batch.collect()
        if number == KILLED_IN:
            hangs.set()
            time.sleep(300)

    return put


def new(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Hand over, and read on."""
    from pyspark.sql import functions as F

    import ckpt

    seen: dict[str, Any] = {}
    for name, source in SOURCES.items():
        add, load = source(spark, folder / name)
        for first in range(OLD, ALL, 2):
            add(first)
        checkpoint = folder / name / "old"
        answer = handoff(checkpoint, "-o", "json")
        told = json.loads(answer.stdout)
        state = ckpt.read_state(str(checkpoint), session=spark, batch=told["batch"])
        rows, total = state.agg(F.sum("value_count"), F.sum("value_sum")).first() or (0, 0)
        start: Callable[..., Any] = snippet(checkpoint)["source_0"]
        reading = start(load()) if name == "files" else start(spark, {}).load(str(folder / name / "table"))
        found = {"handoff": told, "exit": answer.exit_code, "state": {"rows": rows, "sum": total}}
        found["batches"] = {
            log: sorted(int(p.name) for p in (checkpoint / log).glob("[0-9]*")) for log in ("offsets", "commits")
        }
        found["new"] = run(reading, folder / name / "new")
        seen[name] = json.loads(json.dumps(found))
    return seen


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    started = queries.session("handoff", "local[1]", **delta_settings(), spark__sql__shuffle__partitions="1")
    started.sparkContext.setLogLevel("ERROR")
    old(started, Path(sys.argv[1]))
