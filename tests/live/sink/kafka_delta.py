"""Queries from Kafka into a Delta table that meet an incident, are cured by a command of ckpt, and go on.

A topic holds the numbers 0 to 79. A query read the first 60 in six batches; its checkpoint and its table are copied,
the copy meets the incident, the command is carried out, and the query reads the rest of the topic. What is found
says what the plan had said, and what is in the table then.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from ckpt.changes.fixes.repair import RepairPlan, repair
from ckpt.changes.plan import First
from ckpt.changes.skip.plan import skip
from ckpt.new.copy.copy import copy
from ckpt.new.rewrite.rewrite import rewrite
from tests.support.remedies import NOW, remove
from tests.support.spark import topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC = "incidents"
BATCHES, OLD, ALL = 6, 60, 80
"""Batches before the incident, the numbers that they read, and those that are there in the end."""
STOPPED = {TOPIC: {str(partition): OLD // topics.PARTITIONS for partition in range(topics.PARTITIONS)}}
KEPT = 3
"""The newest batch of the older copy that is restored."""
BUCKETS = 5
SHUFFLE = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class Query:
    """What is done to the numbers, and how it comes into the table."""

    stateful: bool
    merges: bool  # by foreachBatch and MERGE; otherwise by the sink `delta`, which remembers batches

    @property
    def name(self) -> str:
        """Such as `counts, merged`."""
        return f"{'counts' if self.counts else 'numbers without duplicates' if self.stateful else 'numbers'}, " + (
            "merged" if self.merges else "appended"
        )

    @property
    def counts(self) -> bool:
        """Whether rows are (bucket, n), how many numbers there are of each bucket; otherwise a row is a number."""
        return self.stateful and self.merges

    def of(self, numbers: DataFrame) -> DataFrame:
        """The rows that go into the table."""
        if self.counts:
            return numbers.groupBy((F.col("id") % BUCKETS).alias("id")).agg(F.count("*").alias("n"))
        rows = numbers.dropDuplicates(["id"]) if self.stateful else numbers
        return rows.select("id", F.lit(1).cast("long").alias("n"))


QUERIES = tuple(Query(stateful, merges) for stateful in (False, True) for merges in (False, True))


class Incident:
    """A copy of a query's checkpoint and table, in a folder of its own."""

    def __init__(self, spark: SparkSession, servers: str, query: Query, folder: Path) -> None:
        self._spark, self.query = spark, query
        self._options = {"kafka.bootstrap.servers": servers}
        self.folder, self.checkpoint, self.table = folder, folder / "checkpoint", folder / "table"

    def copy(self, to: Path) -> Incident:
        shutil.copytree(self.folder, to)
        return Incident(self._spark, self._options["kafka.bootstrap.servers"], self.query, to)

    def start(self, *, poison: bool = False, noop: bool = False) -> str:
        """Run to the end of the topic, ten numbers a batch; or one batch, written nowhere. What it failed with."""
        options = {"subscribe": TOPIC, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "10"}
        rows = self._spark.readStream.format("kafka").options(**self._options, **options).load()
        number = F.col("value").cast("string").cast("long")
        fails = F.lit(poison) & (number >= OLD)
        numbers = rows.select(F.when(fails, F.raise_error(F.lit("poison")).cast("long")).otherwise(number).alias("id"))
        writer = self.query.of(numbers).writeStream.option("checkpointLocation", str(self.checkpoint))
        writer = writer.outputMode("update" if self.query.counts else "append")
        if noop:
            writer = writer.format("noop")
        elif self.query.merges:
            writer = writer.foreachBatch(self._merge)
        else:
            writer = writer.format("delta").option("path", str(self.table))
        handle = (writer.trigger(once=True) if noop else writer.trigger(availableNow=True)).start()
        try:
            assert handle.awaitTermination(300)
        except Exception as error:
            return str(error).partition("=== Streaming Query ===")[0]
        return ""

    def _merge(self, rows: DataFrame, _: int) -> None:
        own, where = rows.sparkSession, f"delta.`{self.table}`"
        if not self.table.exists():
            own.sql(f"CREATE TABLE {where} (id BIGINT, n BIGINT) USING delta")
        rows.createOrReplaceTempView("incoming")
        own.sql(
            f"MERGE INTO {where} AS t USING incoming AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT *"
        )

    def rows(self) -> dict[int, int]:
        """Of each number, or bucket, what is in the table: `n` of all its rows together."""
        found: Counter[int] = Counter()
        for row in self._spark.read.format("delta").load(str(self.table)).collect():
            found[row.id] += row.n
        return dict(sorted(found.items()))

    def numbers(self, start: Any, end: Any) -> list[int]:
        """The numbers of a range of Kafka offsets, read as the page says."""
        options = {"subscribe": TOPIC, "startingOffsets": json.dumps(start), "endingOffsets": json.dumps(end)}
        rows = self._spark.read.format("kafka").options(**self._options, **options).load()
        return sorted(row.id for row in rows.selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS id").collect())

    def read_by_hand(self, numbers: list[int]) -> None:
        """Bring numbers that were skipped into the table of a query that appends."""
        rows = self._spark.createDataFrame([(number, 1) for number in numbers], "id LONG, n LONG")
        rows.coalesce(1).write.format("delta").mode("append").save(str(self.table))

    def taken_back(self, batch: int) -> None:
        """A copy of the checkpoint as of a batch; a table that appends goes back to what it was after that batch."""
        copied = copy(str(self.checkpoint), str(self.folder / "older"), batch=batch, new_id=not self.query.merges)
        shutil.rmtree(self.checkpoint)
        Path(copied.to).rename(self.checkpoint)
        if self.query.merges:
            return
        history = self._spark.sql(f"DESCRIBE HISTORY delta.`{self.table}`").collect()
        (version,) = [one.version for one in history if one.operationParameters.get("epochId") == str(batch)]
        self._spark.sql(f"RESTORE TABLE delta.`{self.table}` TO VERSION AS OF {version}")


def _poison(one: Incident) -> dict[str, Any]:
    failed = one.start(poison=True)
    plan, receipt = skip(str(one.checkpoint), backup=str(one.folder / "backup"), **NOW)
    assert receipt.applied, receipt.problem or plan.refused
    (skipped,) = plan.skipped
    (source,) = skipped.sources
    numbers = one.numbers(source.range.start, source.range.end)
    told: dict[str, Any] = {"failed": failed, "skipped": numbers, "error": one.start(), "rows": one.rows()}
    if not one.query.merges:
        one.read_by_hand(numbers)
        told["by hand"] = one.rows()
    return told


def _repaired(damage: Callable[[Path], None]) -> Callable[[Incident], dict[str, Any]]:
    def cure(one: Incident) -> dict[str, Any]:
        damage(one.checkpoint)
        plan, receipt = repair(str(one.checkpoint), backup=str(one.folder / "backup"), **NOW)
        assert receipt.applied, receipt.problem or plan.refused
        again = [number for start, end in _again(plan) for number in one.numbers(start, end)]
        told = {
            "fix": str(plan.chosen and plan.chosen.name),
            "skips": plan.skips and str(plan.skips),
            "repeats": plan.repeats and str(plan.repeats),
        }
        if one.query.stateful and not one.query.merges:
            told |= {"without the cure": one.copy(one.folder.with_name(f"{one.folder.name}, uncured")).start()}
            _cure(one, plan)
        return {**told, "again": again, "error": one.start(), "rows": one.rows()}

    return cure


def _cure(one: Incident, plan: RepairPlan) -> None:
    """What the page says of a sink that remembers batches: once into nothing, or the table taken back and a new id."""
    text = " ".join(map(str, (*plan.notices, *(sink.says for sink in plan.in_sinks))))
    if plan.first is First.NOOP:
        assert "Before any other start" in text
        assert one.start(noop=True) == ""
        return
    assert f"--batch {BATCHES - 2} --new-id" in text
    one.taken_back(BATCHES - 2)


def _again(plan: RepairPlan) -> list[tuple[Any, Any]]:
    """The ranges of finished batches that a plan says are read again; without an end, up to where the query stopped."""
    return [
        (replay.sources[0].start, replay.sources[0].end or STOPPED) for replay in plan.replay or () if replay.finished
    ]


def _restored(one: Incident) -> dict[str, Any]:
    """An older copy of the checkpoint beside a table that is ahead; a table that appends is taken back, as said."""
    one.taken_back(KEPT)
    return {"error": one.start(), "rows": one.rows()}


def _rewritten(one: Incident) -> dict[str, Any]:
    """The same state, kept by RocksDB and in other partitions."""
    made = rewrite(str(one.checkpoint), str(one.folder / "new"), provider="rocksdb", partitions=3)
    assert made.written, made.refused
    shutil.rmtree(one.checkpoint)
    Path(made.into).rename(one.checkpoint)
    return {"error": one.start(), "rows": one.rows()}


def _empty_latest_offsets(checkpoint: Path) -> None:
    (checkpoint / "offsets" / str(BATCHES - 1)).write_text("")


def _lost_state_file(checkpoint: Path) -> None:
    for file in (checkpoint / "state" / "0" / "0").glob(f"{BATCHES}.*"):
        remove(file)


INCIDENTS: Mapping[str, Callable[[Incident], dict[str, Any]]] = {
    "poison batch": _poison,
    "empty latest offsets": _repaired(_empty_latest_offsets),
    "lost state file": _repaired(_lost_state_file),
    "older copy restored": _restored,
    "state rewritten": _rewritten,
}
_OF_STATE = ("lost state file", "state rewritten")
_NUMBERS, _COUNTS = Query(stateful=False, merges=False), Query(stateful=True, merges=True)
LIVE = (("poison batch", _NUMBERS),)
"""Those that are run unless all are asked for."""


def cases() -> list[tuple[str, Query]]:
    """Each incident that a query can meet."""
    return [(name, query) for name in INCIDENTS for query in QUERIES if query.stateful or name not in _OF_STATE]


def recorded(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """All of them, on the broker that `CKPT_KAFKA` names."""
    return found(spark, os.environ["CKPT_KAFKA"], folder, cases())


def found(spark: SparkSession, servers: str, folder: Path, asked: Sequence[tuple[str, Query]]) -> dict[str, Any]:
    """What became of queries in incidents, as JSON has it; by `case`."""
    own = spark.newSession()
    own.conf.set(SHUFFLE, "1")
    topics.fill(own, TOPIC, OLD)
    old = {}
    for query in dict.fromkeys(query for _, query in asked):
        old[query] = Incident(own, servers, query, folder / query.name)
        assert old[query].start() == ""
    topics.fill(own, TOPIC, ALL, first=OLD)
    told = {case(*one): INCIDENTS[one[0]](old[one[1]].copy(folder / case(*one))) for one in asked}
    as_json: dict[str, Any] = json.loads(json.dumps(told))
    return as_json


def case(name: str, query: Query) -> str:
    """Such as `poison batch: counts, merged`."""
    return f"{name}: {query.name}"
