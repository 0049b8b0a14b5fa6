"""A query whose state variables, encoded as Avro, get another schema at a restart: transformWithState in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.copies.fill.lists import run_to_the_end
from tests.support.spark.queries import STATE_STORES

KEYS = 6
AVRO = {"spark.sql.streaming.stateStore.encodingFormat": "avro"}
SCHEMAS = ("a INT, s STRING", "a BIGINT, s STRING, x DOUBLE")
"""The schema of both variables until the restart, and after it: one field wider, one more."""


class Changing:
    """The query, and the files that it reads: a file in each batch, with every key in the first ones."""

    def __init__(self, spark: Any, folder: Path, store: str = "changelog") -> None:
        self._spark, self._folder = spark.newSession(), folder / "in"
        self._folder.mkdir()
        for name, value in {"spark.sql.shuffle.partitions": "2", **STATE_STORES[store], **AVRO}.items():
            self._spark.conf.set(name, value)

    def add(self, number: int, keys: int = KEYS) -> None:
        """A file with one row of so many keys."""
        rows = (f'{{"k": {row}, "v": {number * 100 + row}}}' for row in range(keys))
        (self._folder / f"{number}.json").write_text("\n".join(rows))

    def start(self, checkpoint: Path, generation: int) -> dict[int, list[tuple[int, str]]]:
        """Run to the end of the files: of each batch the keys, and all that the state has of each."""
        return run_to_the_end(self._spark, self._folder, _processor(generation), checkpoint)


def _processor(generation: int) -> Any:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    schema = SCHEMAS[generation]

    class Collecting(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.last = handle.getValueState("last", schema)
            self.every = handle.getListState("every", schema)

        def handleInputRows(self, key: tuple[int], rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            before = self.last.get() if self.last.exists() else None
            for frame in rows:
                for value in frame["v"]:
                    row = (int(value), f"v{value}", value / 2)[: 2 + generation]
                    self.last.update(row)
                    self.every.appendValue(row)
            yield pd.DataFrame({"k": [key[0]], "all": [f"{before} {[tuple(row) for row in self.every.get()]}"]})

        def close(self) -> None:
            pass

    return Collecting()
