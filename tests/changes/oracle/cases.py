"""Which queries have a history, and which plans are made from it.

A history is a real query that ran `LAST + 1` batches of ten rows, one start each, with maintenance every second, and
was copied after each. From the last copy ckpt plans; the copy of the batch that it goes back to is the known answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

LAST = 11
"""The newest batch of a history."""
MINIMUM = "spark.sql.streaming.stateStore.minDeltasForSnapshot"
RETAIN = "spark.sql.streaming.minBatchesToRetain"


@dataclass(frozen=True)
class History:
    """A query, its state store, and settings beside them."""

    query: str
    store: str | None
    deltas: int = 3  # after how many a snapshot is written
    retain: int | None = None  # how many batches are kept
    conf: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        kept = f"-retain-{self.retain}" if self.retain else ""
        return f"{self.query}-{self.store or 'stateless'}-{self.deltas}{kept}"

    @property
    def settings(self) -> dict[str, str]:
        """Of the session, beside those of the store."""
        kept = {} if self.retain is None else {RETAIN: str(self.retain)}
        return {MINIMUM: str(self.deltas), **kept, **self.conf}

    @property
    def absolute(self) -> bool:
        """Whether its operator metadata names schemas by absolute path."""
        return self.query.startswith("transform-with-state")


@dataclass(frozen=True)
class Case:
    """A plan made from the end of a history: go back to a batch, or leave one out."""

    history: History
    way: str  # one of the names below
    batch: int  # the last that counts

    @property
    def name(self) -> str:
        return f"{self.history.name}/{self.way}-{self.batch}"

    @property
    def leaves(self) -> bool:
        """Whether the newer state files are put back after the rewind: the same without them has to be wrong."""
        return self.way == "left"

    @property
    def skips(self) -> bool:
        """Whether a batch is left out."""
        return self.way.startswith("skip")


HISTORIES = (
    History("aggregation", "format2"),
    History("aggregation", "hdfs"),
    History("join", "format2"),
    History("session-window", "changelog"),
    History("aggregation", "changelog"),
    History("windowed-aggregation", "hdfs"),
    History("transform-with-state-event-time", "changelog"),
    History("dedup-within-watermark", "hdfs"),
    History("stateless", None),
    History("join", "hdfs"),
    History("aggregation", "rocksdb"),
    History("dedup-aggregation", "changelog"),
    History("transform-with-state-event-time", "format2"),
    History("pandas-with-state", "hdfs"),
    History("file-source", None),
    History("two-sources", None),
    History("aggregation", "hdfs", deltas=10),
    History("aggregation", "format2", retain=4),
    History("aggregation", "hdfs", retain=4),
    History("session-window", "hdfs"),
    History("windowed-aggregation", "format2"),
    History("windowed-aggregation", "changelog"),
    History("join", "changelog"),
    History("dedup-within-watermark", "format2"),
    History("dedup-aggregation", "hdfs"),
    History("pandas-with-state", "changelog"),
    History("join", "rocksdb"),
    History("session-window", "rocksdb"),
    History("aggregation", "changelog", deltas=10),
)

PLANS = (("new", 7), ("skip-after", 7), ("same", 9))
MORE = (("same", 10), ("new", 4), ("skip-before", 8))
"""For aggregations, whose rows show every mistake at once. A batch is skipped before or after it wrote state."""
LEFT = History("aggregation", "hdfs")
"""With this it is shown that newer state files which are left make rows wrong."""


EXPIRES_LATER = "dedup-within-watermark"
"""Keys that a skipped batch would have let expire are met by the rows of the next one: other duplicates are dropped."""


def cases() -> Iterator[Case]:
    for history in HISTORIES:
        oldest = 0 if history.retain is None else LAST - history.retain + 2
        for way, batch in (*PLANS, *(MORE if history.query == "aggregation" else ())):
            if batch >= oldest and not (way.startswith("skip") and history.query == "file-source"):
                yield Case(history, way, batch)
        if history == LEFT:
            yield Case(history, "left", 4)


def by_name() -> dict[str, Case]:
    return {case.name: case for case in cases()}
