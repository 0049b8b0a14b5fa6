"""Checkpoints that are difficult to bring into the shape of initial state, made by the Spark that reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.spark.queries import STATE_STORES, drain, own_session

FAR = 4_000_000_000_000
"""A time in ms that no test will see."""


@dataclass(frozen=True)
class Made:
    """Runs each query in a session of its own, one batch of the source at each start."""

    spark: Any
    folder: Path

    def transform_with_state(self) -> Path:
        """Keys 0 to 3 and NULL, each with other parts of the state."""
        from pyspark.sql import functions as F

        def build(rows: Any) -> Any:
            key = F.when(F.col("value") % 5 < 4, F.col("value") % 5).cast("string")
            grouped = rows.select(key.alias("k"), "value").groupBy("k")
            return grouped.transformWithStateInPandas(processor(), "k STRING", "Update", "ProcessingTime")

        conf = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
        return self._run("tws", build, "update", STATE_STORES["changelog"] | conf, starts=1)

    def join(self, state_format: int) -> Path:
        """Seven rows of a key on the left, two at most on the right; one key is on the right alone."""

        def build(rows: Any) -> Any:
            left = rows.selectExpr("value % 3 AS k", "timestamp AS lt", "value AS lv").withWatermark("lt", "10 seconds")
            few = rows.where("value % 10 < 3").selectExpr("value div 10 * 3 + value % 10 AS rv", "timestamp AS rt")
            right = few.selectExpr("rv % 4 AS rk", "rt", "rv").withWatermark("rt", "10 seconds")
            near = "k = rk AND lt BETWEEN rt - INTERVAL 5 SECONDS AND rt + INTERVAL 5 SECONDS"
            from pyspark.sql import functions as F

            return left.join(right, F.expr(near), "leftOuter")

        conf = {"spark.sql.streaming.join.stateFormatVersion": str(state_format)}
        return self._run(f"join-{state_format}", build, "append", STATE_STORES["changelog"] | conf, starts=2)

    def sessions(self) -> Path:
        """Grouped by a column, a session and another column; each batch is a session of its own."""
        from pyspark.sql import functions as F

        def build(rows: Any) -> Any:
            stamped = rows.selectExpr("value % 3 AS a", "value % 2 AS b", "value", "timestamp AS t")
            session = F.session_window("t", "500 milliseconds")
            grouped = stamped.withWatermark("t", "10 seconds").groupBy("a", session, "b")
            return grouped.agg(F.sum("value"), F.sum(F.col("value") * 100), F.count("*").alias("x"))

        return self._run("sessions", build, "append", STATE_STORES["changelog"], starts=2)

    def aggregation(self) -> Path:
        """Keys of small types, one of them a struct; a buffer is called like a key."""
        from pyspark.sql import functions as F

        def build(rows: Any) -> Any:
            key = F.when(F.col("value") >= 5, (F.col("value") - 5) % 3).cast("smallint").alias("count")
            inner = F.struct(F.lit(1.5).cast("decimal(12,3)").alias("p"), F.lit("q").alias("q"))
            keyed = rows.select(key, inner.alias("st"), "value", F.lit(7).alias("sum"))
            return keyed.groupBy("count", "st").agg(F.count("*"), F.max(F.struct("value", "sum")))

        return self._run("aggregation", build, "update", STATE_STORES["hdfs"], starts=1)

    def total(self) -> Path:
        """One row of state, and no key."""
        from pyspark.sql import functions as F

        return self._run(
            "total", lambda rows: rows.agg(F.count("*"), F.sum("value")), "complete", STATE_STORES["hdfs"], starts=1
        )

    def _run(self, name: str, build: Callable[[Any], Any], mode: str, conf: dict[str, str], *, starts: int) -> Path:
        own, checkpoint = own_session(self.spark, conf), self.folder / name
        source = own.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 1)
        for _ in range(starts):
            rows = source.option("startTimestamp", 1_700_000_000_000).load()
            drain(build(rows), checkpoint, mode, "noop")
        return checkpoint


def processor() -> Any:
    """State that depends on the key."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    far = FAR

    class Difficult(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.handle = handle
            self.list = handle.getListState("list", "n BIGINT, s STRING")
            self.list_ttl = handle.getListState("listTtl", "n BIGINT", 86_400_000)
            self.value = handle.getValueState("value", "n INT")
            self.map = handle.getMapState("map", "name STRING", "rows BIGINT")
            self.gone = handle.getValueState("gone", "n BIGINT", 1)

        def handleInputRows(self, key: tuple[Any], rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            for _ in rows:
                pass
            (name,) = key
            if name is None:
                self.gone.update((None,))
            elif name == "0":
                self.all_of_it()
            elif name == "1":
                for timer in (far, far + 7, far - 5):
                    self.handle.registerTimer(timer)
            elif name == "2":
                for inner, count in (("b", 1), (None, 9), ("a", 2)):
                    self.map.updateValue((inner,), (count,))
            else:
                self.list.put([(30, "x"), (10, None), (20, "x")])
                self.list.appendList([(7, "y"), (9, "y")])
            yield pd.DataFrame({"k": [name]})

        def all_of_it(self) -> None:
            self.list.put([(1, "one")])
            self.list_ttl.put([(3,), (1,), (2,)])
            self.value.update((5,))
            self.map.updateValue(("m",), (6,))
            self.gone.update((8,))
            self.handle.registerTimer(far + 1)
            self.handle.registerTimer(far)

        def close(self) -> None:
            pass

    return Difficult()
