"""State that is made by hand: what queries of `tests.support.spark.queries` keep once they have seen batch 0.

Its rows have the values 0 to 9 and the time `START_MS`. A query that did not see them, and begins with this state, has
to go on as one that did.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from tests.support.spark.plans import ROWS, START_MS

_ONE = "operator 0"
_INSTANT = pa.timestamp("us", "UTC")


def _at(later_ms: int, count: int) -> Any:
    return pa.array([(START_MS + later_ms) * 1000] * count, pa.int64()).cast(_INSTANT)


def _grouped(key: Callable[[int], int]) -> dict[int, list[int]]:
    found = defaultdict(list)
    for value in range(ROWS):
        found[key(value)].append(value)
    return dict(found)


def _totals(keys: int) -> dict[str, Any]:
    found = _grouped(lambda value: value % keys)
    counts, sums = [*map(len, found.values())], [*map(sum, found.values())]
    return {"key_key": [*found], "value_count": counts, "value_sum": sums}


def _aggregation() -> dict[str, Any]:
    return {_ONE: _totals(7)}


def _windows() -> dict[str, Any]:
    window = {"key_window_start": _at(0, 7), "key_window_end": _at(2000, 7)}
    return {_ONE: {**window, **_totals(7)}}


def _sessions() -> dict[str, Any]:
    found = _grouped(lambda value: value // 4 % 10)
    begin, end, keys = _at(0, len(found)), _at(2000, len(found)), [*found]
    columns = {"key_key": keys, "key_sessionStartTime": begin, "value_session_window_start": begin}
    columns |= {"value_session_window_end": end, "value_key": keys, "value_count": [*map(len, found.values())]}
    return {_ONE: columns}


def _dedup() -> dict[str, Any]:
    return {_ONE: {"key_key": [*range(ROWS)]}}


def _join() -> dict[str, Any]:
    """Each even value has met the one of the other side; the odd ones have not."""
    left, right = [*range(ROWS)], [*range(0, ROWS, 2)]

    def side(name: str, values: list[int]) -> dict[str, Any]:
        columns = {"key_field0": values, f"value_{name}_time": _at(0, len(values)), f"value_{name}_value": values}
        return {**columns, "matched": [value in right for value in values]}

    return {f"{_ONE}, left side": side("left", left), f"{_ONE}, right side": side("right", right)}


def _pandas() -> dict[str, Any]:
    state = {"value_groupState_rows": [1] * ROWS, "value_groupState_last": [str(START_MS)] * ROWS}
    return {_ONE: {"key_key": [*range(ROWS)], **state, "value_timeoutTimestamp": [START_MS + 2000] * ROWS}}


def _transform() -> dict[str, Any]:
    keys = [*range(5)]
    rows = {"key_key": keys, "value_rows": [ROWS // 5] * 5, "value_fired": [0] * 5}
    timers = {"key_key": keys, "expiration_timestamp_ms": [START_MS + 2000] * 5}
    return {f"{_ONE}, variable rows": rows, f"{_ONE}, timers": timers}


BY_HAND: Mapping[str, Callable[[], dict[str, Any]]] = {
    "aggregation": _aggregation,
    "windowed-aggregation": _windows,
    "session-window": _sessions,
    "dedup": _dedup,
    "join": _join,
    "pandas-with-state": _pandas,
    "transform-with-state-event-time": _transform,
}


def by_hand(query: str) -> dict[str, Any]:
    """Tables of Arrow, by the label of their unit."""
    return {label: pa.table(columns) for label, columns in BY_HAND[query]().items()}
