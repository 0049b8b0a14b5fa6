"""A stateful query goes back by a batch, into a sink that passes over the batch it has: what one start into noop does.

`python -m tests.live.sink.stateful FOLDER`: the sink is one of files. It needs pyspark of any version, and ckpt for the
rewind. Prints, as JSON, the version of Spark, what the start after the rewind failed with, and how often every number
was in the sink after a start into noop and another one.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from ckpt.changes.rewind.plan import RewindPlan
from ckpt.changes.rewind.rewind import rewind
from tests.support.remedies import NOW

BATCHES, ROWS = 4, 10
NEWEST = BATCHES - 1
NUMBERS = (BATCHES + 1) * ROWS
Answer = dict[str, Any]


class Numbers:
    """Numbers without duplicates, a file of them in each batch, as Parquet files or in a Delta table."""

    def __init__(self, spark: Any, folder: Path, sink: str = "parquet", conf: dict[str, str] | None = None) -> None:
        self._spark, self._folder, self._sink = spark.newSession(), folder, sink
        for key, value in {"spark.sql.shuffle.partitions": "1", **(conf or {})}.items():
            self._spark.conf.set(key, value)

    def add(self, batch: int) -> None:
        rows = self._spark.range(batch * ROWS, (batch + 1) * ROWS).coalesce(1)
        rows.write.mode("append").json(str(self._folder / "in"))

    def start(self, place: Path, *, noop: bool = False) -> str:
        """Run it to the end, or one batch into nothing; what it failed with."""
        rows = self._spark.readStream.schema("id LONG").option("maxFilesPerTrigger", "1").json(str(self._folder / "in"))
        writer = rows.dropDuplicates(["id"]).writeStream.option("checkpointLocation", str(place / "checkpoint"))
        to = writer.format("noop") if noop else writer.format(self._sink).option("path", str(place / "out"))
        try:
            (to.trigger(once=True) if noop else to.trigger(availableNow=True)).start().awaitTermination(300)
        except Exception as error:
            return str(error)
        return ""

    def copy(self, place: Path, name: str) -> Path:
        """Checkpoint and output at another place; the log of a sink of files names these by absolute path."""
        to = place.with_name(name)
        shutil.copytree(place, to)
        for file in (to / "out" / "_spark_metadata").glob("[0-9]*"):
            file.write_text(file.read_text().replace(f"{place}/", f"{to}/"))
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        return to

    def times(self, place: Path) -> dict[int, int]:
        """How often each number is in the output."""
        rows = self._spark.read.format(self._sink).load(str(place / "out")).collect()
        return dict(sorted(Counter(row.id for row in rows).items()))


def gone_back(query: Numbers, old: Path) -> RewindPlan:
    """Let the query run, and take its newest batch back; then there are new rows."""
    for batch in range(BATCHES):
        query.add(batch)
    assert query.start(old) == ""
    backup = str(old.with_name("backup"))
    plan, receipt = rewind(str(old / "checkpoint"), to_batch=NEWEST - 1, backup=backup, **NOW)
    assert receipt.applied, receipt.problem
    query.add(BATCHES)
    return plan


def followed(query: Numbers, old: Path) -> Answer:
    """What two copies do: one is started at once, the other into noop first."""
    at_once, through_noop = query.copy(old, "at-once"), query.copy(old, "through-noop")
    answer: Answer = {"at once": query.start(at_once), "noop": query.start(through_noop, noop=True)}
    return answer | {"then": query.start(through_noop), "times": list(query.times(through_noop).values())}


def answer(spark: Any, _: dict[str, Any], folder: Path) -> Answer:
    query = Numbers(spark, folder)
    gone_back(query, folder / "old")
    answer = followed(query, folder / "old")
    answer["at once"] = "state/0/0/" if f"/state/0/0/{BATCHES}.delta" in answer["at once"] else answer["at once"]
    return {"spark": spark.version, **answer}
