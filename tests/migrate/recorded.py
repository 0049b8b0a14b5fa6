"""Starts queries in sessions that ask for another state store provider.

Of each checkpoint one gets the endings of its state files and the recorded provider, before and after, and what the
query gave; a new checkpoint shows what the session would have had.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.places import SAMPLES
from tests.support.spark.answers import answer
from tests.support.spark.queries import QUERIES, STATE_STORES, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = {"hdfs": ("aggregation-hdfs-4.2", "rocksdb"), "rocksdb": ("aggregation-rocksdb-4.2", "hdfs")}
"""Samples by the provider they have, and what the session asks for."""

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def seen(checkpoint: Path) -> dict[str, Any]:
    latest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    conf = json.loads(latest.read_text().splitlines()[1])["conf"]
    newest = f"{int(latest.name) + 1}."
    names = sorted(path.name for path in (checkpoint / "state/0/0").iterdir() if path.name.startswith(newest))
    return {"batch": int(latest.name), "recorded": conf[_PROVIDER], "newest": names}


def run(spark: SparkSession, checkpoint: Path, store: str) -> dict[str, Any]:
    """Start the query for one batch, in a session that asks for ``store``."""
    start(spark, QUERIES["aggregation"], checkpoint, store=store).awaitTermination(300)
    return {"asked": STATE_STORES[store][_PROVIDER], **seen(checkpoint)}


def samples(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Run both samples, twice each, and a new checkpoint beside each."""
    found = {}
    for name, (sample, store) in RUNS.items():
        checkpoint = Path(shutil.copytree(SAMPLES / sample, folder / name))
        before = seen(checkpoint)
        after = [run(spark, checkpoint, store) for _ in range(2)]
        fresh = run(spark, folder / f"new-{name}", store)
        state = answer(spark, checkpoint, format2=False)["operators"]["0"]["views"][0]["rows"]
        rows = sum(value for row in state for key, value in row["value"].items() if key == "count")
        found[name] = {"before": before, "after": after, "fresh": fresh, "rows": rows}
    return found
