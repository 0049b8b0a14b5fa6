"""The old queries of the continuity cases, one for each kind of state that goes over to transformWithState.

Each row that a query puts out is an answer: there is no time in it that depends on the run, and it does not matter in
which batch it comes. The user functions are made inside functions, so that they are shipped by value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.migrate.continuity_input import DELAY
from tests.support.spark.queries import STATE_STORES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROCKSDB = STATE_STORES["rocksdb"]


@dataclass(frozen=True)
class Kind:
    """An old query: from the rows of `continuity_input` to its answers.

    With a watermark it runs a batch without rows when it is idle.
    """

    build: Callable[[DataFrame], DataFrame]
    output_mode: str
    watermark: bool
    conf: dict[str, str] = field(default_factory=dict)


def counts(rows: DataFrame) -> DataFrame:
    """Rows and the sum of their values for each key; no watermark, nothing is late."""
    from pyspark.sql import functions as F

    grouped = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    return grouped.select("key", "n", "total")


def windows(rows: DataFrame) -> DataFrame:
    """The same for windows of ten seconds, each of which is put out once, when the watermark has passed its end."""
    from pyspark.sql import functions as F

    grouped = rows.withWatermark("ts", DELAY).groupBy(F.window("ts", "10 seconds"), "key")
    found = grouped.agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    return found.selectExpr("key", "unix_timestamp(window.start) AS begin", "n", "total")


def group_state(rows: DataFrame) -> DataFrame:
    """Sessions: a key that is silent for 15 seconds of event time is put out as expired, and forgotten."""
    from pyspark.sql.streaming.state import GroupStateTimeout

    schema = "key BIGINT, n BIGINT, total BIGINT, expired BOOLEAN"
    grouped = rows.withWatermark("ts", DELAY).groupBy("key")
    return grouped.applyInPandasWithState(
        sessions(), schema, "n BIGINT, total BIGINT", "append", GroupStateTimeout.EventTimeTimeout
    )


def sessions() -> Callable[..., Iterator[Any]]:
    import pandas as pd

    def session(key: tuple[int], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        n, total = state.get if state.exists else (0, 0)
        if state.hasTimedOut:
            state.remove()
        else:
            rows = pd.concat(list(frames))
            n, total = n + len(rows), total + int(rows["value"].sum())
            latest = int(rows["ts"].max().timestamp() * 1000)
            state.update((n, total))
            state.setTimeoutTimestamp(max(latest, state.getCurrentWatermarkMs()) + 15_000)
        yield pd.DataFrame({"key": [key[0]], "n": [n], "total": [total], "expired": [state.hasTimedOut]})

    return session


def processing_time(rows: DataFrame) -> DataFrame:
    """Value, list and map under TTL, and timers in processing time which lie far ahead."""
    processor = everything(a_day_ms=24 * 60 * 60 * 1000)
    return rows.groupBy("key").transformWithStateInPandas(processor, KEPT, "Append", "ProcessingTime")


def event_time(rows: DataFrame) -> DataFrame:
    """The same without TTL, and timers in event time which fire."""
    grouped = rows.withWatermark("ts", DELAY).groupBy("key")
    return grouped.transformWithStateInPandas(everything(a_day_ms=None), KEPT, "Append", "EventTime")


KEPT = "key BIGINT, n BIGINT, total BIGINT, recent STRING, parity STRING, timers STRING"


def everything(a_day_ms: int | None) -> Any:
    """Keep every kind of variable, under TTL where its duration is given, and tell all of them."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Everything(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.handle = handle
            self.sums = handle.getValueState("sums", "n BIGINT, total BIGINT", a_day_ms)
            self.recent = handle.getListState("recent", "id BIGINT", a_day_ms)
            self.parity = handle.getMapState("parity", "odd BOOLEAN", "n BIGINT", a_day_ms)

        def handleInputRows(self, key: tuple[int], rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            frame = pd.concat(list(rows)).sort_values("id")
            n, total = self.sums.get() if self.sums.exists() else (0, 0)
            self.sums.update((n + len(frame), total + int(frame["value"].sum())))
            for number in frame["id"]:
                self.recent.appendValue((int(number),))
                odd = (bool(number % 2),)
                old = self.parity.getValue(odd)[0] if self.parity.containsKey(odd) else 0
                self.parity.updateValue(odd, (old + 1,))
            far = 4_102_444_800_000 + n if a_day_ms else int(frame["ts"].max().timestamp() * 1000) + 15_000
            self.handle.registerTimer(far)
            yield self.told(key, " ".join(str(timer) for timer in sorted(self.handle.listTimers())))

        def handleExpiredTimer(
            self, key: tuple[int], timerValues: Any, expiredTimerInfo: Any
        ) -> Iterator[pd.DataFrame]:
            yield self.told(key, f"fired {expiredTimerInfo.getExpiryTimeInMs()}")

        def told(self, key: tuple[int], timers: str) -> pd.DataFrame:
            recent = " ".join(str(one[0]) for one in self.recent.get())
            parity = " ".join(f"{odd[0]}={n[0]}" for odd, n in sorted(self.parity.iterator()))
            values = (key[0], *self.sums.get(), recent, parity, timers)
            return pd.DataFrame([values], columns=["key", "n", "total", "recent", "parity", "timers"])

        def close(self) -> None:
            pass

    return Everything()


_NO_EMPTY_BATCHES = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
"""In processing time they would follow one another for ever."""

KINDS = {
    "counts": Kind(counts, "update", watermark=False),
    "windows": Kind(windows, "append", watermark=True),
    "group-state": Kind(group_state, "append", watermark=True),
    "processing-time": Kind(processing_time, "append", watermark=False, conf=_ROCKSDB | _NO_EMPTY_BATCHES),
    "event-time": Kind(event_time, "append", watermark=True, conf=_ROCKSDB),
}
