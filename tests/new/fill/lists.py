"""A query that appends to lists in state, and puts out all of each: transformWithState in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.spark.queries import STATE_STORES

KEYS, PER_KEY = 5, 3
"""In each file so many rows of so many keys."""

COMPACTED = {**STATE_STORES["changelog"], "spark.sql.streaming.stateStore.rocksdb.compactOnCommit": "true"}
SCATTERED = STATE_STORES["rocksdb"]
"""The elements of a list are in one file, or in one for each batch."""


def run_to_the_end(spark: Any, folder: Path, processor: Any, checkpoint: Path) -> dict[int, list[tuple[int, str]]]:
    """Run a processor of (k, all) over the files of a folder, one a batch: of each batch the keys, and their text."""
    shown: dict[int, list[tuple[int, str]]] = {}

    def keep(rows: Any, batch: int) -> None:
        shown[batch] = sorted((row.k, row.all) for row in rows.collect())

    source = spark.readStream.schema("k INT, v INT").option("maxFilesPerTrigger", 1).json(str(folder))
    grouped = source.groupBy("k").transformWithStateInPandas(processor, "k INT, all STRING", "Update", "None")
    writer = grouped.writeStream.outputMode("update").option("checkpointLocation", str(checkpoint))
    handle = writer.foreachBatch(keep).trigger(availableNow=True).start()
    try:
        assert handle.awaitTermination(180), "it does not end"
    finally:
        handle.stop()
    return shown


class Lists:
    """The query, and the files that it reads: a file in each batch."""

    def __init__(self, spark: Any, folder: Path, conf: dict[str, str]) -> None:
        self._spark, self._folder = spark.newSession(), folder / "in"
        self._folder.mkdir()
        for name, value in {"spark.sql.shuffle.partitions": "2", **conf}.items():
            self._spark.conf.set(name, value)

    def add(self, number: int) -> None:
        """A file."""
        rows = (f'{{"k": {row % KEYS}, "v": {number * 100 + row}}}' for row in range(KEYS * PER_KEY))
        (self._folder / f"{number}.json").write_text("\n".join(rows))

    def start(self, checkpoint: Path) -> dict[int, list[tuple[int, list[int]]]]:
        """Run to the end of the files: of each batch the keys, and all that their lists have."""
        batches = run_to_the_end(self._spark, self._folder, _processor(), checkpoint)
        return {
            batch: [(key, [int(value) for value in text.split()]) for key, text in rows]
            for batch, rows in batches.items()
        }


def _processor() -> Any:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Appending(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.values = handle.getListState("values", "v INT")

        def handleInputRows(self, key: tuple[int], rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            for frame in rows:
                for value in sorted(frame["v"]):
                    self.values.appendValue((int(value),))
            found = " ".join(str(value) for (value,) in self.values.get())
            yield pd.DataFrame({"k": [key[0]], "all": [found]})

        def close(self) -> None:
            pass

    return Appending()
