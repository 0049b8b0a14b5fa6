"""A query that wrote wrong rows for five batches into a table, and then goes back together with it.

The query reads numbers, a file of them in each batch. From batch `GOOD` on its code is wrong, and what it writes and
has in its state is a number that nobody sent. Afterwards every number has to be in the table once, and none of those.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.live.sink.stateful import ROWS

GOOD, BAD = 3, 5
"""Batches before the code was wrong, and with it."""
NEWEST = GOOD + BAD - 1
WRONG = 1_000_000


class Numbers:
    """The query, with its input, checkpoint and Delta table in a folder; with or without state."""

    def __init__(self, spark: Any, folder: Path, *, stateful: bool = True) -> None:
        self.spark, self.stateful = spark.newSession(), stateful
        self.spark.conf.set("spark.sql.shuffle.partitions", "1")
        self.input, self.checkpoint, self.table = folder / "in", folder / "checkpoint", folder / "table"
        self.sent = 0

    def send(self, batches: int = 1) -> None:
        """New numbers, a file for each batch."""
        for _ in range(batches):
            rows = self.spark.range(self.sent, self.sent + ROWS).coalesce(1)
            rows.write.mode("append").json(str(self.input))
            self.sent += ROWS

    def run(self, *, wrong: bool = False, most: int = 1) -> None:
        """Run it over what is there, at most so many files in a batch."""
        reader = self.spark.readStream.schema("id LONG").option("maxFilesPerTrigger", most)
        rows = reader.json(str(self.input)).selectExpr(f"id + {WRONG if wrong else 0} AS id")
        rows = rows.dropDuplicates(["id"]) if self.stateful else rows
        writer = rows.writeStream.format("delta").option("checkpointLocation", str(self.checkpoint))
        writer.trigger(availableNow=True).start(str(self.table)).awaitTermination(300)

    def go_wrong(self) -> None:
        """Let it write `GOOD` batches as it should, and `BAD` others."""
        self.send(GOOD)
        self.run()
        self.send(BAD)
        self.run(wrong=True)

    def sql(self, statement: str) -> list[Any]:
        """Run a statement that may name `{table}`."""
        rows: list[Any] = self.spark.sql(statement.replace("{table}", f"delta.`{self.table}`")).collect()
        return rows

    def version_of(self, batch: int) -> int:
        """The version that a batch of the query wrote."""
        history = self.sql("DESCRIBE HISTORY {table}")
        return int(next(each.version for each in history if each.operationParameters.get("epochId") == str(batch)))

    def moment_after(self, version: int) -> str:
        """A time at which the table had a version."""
        (written,) = [each.timestamp for each in self.sql("DESCRIBE HISTORY {table}") if each.version == version]
        return datetime.fromtimestamp(written.timestamp(), UTC).isoformat()

    def finish(self) -> Counter[int]:
        """Run the right code over everything and more; how often every number is in the table."""
        self.send(2)
        self.run(most=2)
        self.run()
        return self.numbers()

    def numbers(self) -> Counter[int]:
        """How often every number is in the table."""
        return Counter(row.id for row in self.sql("SELECT id FROM {table}"))

    @property
    def all_once(self) -> Counter[int]:
        """Every number that was sent, once."""
        return Counter(range(self.sent))
