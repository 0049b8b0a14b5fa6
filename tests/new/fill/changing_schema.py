"""A query whose state variables, encoded as Avro, get another schema at a restart: transformWithState in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.new.fill.lists import run_to_the_end
from tests.support.spark.pandas_state import collecting_processor
from tests.support.spark.queries import STATE_STORES

KEYS = 6
AVRO = {"spark.sql.streaming.stateStore.encodingFormat": "avro"}


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
        return run_to_the_end(self._spark, self._folder, collecting_processor(generation), checkpoint)
