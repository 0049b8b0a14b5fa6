"""Real queries whose rows can be counted: what they read, how they keep state, and where they write.

A row has a number of its own, and every kind of query brings the numbers into its sink, so that what is lost or doubled
shows. A kind of query runs once; each seed continues from a copy of its files at the same path.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.live.kafka.cases import Broker
from tests.restart.oracle.starts import forget_state
from tests.support.spark.queries import STATE_STORES

SIZES = (4, 3, 5, 6, 3, 5, 4, 6, 3, 4)
"""Rows of each file, commit or batch of input: they differ, so a batch id with another range has other rows."""
OLDER = (3, 4)
"""Batches that the copies of checkpoint and sink have, which are made on the way."""
BATCHES = 5
AHEAD = 6
"""How far behind its left row the right row of a pair comes."""
REPEATED = 7
"""How far behind the first row its duplicate comes, where there is one."""
CLOSING = 1000
"""The number of the row that closes all windows; it is not counted."""
APP_ID = "orders"
"""The txnAppId of a user's function that writes to Delta."""
_START_S = 1_700_000_000
_PATIENCE_S = 900


_COSTS: dict[object, int] = {"to delta": 3, "to txn": 4, "transform": 3, "join": 2, "kafka": 3}


@dataclass(frozen=True)
class Kind:
    """A kind of query: source, operator, state store, sink."""

    source: str
    operator: str
    store: str
    sink: str
    retained: int = 100  # batches whose files are kept

    @property
    def name(self) -> str:
        """Such as `files-dedup-hdfs-delta`."""
        words = (self.source, self.operator, self.store, self.sink, f"keep{self.retained}" * (self.retained < 100))
        return "-".join(word for word in words if word)

    @property
    def stateful(self) -> bool:
        return bool(self.store)

    @property
    def cost(self) -> int:
        """How long starts take, roughly: the slow kinds are drawn less often, and recorded last."""
        return max(
            _COSTS.get(word, 1) for word in (self.source == "kafka" and "kafka", self.operator, f"to {self.sink}")
        )

    @property
    def upserts(self) -> bool:
        """Whether a row of the sink replaces the one before it that has its key."""
        return self.operator == "aggregation"


def _kind(text: str) -> Kind:
    source, operator, store, sink, *retained = text.split(" ")
    return Kind(source, operator, store.strip("-"), sink, *map(int, retained))


KINDS = tuple(
    _kind(text)
    for text in (
        "files none - delta",
        "files none - files",
        "files none - append",
        "files dedup hdfs delta",
        "files dedup format2 files",
        "files aggregation hdfs merge",
        "files aggregation changelog append",
        "files window rocksdb files",
        "files window format2 txn",
        "files join hdfs delta",
        "files transform rocksdb txn",
        "files transform hdfs files",
        "files dedup rocksdb append 2",
        "delta none - txn",
        "delta none - files",
        "delta none - append",
        "delta dedup rocksdb merge",
        "delta aggregation format2 merge",
        "delta window changelog delta",
        "delta join changelog files",
        "delta transform format2 delta",
        "delta aggregation hdfs append 2",
        "rate none - merge",
        "rate none - files",
        "rate none - delta",
        "rate aggregation rocksdb merge",
        "rate dedup changelog files",
        "rate join format2 delta",
        "rate window hdfs append",
        "rate transform changelog append",
        "kafka none - delta",
        "kafka none - files",
        "kafka dedup format2 delta",
        "kafka aggregation changelog merge",
    )
)
BY_NAME = {kind.name: kind for kind in KINDS}
Row = tuple[int, list[int], int]


class World:
    """One query with its source, checkpoint and sink, below one folder."""

    def __init__(self, spark: Any, kind: Kind, folder: Path, broker: Broker | None = None, topic: str = "") -> None:
        self.spark, self.kind, self.folder, self.topic = spark, kind, folder, topic
        self._broker = broker
        self.checkpoint, self.out, self.into = folder / "checkpoint", folder / "out", folder / "in"
        self.copies = folder / "copies"
        self.poison: int | None = None
        self.app_id = APP_ID
        self.conf: dict[str, str] = {}
        self.added: list[int] = []  # numbers of rows that the source has been given

    @property
    def broker(self) -> Broker:
        assert self._broker is not None
        return self._broker

    def make(self) -> None:
        """Run the query for five batches, and copy checkpoint and sink on the way."""
        done = 0
        if self.kind.source == "kafka":
            self.broker.create(self.topic, 1)
        for until in (*OLDER, BATCHES):
            self.add(until - done)
            for _ in range(until - done if self.kind.source == "rate" else 1):
                error = self.start(1)
                assert error == "", (self.kind.name, error)
            done = until
            if until != BATCHES:
                for folder in (self.checkpoint, self.out):
                    shutil.copytree(folder, self.copies / str(until) / folder.name)

    def add(self, count: int, *, closing: bool = False) -> None:
        """Give the source so many files, commits or batches of rows, with other numbers each."""
        if self.kind.source == "rate":
            return
        for _ in range(count):
            first = len(self.added)
            self._give([*range(first, first + SIZES[self._given % len(SIZES)])])
        if closing:
            self._give([CLOSING])
            self.added.remove(CLOSING)

    @property
    def _given(self) -> int:
        ends, total = 0, 0
        while total < len(self.added):
            total += SIZES[ends % len(SIZES)]
            ends += 1
        return ends

    @property
    def rows_of_rate(self) -> int:
        """How many rows a query from `rate-micro-batch` has read, by its newest offsets, whatever the sink took."""
        logs = [file for file in (self.checkpoint / "offsets").glob("[0-9]*") if file.name.isdecimal()]
        newest = max(logs, key=lambda file: int(file.name), default=None)
        return int(json.loads(newest.read_text().splitlines()[-1])["offset"]) if newest else 0

    def _give(self, numbers: list[int]) -> None:
        given = self._given + (numbers == [CLOSING]) * 50
        self.added += numbers
        if self.kind.source == "files":
            self.into.mkdir(parents=True, exist_ok=True)
            file = self.into / f"{given:03}.json"
            file.write_text("".join(f'{{"row": {number}}}\n' for number in numbers))
            os.utime(file, (_START_S + given,) * 2)
        elif self.kind.source == "delta":
            append_to_delta(self.into, numbers)
        else:
            self.broker.fill(self.topic, len(numbers), range(1), iter(numbers))

    def start(self, most: int, *, noop: bool = False, once: bool = False, **options: str) -> str:
        """Run the query until it has read everything, `most` files a batch; what it failed with, or an empty text."""
        self._forget()
        own = self.spark.newSession()
        settings = {
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.minBatchesToRetain": str(self.kind.retained),
            **(STATE_STORES[self.kind.store] if self.kind.store else {}),
            **self.conf,
        }
        for key, value in settings.items():
            own.conf.set(key, value)
        handle = None
        try:
            writer = self._write(self._plan(own, most, options), noop=noop)
            writer = writer.trigger(once=True) if once or noop else writer.trigger(availableNow=True)
            handle = writer.start()
            if not handle.awaitTermination(_PATIENCE_S):
                return "it did not end"
        except Exception as error:
            return _name_causes(error)
        finally:
            if handle is not None:
                handle.stop()
            self._forget()
        return ""

    def _forget(self) -> None:
        """What a new driver would not know: loaded state, and tables in memory."""
        forget_state(self.spark)
        with contextlib.suppress(Exception):
            self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def _read(self, own: Any, most: int, options: dict[str, str]) -> Any:
        from pyspark.sql import functions as F

        reader = own.readStream.options(**options)
        if self.kind.source == "files":
            rows = reader.schema("row BIGINT").option("maxFilesPerTrigger", most).json(str(self.into))
        elif self.kind.source == "delta":
            rows = reader.format("delta").option("maxFilesPerTrigger", most).load(str(self.into))
        elif self.kind.source == "rate":
            reader = reader.format("rate-micro-batch").option("rowsPerBatch", 3 * most + 1).option("numPartitions", 1)
            rows = reader.option("startTimestamp", _START_S * 1000).load().withColumnRenamed("value", "row")
        else:
            reader = reader.format("kafka").option("kafka.bootstrap.servers", self.broker.servers)
            reader = reader.option("subscribe", self.topic).option("startingOffsets", "earliest")
            reader = reader.option("maxOffsetsPerTrigger", 4 * most).option("kafkaConsumer.pollTimeoutMs", 4000)
            rows = reader.load().selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS row")
        row = F.col("row")
        if self.poison is not None:
            row = F.when(row == self.poison, F.raise_error(F.lit("poison")).cast("long")).otherwise(row)
        repeats = (F.col("row") % 5 == 4) & (F.col("row") >= REPEATED) & (F.col("row") < CLOSING)
        return rows.select(row.alias("row")).select(
            "row",
            F.when(repeats, F.col("row") - REPEATED).otherwise(F.col("row")).alias("id"),
            F.timestamp_seconds(F.lit(_START_S) + F.col("row")).alias("time"),
        )

    def _plan(self, own: Any, most: int, options: dict[str, str]) -> Any:
        from pyspark.sql import functions as F

        rows, none = self._read(own, most, options), F.lit(0).cast("long").alias("n")
        if self.kind.operator == "none":
            return rows.select(F.col("row").alias("key"), F.array("row").alias("ids"), none)
        if self.kind.operator == "dedup":
            return rows.dropDuplicates(["id"]).select(F.col("id").alias("key"), F.array("id").alias("ids"), none)
        if self.kind.operator == "aggregation":
            groups = rows.groupBy((F.col("row") % 3).alias("key"))
            return groups.agg(F.collect_list("row").alias("ids")).select("key", "ids", none)
        if self.kind.operator == "window":
            groups = rows.withWatermark("time", "2 seconds").groupBy(F.window("time", "4 seconds"))
            start = F.unix_timestamp("window.start").alias("key")
            return groups.agg(F.collect_list("row").alias("ids")).select(start, "ids", none)
        if self.kind.operator == "join":
            left = rows.withWatermark("time", "1 hour")
            right = self._read(own, most, options).withColumn("other", F.col("row") - AHEAD).drop("row", "id")
            right = right.withColumnRenamed("time", "later").withWatermark("later", "1 hour")
            near = F.expr("row = other AND later BETWEEN time AND time + INTERVAL 1 HOUR")
            return left.join(right, near).select(F.col("row").alias("key"), F.array("row").alias("ids"), none)
        groups, schema = (
            rows.select((F.col("row") % 3).alias("key"), "row").groupBy("key"),
            "key LONG, ids ARRAY<LONG>, n LONG",
        )
        if self.kind.store == "hdfs":
            return groups.applyInPandasWithState(_counting(), schema, "n LONG", "append", "NoTimeout")
        return groups.transformWithStateInPandas(_processor(), schema, "Append", "None")

    def _write(self, rows: Any, *, noop: bool) -> Any:
        writer = rows.writeStream.option("checkpointLocation", str(self.checkpoint))
        writer = writer.outputMode("update" if self.kind.upserts else "append")
        if noop:
            return writer.format("noop")
        if self.kind.sink == "delta":
            return writer.format("delta").option("path", str(self.out))
        if self.kind.sink == "files":
            return writer.format("json").option("path", str(self.out))
        return writer.foreachBatch(
            {"txn": self._append_txn, "merge": self._merge, "append": self._append}[self.kind.sink]
        )

    def _append_txn(self, rows: Any, batch: int) -> None:
        writer = rows.write.format("delta").mode("append").option("txnAppId", self.app_id).option("txnVersion", batch)
        writer.save(str(self.out))

    def _merge(self, rows: Any, _: int) -> None:
        from deltalake import DeltaTable, write_deltalake

        incoming = _as_arrow([(row.key, list(row.ids), row.n) for row in rows.collect()])
        if not (self.out / "_delta_log").exists():
            write_deltalake(str(self.out), incoming.slice(0, 0), mode="append")
        merger = DeltaTable(str(self.out)).merge(incoming, "t.key = s.key", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def _append(self, rows: Any, _: int) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        with (self.out / "rows.jsonl").open("a") as file:
            for row in rows.collect():
                file.write(json.dumps([row.key, list(row.ids), row.n]) + "\n")

    def restore_table(self, batch: str) -> None:
        """Take the Delta table of the sink back to its version after a batch."""
        self._forget()
        commits = [(int(file.stem), file.read_text()) for file in sorted((self.out / "_delta_log").glob("*.json"))]
        actions = [(version, json.loads(line)) for version, text in commits for line in text.splitlines()]
        written = {str(action["txn"]["version"]): version for version, action in actions if "txn" in action}
        self.spark.sql(f"RESTORE TABLE delta.`{self.out}` TO VERSION AS OF {written[batch]}").collect()

    def rows(self) -> list[Row]:
        """What a reader of the sink gets. Raises what the reader fails with."""
        if self.kind.sink == "append":
            file = self.out / "rows.jsonl"
            return [tuple(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []
        if not self.out.exists():
            return []
        if self.kind.sink == "files":
            if not any(self.out.iterdir()):
                return []
            self._forget()
            rows = self.spark.read.schema("key BIGINT, ids ARRAY<BIGINT>, n BIGINT").json(str(self.out)).collect()
            return [(row.key, list(row.ids), row.n) for row in rows]
        return read_delta(self.out)


def append_to_delta(folder: Path, numbers: list[int]) -> None:
    """Commit a file with the numbers."""
    import pyarrow as pa
    from deltalake import write_deltalake

    write_deltalake(str(folder), pa.table({"row": pa.array(numbers, pa.int64())}), mode="append")


def _name_causes(error: BaseException) -> str:
    """What a driver log says: the failure, and below it each cause."""
    texts, cause = [str(error)], getattr(error, "_cause", None)
    while cause is not None:
        texts.append(f"Caused by: {cause}")
        cause = getattr(cause, "_cause", None)
    return "\n".join(texts)


def _as_arrow(rows: list[Row]) -> Any:
    import pyarrow as pa

    schema = pa.schema([("key", pa.int64()), ("ids", pa.list_(pa.int64())), ("n", pa.int64())])
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def read_delta(folder: Path) -> list[Row]:
    from deltalake import DeltaTable

    table = DeltaTable(str(folder)).to_pyarrow_table(columns=["key", "ids", "n"])
    return [(row["key"], row["ids"], row["n"]) for row in table.to_pylist()]


def _counting() -> Callable[..., Iterator[Any]]:
    """Emit the numbers of a batch by key, and how many the key has had."""
    import pandas as pd

    def count(key: tuple[int], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        numbers = [int(number) for frame in frames for number in frame["row"]]
        total = (state.get[0] if state.exists else 0) + len(numbers)
        state.update((total,))
        yield pd.DataFrame({"key": [key[0]], "ids": [numbers], "n": [total]})

    return count


def _processor() -> Any:
    """`_counting` as a processor of transformWithState."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Counting(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.total = handle.getValueState("total", "n LONG")

        def handleInputRows(self, key: tuple[int], rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            numbers = [int(number) for frame in rows for number in frame["row"]]
            total = (self.total.get()[0] if self.total.exists() else 0) + len(numbers)
            self.total.update((total,))
            yield pd.DataFrame({"key": [key[0]], "ids": [numbers], "n": [total]})

        def close(self) -> None:
            pass

    return Counting()
