"""Twelve queries in which the key ``a`` comes, goes and comes again, and in which batches it does.

All read the files of ``SCRIPT``, one in each batch. The watermark lags 5 s behind; it is that of the batch before.

========  ===================  =========  ==========================
batch     rows of ``a`` at     watermark  so that
========  ===================  =========  ==========================
0, 1      1, 2
2                              0          (``z`` at 20)
3         deleted              15         what ended before 15 goes
4, 5      25, 26
6                              21         (``z`` at 60)
7         deleted              55         what ended before 55 goes
8         65
========  ===================  =========  ==========================
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ckpt.state.native.history import StateHistory
from tests.support.spark.queries import STATE_STORES, drain, own_session

Event = tuple[int, str, str | None]
"""Batch, change, cause of a removal."""

SCRIPT: tuple[tuple[tuple[str, int, str], ...], ...] = (
    (("a", 1, "put"),),
    (("a", 2, "put"),),
    (("z", 20, "put"),),
    (("z", 21, "put"), ("a", 21, "delete")),
    (("a", 25, "put"),),
    (("a", 26, "put"),),
    (("z", 60, "put"),),
    (("z", 61, "put"), ("a", 61, "delete")),
    (("a", 65, "put"),),
)
"""Of each batch the rows: user, second of its time, and what it does."""

_SCHEMA = "user STRING, time TIMESTAMP, op STRING"


def write_script(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for number, rows in enumerate(SCRIPT):
        lines = [{"user": user, "time": f"2024-01-01T00:00:{at % 60:02}Z", "op": op} for user, at, op in rows]
        for line, (_, at, _) in zip(lines, rows, strict=True):
            line["time"] = f"2024-01-01T00:{at // 60:02}:{at % 60:02}Z"
        file = folder / f"{number}.json"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


@dataclass(frozen=True)
class Life:
    """A query, and what is known of the life of ``a`` in each part of its state."""

    store: str  # of ``STATE_STORES``
    build: Callable[[Any], Any]  # from the streaming frame of the script
    known: tuple[tuple[Mapping[str, Any], tuple[Event, ...]], ...]
    mode: str = "append"
    conf: Mapping[str, str] = field(default_factory=dict)
    since: str = "3.5"


def run(spark: Any, life: Life, script: Path, checkpoint: Path) -> Path:
    """Run a query over the script, a file in each batch."""
    idle = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
    own = own_session(spark, {**STATE_STORES[life.store], **idle, **life.conf})

    def read() -> Any:
        return own.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).json(str(script))

    drain(life.build(read), checkpoint, life.mode, "noop")
    return checkpoint


def follow(history: StateHistory, batch: int) -> list[str]:
    """The rows of a key after a batch, by the events up to it."""
    there = list(history.first_rows)
    for event in history.events:
        if event.batch <= batch:
            if event.before is not None:
                there.remove({**event.key, **event.before})
            if event.after is not None:
                there.append({**event.key, **event.after})
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in there)


def _timed(read: Any) -> Any:
    return read().withWatermark("time", "5 seconds")


def _rows(read: Any) -> Any:
    return _timed(read).where("op = 'put'")


def windows(read: Any) -> Any:
    """Windows of 10 s, that the watermark evicts."""
    from pyspark.sql import functions as F

    return _rows(read).groupBy(F.window("time", "10 seconds"), "user").count()


def sessions(read: Any) -> Any:
    """Sessions that end 10 s after their last row."""
    from pyspark.sql import functions as F

    return _rows(read).groupBy(F.session_window("time", "10 seconds"), "user").count()


def deduplicated(read: Any) -> Any:
    """Users, once in 5 s of event time."""
    return _rows(read).dropDuplicatesWithinWatermark(["user"])


def joined(read: Any) -> Any:
    """Rows with those of the same user in the next 5 s."""
    from pyspark.sql.functions import expr

    left = _rows(read).selectExpr("user AS name", "time AS since")
    right = _rows(read).selectExpr("user", "time")
    return left.join(right, expr("name = user AND time BETWEEN since AND since + INTERVAL 5 SECONDS"))


def counted(read: Any) -> Any:
    """Counts of users, that the function removes (applyInPandasWithState)."""

    def count(key: tuple[str], frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd

        rows = state.get[0] if state.exists else 0
        for frame in frames:
            rows += len(frame)
            deleted = "delete" in set(frame["op"])
            if deleted and state.exists:
                state.remove()
            elif not deleted:
                state.update((rows,))
        yield pd.DataFrame({"user": [key[0]], "rows": [rows]})

    schema = "user STRING, rows BIGINT"
    return _timed(read).groupBy("user").applyInPandasWithState(count, schema, "rows BIGINT", "update", "NoTimeout")


def variables(ttl_ms: int | None, mode: str) -> Callable[[Any], Any]:
    """Build a transformWithState query with a variable of each kind, and timers in event time."""

    def build(read: Any) -> Any:
        processor = _make_processor(ttl_ms, timers=mode == "EventTime")
        grouped = _timed(read).groupBy("user")
        return grouped.transformWithStateInPandas(processor, "user STRING", "Update", mode)

    return build


def _make_processor(ttl_ms: int | None, *, timers: bool) -> Any:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Variables(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.handle = handle
            ttl = [] if ttl_ms is None else [ttl_ms]
            self.count = handle.getValueState("count", "rows BIGINT", *ttl)
            self.ops = handle.getListState("ops", "op STRING", *ttl)
            self.by_op = handle.getMapState("byOp", "op STRING", "rows BIGINT", *ttl)

        def handleInputRows(self, key: tuple[str], rows: Any, timerValues: Any) -> Iterator[Any]:
            import pandas as pd

            for frame in rows:
                for op, time in zip(frame["op"], frame["time"], strict=True):
                    if op == "delete":
                        for variable in (self.count, self.ops, self.by_op):
                            variable.clear()
                        continue
                    count = (self.count.get()[0] if self.count.exists() else 0) + 1
                    self.count.update((count,))
                    self.ops.appendValue((f"put {count}",))
                    self.by_op.updateValue((op,), (count,))
                    if timers:
                        self.handle.registerTimer(int(time.timestamp() * 1000) + 10_000)
            yield pd.DataFrame({"user": [key[0]]})

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
            import pandas as pd

            yield pd.DataFrame({"user": [key[0]]})

        def close(self) -> None:
            pass

    return Variables()


def _life(cause: str | None, *, changes: bool = True) -> tuple[Event, ...]:
    second = [(1, "changed", None)], [(5, "changed", None)]
    first, other = second if changes else ([], [])
    return (
        (0, "created", None),
        *first,
        (3, "removed", cause),
        (4, "created", None),
        *other,
        (7, "removed", cause),
        (8, "created", None),
    )


def _come_and_go(cause: str | None) -> tuple[Event, ...]:
    """Rows without a key of their own: two come, and go together."""
    gone = [(batch, "removed", cause) for batch in (3, 3, 7, 7)]
    come = [(batch, "created", None) for batch in (0, 1, 4, 5, 8)]
    return tuple(sorted([*gone, *come], key=lambda event: event[0]))


_TTL_VALUE: tuple[Event, ...] = (
    (0, "created", None),
    (1, "changed", None),
    (2, "removed", "ttl"),
    (4, "created", None),
    (5, "changed", None),
    (6, "removed", "ttl"),
    (8, "created", None),
)
_ONE: Mapping[str, Any] = {}
_SIDES = tuple(({"side": side}, _come_and_go("watermark")) for side in ("left", "right"))
_CLEARED = (
    ({"variable": "count"}, _life("query")),
    ({"variable": "ops"}, _come_and_go("query")),
    ({"variable": "byOp"}, _life("query")),
)
LIVES: dict[str, Life] = {
    "variables-changelog": Life(
        "changelog",
        variables(None, "EventTime"),
        (*_CLEARED, ({"timers": True}, _come_and_go(None))),
        "update",
        since="4.0",
    ),
    "windows-hdfs": Life("hdfs", windows, ((_ONE, _life("watermark")),)),
    "sessions-changelog": Life("changelog", sessions, ((_ONE, _life(None)),)),
    "joined-hdfs": Life("hdfs", joined, _SIDES),
    "windows-rocksdb": Life("rocksdb", windows, ((_ONE, _life("watermark")),)),
    "windows-format2": Life("format2", windows, ((_ONE, _life("watermark")),), since="4.2"),
    "sessions-hdfs": Life("hdfs", sessions, ((_ONE, _life(None)),)),
    "counted-hdfs": Life("hdfs", counted, ((_ONE, _life("query")),), "update"),
    "joined-v3": Life(
        "changelog",
        joined,
        _SIDES,
        conf={"spark.sql.streaming.join.stateFormatVersion": "3"},
        since="4.1",
    ),
    "deduplicated-changelog": Life("changelog", deduplicated, ((_ONE, _life("watermark", changes=False)),)),
    "variables-ttl": Life(
        "rocksdb", variables(1, "ProcessingTime"), (({"variable": "count"}, _TTL_VALUE),), "update", since="4.0"
    ),
    "variables-format2": Life("format2", variables(86_400_000, "ProcessingTime"), _CLEARED, "update", since="4.2"),
}
"""By name, in an order in which each sixth is of another kind of operator and of store."""
