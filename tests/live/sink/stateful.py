"""A stateful query goes back by a batch, into a sink that passes over the batch it has: what one start into noop does.

The sink is one of files: a role of `tests/record/process.py`. Kept is what the start after the rewind failed with, and
how often every number was in the sink after a start into noop and another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ckpt.changes.rewind.plan import RewindPlan
from ckpt.changes.rewind.rewind import rewind
from tests.support.remedies import NOW
from tests.support.spark.mutations import copied

BATCHES, ROWS = 4, 10
NEWEST = BATCHES - 1
NUMBERS = (BATCHES + 1) * ROWS
Answer = dict[str, Any]


class Numbers:
    """Numbers, a file of them in each batch, as Parquet files or in a Delta table; with state without duplicates."""

    most = 1
    """Files in a batch, where a start names no other number."""

    def __init__(
        self,
        spark: Any,
        folder: Path,
        sink: str = "parquet",
        conf: Mapping[str, str] | None = None,
        *,
        stateful: bool = True,
    ) -> None:
        self.spark, self.folder, self.sink, self.stateful = spark.newSession(), folder, sink, stateful
        for key, value in {"spark.sql.shuffle.partitions": "1", **(conf or {})}.items():
            self.spark.conf.set(key, value)

    def add(self, first: int, until: int | None = None) -> None:
        """Write the file of a batch, or those up to another batch."""
        for batch in range(first, first + 1 if until is None else until):
            self.write(batch * ROWS, (batch + 1) * ROWS)

    def write(self, first: int, last: int) -> None:
        """Write numbers into a file."""
        self.spark.range(first, last).coalesce(1).write.mode("append").json(str(self.folder / "in"))

    def read(self, most: int) -> Any:
        """Open the source."""
        return self.spark.readStream.schema("id LONG").option("maxFilesPerTrigger", most).json(str(self.folder / "in"))

    def rows(self, most: int) -> Any:
        """The rows that it writes."""
        rows = self.read(most)
        return rows.dropDuplicates(["id"]) if self.stateful else rows

    def start(self, place: Path, most: int | None = None, *, noop: bool = False) -> str:
        """Run it to the end, or one batch into nothing; what it failed with."""
        self.forget()
        writer = self.rows(most or self.most).writeStream.option("checkpointLocation", str(place / "checkpoint"))
        to = writer.format("noop") if noop else writer.format(self.sink).option("path", str(place / "out"))
        try:
            (to.trigger(once=True) if noop else to.trigger(availableNow=True)).start().awaitTermination(300)
        except Exception as error:
            return str(error)
        return ""

    def forget(self) -> None:
        """Delta keeps tables in memory for an hour, by their path: another driver would not."""
        if self.sink == "delta":
            self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def take_back(self, place: Path, batch: int) -> None:
        """Take a Delta table back to the version that a batch wrote."""
        versions = self.spark.sql(f"DESCRIBE HISTORY delta.`{place / 'out'}`").collect()
        (version,) = [one.version for one in versions if one.operationParameters.get("epochId") == str(batch)]
        self.spark.sql(f"RESTORE TABLE delta.`{place / 'out'}` TO VERSION AS OF {version}")

    def copy(self, place: Path, name: str) -> Path:
        """Checkpoint and output at another place."""
        return copied(place, place.with_name(name))

    def times(self, place: Path) -> dict[int, int]:
        """How often each number is in the output."""
        self.forget()
        rows = self.spark.read.format(self.sink).load(str(place / "out")).collect()
        return dict(sorted(Counter(row.id for row in rows).items()))


def gone_back(query: Numbers, old: Path) -> RewindPlan:
    """Let the query run, and take its newest batch back; then there are new rows."""
    query.add(0, BATCHES)
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
