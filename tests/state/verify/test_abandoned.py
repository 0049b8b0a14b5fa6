"""A query that somebody took back by hand, leaving newer state: what ckpt says, what Spark does, and what helps."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import ckpt
from tests.support.remedies import NOW
from tests.support.spark import queries

pytestmark = pytest.mark.spark
KEYS = 100  # more than a few batches touch


@dataclass
class Life:
    """A count of numbers by their remainder. Each start is as in a process of its own."""

    spark: Any
    store: str
    source: Path
    checkpoint: Path
    sink: dict[int, int] = field(default_factory=dict)  # the last count of each key

    def run(self, files: int, at_once: int, maintenance: str = "1h") -> None:
        """Read so many more files, some in each batch, and all that is not read yet."""
        self.source.mkdir(exist_ok=True)
        there = len([*self.source.iterdir()])
        for number in range(there, there + files):
            (self.source / f"{number}.txt").write_text("".join(f"{number * 7 + i}\n" for i in range(7)))

        def upsert(batch: Any, _: int) -> None:
            self.sink |= {row["key"]: row["count"] for row in batch.collect()}

        def build(own: Any, _: Path) -> Any:
            lines = own.readStream.option("maxFilesPerTrigger", at_once).text(str(self.source))
            return lines.selectExpr(f"int(value) % {KEYS} AS key").groupBy("key").count()

        query = queries.Query("abandoned", build, "update")
        conf = {"maintenanceInterval": maintenance, "minDeltasForSnapshot": "2"}
        conf["maintenanceShutdownTimeout"] = "5s"  # its stop holds the lock that a running maintenance waits for
        settings = {f"spark.sql.streaming.stateStore.{name}": value for name, value in conf.items()}
        self._forget_stores()
        handle = queries.start(self.spark, query, self.checkpoint, store=self.store, sink=upsert, conf=settings)
        try:
            assert handle.awaitTermination(120), "it does not end"
        finally:
            handle.stop()
            self._forget_stores()

    def _forget_stores(self) -> None:
        """Stop maintenance, which keeps the interval of the first query, and forget what is loaded."""
        self.spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()

    def go_back_by_hand(self, batch: int) -> None:
        """Remove later batches from the logs, and leave their state."""
        for folder in ("offsets", "commits", "sources/0"):
            for path in (self.checkpoint / folder).iterdir():
                if path.name.isdecimal() and int(path.name) > batch:
                    path.unlink()
                    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    @property
    def is_right(self) -> bool:
        """True if each key counts the numbers of all files, once."""
        return self.sink == Counter(number % KEYS for number in range(7 * len([*self.source.iterdir()])))


def find_deep(checkpoint: Path) -> dict[str, Any]:
    """The findings of reading every byte, by their code."""
    inspection = ckpt.inspect(ckpt.state_verify(str(checkpoint)).checkpoint)
    return {rated.finding.diagnosis.code: rated.finding for rated in inspection.findings}


@pytest.mark.parametrize(("store", "kind"), [("changelog", "zip"), ("hdfs", "snapshot")])
def test_it_is_seen_before_rows_are_wrong_and_the_remedy_is_exact(
    store: str, kind: str, spark: Any, tmp_path: Path
) -> None:
    life = Life(spark, store, tmp_path / "source", tmp_path / "obeyed")
    life.run(10, at_once=1, maintenance="200ms")
    assert max(int(path.stem) for path in (life.checkpoint / "state/0/0").glob(f"[0-9]*.{kind}")) > 5
    life.go_back_by_hand(3)
    life.run(12, at_once=2)
    assert life.is_right
    finding = find_deep(life.checkpoint)["CKPT337"]
    other = replace(life, checkpoint=tmp_path / "not-obeyed", sink=dict(life.sink))
    shutil.copytree(life.checkpoint, other.checkpoint)
    other.run(15, at_once=5)
    assert not other.is_right
    batch = int(finding.remedy.split("--to-batch ")[1].split("`")[0])
    for case in (life, other):
        ckpt.rewind(str(case.checkpoint), to_batch=batch, **NOW)
        case.run(2, at_once=5)
        assert case.is_right
        assert "CKPT337" not in find_deep(case.checkpoint)
