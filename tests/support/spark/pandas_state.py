"""The user functions of the queries with arbitrary state.

Each is made inside a function, so that cloudpickle ships it by value and a Python worker need not import this
module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def counting_function() -> Callable[..., Iterator[Any]]:
    """Count rows per key and drop a key two seconds of event time after its last row."""
    import pandas as pd

    def count(key: tuple[int], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        if state.hasTimedOut:
            (rows, _) = state.get
            state.remove()
            yield pd.DataFrame({"key": [key[0]], "rows": [rows], "expired": [True]})
            return
        rows, latest = (state.get[0] if state.exists else 0), 0
        for frame in frames:
            rows += len(frame)
            latest = max(latest, int(frame["timestamp"].max().timestamp() * 1000))
        state.update((rows, str(latest)))
        state.setTimeoutTimestamp(max(latest, state.getCurrentWatermarkMs()) + 2000)
        yield pd.DataFrame({"key": [key[0]], "rows": [rows], "expired": [False]})

    return count


def processing_time_processor() -> Any:
    """Keep every kind of variable with and without TTL, and one processing-time timer per key and batch."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    a_day_ms = 24 * 60 * 60 * 1000

    class Everything(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.handle = handle
            self.rows = handle.getValueState("rows", "rows BIGINT")
            self.last = handle.getValueState("last", "value BIGINT, seen TIMESTAMP", a_day_ms)
            self.recent = handle.getListState("recent", "value BIGINT")
            self.recent_ttl = handle.getListState("recentTtl", "value BIGINT", a_day_ms)
            self.parity = handle.getMapState("parity", "odd BOOLEAN", "rows BIGINT")
            self.parity_ttl = handle.getMapState("parityTtl", "odd BOOLEAN", "rows BIGINT", a_day_ms)

        def handleInputRows(self, key: tuple[int], rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            values = [int(value) for frame in rows for value in frame["value"]]
            count = (self.rows.get()[0] if self.rows.exists() else 0) + len(values)
            self.rows.update((count,))
            self.last.update((values[-1], pd.Timestamp(1_700_000_000 + values[-1], unit="s")))
            self.recent.put([(value,) for value in values])
            self.recent_ttl.put([(value,) for value in values])
            for odd in sorted({value % 2 == 1 for value in values}):
                of_kind = sum(value % 2 == odd for value in values)
                self.parity.updateValue((odd,), (of_kind,))
                self.parity_ttl.updateValue((odd,), (of_kind,))
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + a_day_ms)
            yield pd.DataFrame({"key": [key[0]], "rows": [count]})

        def handleExpiredTimer(
            self, key: tuple[int], timerValues: Any, expiredTimerInfo: Any
        ) -> Iterator[pd.DataFrame]:
            yield pd.DataFrame({"key": [key[0]], "rows": [-1]})

        def close(self) -> None:
            pass

    return Everything()


def event_time_processor() -> Any:
    """Count rows per key with a timer two seconds after each batch; a timer that fires is counted too."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Timed(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.handle = handle
            self.rows = handle.getValueState("rows", "rows BIGINT, fired BIGINT")

        def current(self) -> tuple[int, int]:
            return tuple(self.rows.get()) if self.rows.exists() else (0, 0)

        def handleInputRows(self, key: tuple[int], rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
            count, fired = self.current()
            latest = 0
            for frame in rows:
                count += len(frame)
                latest = max(latest, int(frame["timestamp"].max().timestamp() * 1000))
            self.rows.update((count, fired))
            self.handle.registerTimer(latest + 2000)
            yield pd.DataFrame({"key": [key[0]], "rows": [count]})

        def handleExpiredTimer(
            self, key: tuple[int], timerValues: Any, expiredTimerInfo: Any
        ) -> Iterator[pd.DataFrame]:
            count, fired = self.current()
            self.rows.update((count, fired + 1))
            yield pd.DataFrame({"key": [key[0]], "rows": [-1]})

        def close(self) -> None:
            pass

    return Timed()


COLLECTED = ("a INT, s STRING", "a BIGINT, s STRING, x DOUBLE")
"""The schema of both variables of `collecting_processor` in each generation: one field wider, and one more."""


def collecting_processor(generation: int) -> Any:
    """Keep the last value and every value of each key, and put out all there was; in Avro a schema may grow."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    schema = COLLECTED[generation]

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
