"""The rows of the sink and of the state of each query of `points_run.py`, if it has read each row once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from tests.changes.oracle.histories import digest
from tests.new.copy.points_run import BEHIND
from tests.support.spark.plans import START_MS

Rows = Iterable[Sequence[object]]


def must_be_exact(query: str, answers: Mapping[str, Mapping[str, Any]], at_least: int) -> None:
    """Each row is there once: ten of each batch up to the point, and of one planned there, 20 of each one since."""
    for point, answer in answers.items():
        sizes = [10] * (int(point) + 1 + answer["planned"])
        sizes += [20] * (answer["to"] + 1 - len(sizes))
        assert answer["to"] >= int(point) + at_least
        assert answer == {"to": answer["to"], "planned": answer["planned"], "rows": sum(sizes), **expect(query, sizes)}


def expect(query: str, sizes: Sequence[int]) -> dict[str, str]:
    """Return digests of the rows, for batches that read so many rows, of each source if there are two."""
    ends = [0, *accumulate(sizes)]
    return {part: digest(map(json.dumps, map(list, rows))) for part, rows in _QUERIES[query](ends).items()}


def _once(ends: Sequence[int]) -> dict[str, Rows]:
    rows = range(ends[-1])
    return {"sink": [[value] for value in rows], "state": [[value, None] for value in rows]}


def _aggregation(ends: Sequence[int]) -> dict[str, Rows]:
    keys = [range(key, ends[-1], 7) for key in range(7)]
    rows = [[key, len(values), sum(values)] for key, values in enumerate(keys)]
    return {"sink": rows, "state": rows}


def _windows(ends: Sequence[int]) -> dict[str, Rows]:
    """Batch N is stamped N seconds after the start; the watermark is two seconds before the batch before the last."""
    seconds = [range(*pair) for pair in pairwise(ends)]
    rows = [
        (at, [*seconds[at], *(seconds[at + 1] if at + 1 < len(seconds) else ())]) for at in range(0, len(seconds), 2)
    ]
    told = [[START_MS // 1000 + at, len(values), sum(values)] for at, values in rows]
    closed = sum(at + 2 <= len(seconds) - 2 - 2 for at, _ in rows)
    state = [[float(start), start + 2.0, *values] for start, *values in told[closed:]]
    return {"sink": told[:closed], "state": state}


def _join(ends: Sequence[int]) -> dict[str, Rows]:
    rows = range(ends[-1])
    sides = {"left": [[value] * 2 for value in rows], "right": [[value - BEHIND] * 2 for value in rows]}
    return {"sink": [[value, value] for value in rows[: len(rows) - BEHIND]], **sides}


def _collecting(ends: Sequence[int]) -> dict[str, Rows]:
    kept: dict[int, list[tuple[int, str, float]]] = {}
    out: list[list[object]] = []
    for batch in pairwise(ends):
        before = {key: kept[key][-1] if key in kept else None for key in (value % 50 for value in range(*batch))}
        for value in range(*batch):
            kept.setdefault(value % 50, []).append((value, f"v{value}", value / 2))
        out += ([key, f"{last} {kept[key]}"] for key, last in before.items())
    every = [[key, *row] for key, rows in kept.items() for row in rows]
    return {"sink": out, "every": every, "last": [[key, *rows[-1]] for key, rows in kept.items()]}


_QUERIES: dict[str, Callable[[Sequence[int]], dict[str, Rows]]] = {
    "once": _once,
    "aggregation": _aggregation,
    "windows": _windows,
    "join": _join,
    "collecting": _collecting,
}
