"""Where the input of the continuity cases lies: a folder of files, a Delta table, a topic; unit by unit."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.migrate.continuity_input import SCHEMA, units

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCES = ("files", "delta", "kafka")
PER_UNIT = 12


@dataclass(frozen=True)
class Input:
    """One place for each source, below a folder; the topic is named after it."""

    folder: Path

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def table(self) -> Path:
        return self.folder / "table"

    @property
    def topic(self) -> str:
        return f"continuity-{os.getpid()}" if not self._topic.exists() else self._topic.read_text()

    @property
    def _topic(self) -> Path:
        return self.folder / "topic"

    def add(self, spark: SparkSession, first: int, last: int, sources: set[str]) -> None:
        """Write units `first` to `last` - 1."""
        self.files.mkdir(parents=True, exist_ok=True)
        self._topic.write_text(self.topic)
        for number, rows in enumerate(units(first, last), first):
            lines = [json.dumps(row.fields) for row in rows]
            if "files" in sources:
                file = self.files / f"{number}.json"
                file.write_text("\n".join(lines) + "\n")
                os.utime(file, (number * 10 + 1_700_000_000,) * 2)  # read in this order
            frame = spark.createDataFrame([(line, row.partition) for line, row in zip(lines, rows, strict=True)])
            frame = frame.toDF("value", "partition").coalesce(1)
            if "delta" in sources:
                frame.selectExpr(f"inline(array({PARSED}))").write.format("delta").mode("append").save(str(self.table))
            if "kafka" in sources:
                frame = frame.selectExpr("CAST(NULL AS STRING) AS key", "value", "CAST(partition AS INT) AS partition")
                frame.write.format("kafka").options(**servers(), topic=self.topic).save()

    def options(self, source: str) -> dict[str, str]:
        """What the old reader is given, so that each batch reads one unit."""
        return {
            "files": {"maxFilesPerTrigger": "1"},
            "delta": {"maxFilesPerTrigger": "1", "startingVersion": "0"},
            "kafka": {
                **servers(),
                "subscribe": self.topic,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(PER_UNIT),
            },
        }[source]

    def path(self, source: str) -> str:
        """What `load` is given; empty for Kafka."""
        return {"files": str(self.files), "delta": str(self.table), "kafka": ""}[source]

    def read(self, spark: SparkSession, source: str) -> DataFrame:
        """The rows as a stream, with the columns of `SCHEMA`."""
        reader = spark.readStream.options(**self.options(source))
        if source == "kafka":
            return reader.format("kafka").load().selectExpr(f"inline(array({PARSED}))")
        if source == "delta":
            return reader.format("delta").load(self.path(source))
        return reader.format("json").schema(SCHEMA).load(self.path(source))


PARSED = f"from_json(CAST(value AS STRING), '{SCHEMA}')"


def servers() -> dict[str, str]:
    """The broker of the test run."""
    return {"kafka.bootstrap.servers": os.environ.get("CKPT_KAFKA", "")}
