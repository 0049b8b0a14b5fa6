"""Runs a query whose changelog checkpointing is switched on and off: `python -m tests.migrate.switching FOLDER NAME`.

It stops and starts for every batch. What `ckpt migrate changelog` said at each point, which state files were there, and
the state by Spark's own reader, is written to FOLDER/found.json for `test_changelog.py`. A control is never switched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark.answers import answer
from tests.spark.queries import QUERIES, session, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS: dict[str, tuple[str, tuple[int, int, int], dict[str, str]]] = {
    "aggregation": ("aggregation", (2, 5, 5), {}),
    "join": ("join", (2, 2, 2), {}),
    "transform-with-state": ("transform-with-state-event-time", (2, 2, 2), {}),
    "format2": ("aggregation", (2, 2, 2), {"spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}),
}
"""Queries, how often each is started before the switch to changelogs, after it, and after the switch back, and conf."""


def told(checkpoint: Path, to: str, *words: str) -> dict[str, Any]:
    """What ckpt says of a switch."""
    command = [sys.executable, "-m", "ckpt", "migrate", "changelog", str(checkpoint), "--to", to, "-o", "json", *words]
    document: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    return document


def run(spark: SparkSession, query: str, checkpoint: Path, store: str, times: int, conf: dict[str, str]) -> None:
    """Start a query so many times, each for one batch with rows; a busy machine may be late with a Python worker."""
    for _ in range(times):
        for patience in (*[True] * 8, False):
            try:
                start(spark, QUERIES[query], checkpoint, store=store, conf=conf).awaitTermination(300)
                break
            except Exception as error:
                if "Python worker failed to connect back" not in str(error) or not patience:
                    raise


def files(checkpoint: Path) -> list[str]:
    """All state files."""
    return sorted(str(path.relative_to(checkpoint)) for path in (checkpoint / "state").rglob("*") if path.is_file())


def switched(
    spark: SparkSession, query: str, folder: Path, starts: tuple[int, int, int], conf: dict[str, str]
) -> dict[str, Any]:
    """Off, on, off; what was said and found before and after each switch."""
    checkpoint, format2 = folder / "switched", bool(conf)
    found: dict[str, Any] = {"switches": []}
    run(spark, query, checkpoint, "rocksdb", starts[0], conf)
    for to, store, times in (("on", "changelog", starts[1]), ("off", "rocksdb", starts[2])):
        before = answer(spark, checkpoint, format2)
        one = {"to": to, "before": told(checkpoint, to), "too_early": told(checkpoint, to, "--verify")}
        run(spark, query, checkpoint, store, 1, conf)
        one |= {"after": told(checkpoint, to, "--verify"), "files": files(checkpoint)}
        run(spark, query, checkpoint, store, times - 1, conf)
        one |= {"later": told(checkpoint, to, "--verify"), "again": told(checkpoint, to)}
        one |= {"state": before, "state_read_later": answer(spark, checkpoint, format2, before["batch"])}
        found["switches"].append(one)
    run(spark, query, folder / "control", "rocksdb", sum(starts), conf)
    return found | {"state": answer(spark, checkpoint, format2), "control": answer(spark, folder / "control", format2)}


def main(folder: Path, name: str) -> None:
    """Run one of `RUNS`."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session(master="local[1]", spark__python__authenticate__socketTimeout="120s")
    spark.sparkContext.setLogLevel("ERROR")
    query, starts, conf = RUNS[name]
    (folder / "found.json").write_text(json.dumps(switched(spark, query, folder, starts, conf)))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
