"""Queries of transformWithState in Python that put out all state of a key: one appends to lists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.spark.queries import STATE_STORES, drain, own_session

COMPACTED = {**STATE_STORES["changelog"], "spark.sql.streaming.stateStore.rocksdb.compactOnCommit": "true"}
SCATTERED = STATE_STORES["rocksdb"]
"""The elements of a list are in one file, or in one for each batch."""


class FileBatches:
    """The session of a query, and the files that it reads: a file in each batch."""

    def __init__(self, spark: Any, folder: Path, conf: dict[str, str]) -> None:
        self._spark, self._folder = own_session(spark, conf, partitions=2), folder / "in"
        self._folder.mkdir()

    def add(self, number: int, rows: int, keys: int) -> None:
        """Add a file with so many rows, of so many keys."""
        lines = (f'{{"k": {row % keys}, "v": {number * 100 + row}}}' for row in range(rows))
        (self._folder / f"{number}.json").write_text("\n".join(lines))

    def start(self, checkpoint: Path, processor: Any) -> dict[int, list[tuple[int, str]]]:
        """Run a processor of (k, all) to the end of the files: of each batch the keys, and their text."""
        source = self._spark.readStream.schema("k INT, v INT").option("maxFilesPerTrigger", 1).json(str(self._folder))
        grouped = source.groupBy("k").transformWithStateInPandas(processor, "k INT, all STRING", "Update", "None")
        batches = drain(grouped, checkpoint, "update")
        return {batch: sorted((row.k, row.all) for row in rows) for batch, rows in batches.items()}


def appending_processor() -> Any:
    """Append values to the list of their key."""
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
