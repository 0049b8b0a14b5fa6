"""A query that wrote wrong rows for five batches into a table, and then goes back together with it.

The query reads numbers, a file of them in each batch. From batch `GOOD` on its code is wrong, and what it writes and
has in its state is a number that nobody sent. Afterwards every number has to be in the table once, and none of those.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ckpt
from ckpt.changes.rewind.rewind import restore_table
from tests.live.sink.stateful import ROWS, Numbers

GOOD, BAD = 3, 5
"""Batches before the code was wrong, and with it."""
NEWEST = GOOD + BAD - 1
WRONG = 1_000_000


class Mistaken(Numbers):
    """The query, with its input and checkpoint in a folder, and its Delta table there or elsewhere."""

    def __init__(self, spark: Any, folder: Path, *, stateful: bool = True, table: str | None = None) -> None:
        super().__init__(spark, folder, "delta", stateful=stateful)
        self.checkpoint, self.table = folder / "checkpoint", table or str(folder / "table")
        self.sent, self._error = 0, 0

    def send(self, batches: int = 1) -> None:
        """New numbers, a file for each batch."""
        first = self.sent // ROWS
        self.add(first, first + batches)
        self.sent += batches * ROWS

    def read(self, most: int) -> Any:
        return super().read(most).selectExpr(f"id + {self._error} AS id")

    def run(self, *, wrong: bool = False, most: int = 1) -> None:
        """Run it over what is there, at most so many files in a batch."""
        self._error = WRONG if wrong else 0
        writer = self.rows(most).writeStream.format("delta").option("checkpointLocation", str(self.checkpoint))
        writer.trigger(availableNow=True).start(self.table).awaitTermination(300)

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


def go_back_together(query: Mistaken, sink: str) -> dict[str, Any]:
    """Let a query go wrong and back by ckpt, together with its table; the plan is refused once, for a commit of others.

    ``sink`` is the table as ckpt is given it. Returns what came of it.
    """
    query.go_wrong()
    how: Any = {"to_sink_version": query.version_of(GOOD - 1), "sink": sink, "restore_sink": True, "replay": "new"}
    table = ckpt.rewind(str(query.checkpoint), **how).plan.table
    assert table is not None
    query.sql("DELETE FROM {table} WHERE id = 0")
    held = None
    try:
        restore_table(table, {})
    except ckpt.CkptError as error:
        held = str(error)
    _, receipt = ckpt.rewind(str(query.checkpoint), apply=True, grace=0, accept_skip=True, **how)
    times = query.finish()
    return {
        "statement": table.statement,
        "held": held,
        "problem": receipt.problem,
        "sent": query.sent,
        "once": times == query.all_once,
    }


if __name__ == "__main__":
    from tests.support.spark.queries import session

    asked = json.load(sys.stdin)
    started = session("restored", **{key.replace(".", "__"): value for key, value in asked["settings"].items()})
    query = Mistaken(started, Path(asked["folder"]), table=asked["table"])
    sys.stdout.write("\n" + json.dumps(go_back_together(query, asked["sink"])) + "\n")
    started.stop()
