"""Compare what Spark keeps twice: a join's rows and their counts, timers and expiry times and their indexes.

The rules are those by which Spark writes (``SymmetricHashJoinStateManager``, ``TimerStateImpl``, ``TTLState``,
``ListStateMetricsImpl``): what belongs together is written in one batch.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ckpt.formats.statefiles import JOIN_COUNTS, JOIN_ROWS, SIDES, TIMED_KEYS, TIMED_ROWS
from ckpt.state.native.groups import number_groups

_TIMERS = ("$procTimers", "$eventTimers")
_TTL, _LEAST, _COUNT, _ROWS = "$ttl_", "$min_", "$count_", "$rowCounter_"


@dataclass(frozen=True, slots=True)
class FamilyRows:
    """All rows of one column family (or store) of one partition: a list's element has its key."""

    keys: Any  # array of structs
    last: Any  # the last column of the values: a count, or when they expire


def find_missing_rows(stores: Mapping[str, FamilyRows]) -> Iterator[str]:
    """Rows of a join that are counted and not there: join state formats 1 to 3."""
    for side in SIDES:
        lost, _ = _compare_row_counts(stores, side)
        if lost:
            yield f"rows on the {side} side that are counted but missing: {lost:,} (Spark fails when it needs one)"


def find_contradictions(stores: Mapping[str, FamilyRows]) -> Iterator[str]:
    """Find what else contradicts itself in one partition, by the names of its families, and what Spark makes of it."""
    for side in SIDES:
        _, extra = _compare_row_counts(stores, side)
        if extra:
            yield f"rows on the {side} side that are not counted: {extra:,} (Spark never finds them)"
        yield from _check_rows_by_time(side, stores.get(f"{side}-{TIMED_ROWS}"), stores.get(f"{side}-{TIMED_KEYS}"))
    for timers in _TIMERS:
        yield from _check_timers(stores.get(f"{timers}_keyToTimestamp"), stores.get(f"{timers}_timestampToKey"))
    for name, index in stores.items():
        if name.startswith(_TTL):
            variable = name.removeprefix(_TTL)
            yield from _check_expiring(variable, stores.get(_LEAST + variable, stores.get(variable)), index)
    for variable, elements in stores.items():
        counts = stores.get(_COUNT + variable, stores.get(_ROWS + variable))
        yield from _check_element_counts(variable, counts, elements)


def _compare_row_counts(stores: Mapping[str, FamilyRows], side: str) -> tuple[int, int]:
    """How many rows are counted and not there, and the reverse. Those of a key have the numbers from 0 on."""
    counts, rows = stores.get(f"{side}-{JOIN_COUNTS}"), stores.get(f"{side}-{JOIN_ROWS}")
    if counts is None or rows is None:
        return 0, 0
    *key, number = rows.keys.flatten()
    groups = _group_together(counts.keys.flatten(), key)
    if groups is None:
        return 0, 0
    of_counts, of_rows = groups
    expected: Any = np.zeros(_size(groups), np.int64)
    expected[of_counts] = np.asarray(counts.last)
    numbers = np.asarray(number)
    counted = (numbers >= 0) & (numbers < expected[of_rows])
    missing = (expected - np.bincount(of_rows[counted], minlength=len(expected))).clip(min=0)
    return int(missing.sum()), int((~counted).sum())


def _check_rows_by_time(side: str, rows: FamilyRows | None, index: FamilyRows | None) -> Iterator[str]:
    """Join state format 4: an entry by time for each key and time; none where nothing is ever evicted."""
    if rows is None or index is None or not len(index.keys):
        return
    lost = f"keys on the {side} side without an entry by time"
    stale = f"entries by time on the {side} side without rows"
    yield from _report_differences(
        (rows.keys.flatten(), lost, " (Spark never removes their rows)"), (index.keys.flatten(), stale, "")
    )


def _check_timers(timers: FamilyRows | None, index: FamilyRows | None) -> Iterator[str]:
    if timers is None or index is None:
        return
    key, at = timers.keys.flatten()
    also_at, also_key = index.keys.flatten()
    yield from _report_differences(
        ([key, at], "timers without an entry by time", " (they never fire)"),
        ([also_key, also_at], "entries by time without a timer", " (once due, they fire in every batch)"),
    )


def _check_expiring(variable: str, values: FamilyRows | None, index: FamilyRows) -> Iterator[str]:
    """TTL: an entry for each key and the time when it expires; of a list, when its first element does."""
    if values is None or values.last is None:
        return
    at, key = index.keys.flatten()
    lost, kept = f"values of {variable} without an entry by expiry time", " (Spark does not remove them)"
    stale = f"entries by expiry time without a value of {variable}"
    removed = " (when one is due, Spark removes the current value of its key)"
    yield from _report_differences(
        ([*values.keys.flatten(), values.last], lost, kept), ([*key.flatten(), at], stale, removed)
    )


def _check_element_counts(variable: str, counts: FamilyRows | None, elements: FamilyRows) -> Iterator[str]:
    """Of a list the number of its elements, where it is counted."""
    groups = _group_together(counts.keys.flatten(), elements.keys.flatten()) if counts is not None else None
    if counts is None or groups is None:
        return
    of_counts, of_elements = groups
    there = np.bincount(of_elements, minlength=_size(groups))
    wrong = int((there[of_counts] != np.asarray(counts.last)).sum())
    if wrong:
        yield f"lists of {variable} with a wrong count of their length: {wrong:,} (only Spark's metrics use the count)"


def _report_differences(*sides: tuple[Sequence[Any], str, str]) -> Iterator[str]:
    """How many rows of each of two are not in the other, between words; equal ones are one."""
    groups = _group_together(sides[0][0], sides[1][0])
    if groups is None:
        return
    for (_, words, consequence), own, other in zip(sides, groups, groups[::-1], strict=True):
        if count := len(np.setdiff1d(own, other)):
            yield f"{words}: {count:,}{consequence}"


def _group_together(left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, Any] | None:
    """Rows of two kinds by number, the same where they are equal; None where their types differ."""
    leaves, others = [*_leaves(left)], [*_leaves(right)]
    if [leaf.type for leaf in leaves] != [other.type for other in others]:
        return None
    rows = len(left[0])
    groups = number_groups(map(pa.concat_arrays, zip(leaves, others, strict=True)), rows + len(right[0]))
    return groups[:rows], groups[rows:]


def _leaves(columns: Sequence[Any]) -> Iterator[Any]:
    for column in columns:
        if pa.types.is_struct(column.type):
            yield from _leaves(column.flatten())
        else:
            yield column


def _size(groups: tuple[Any, Any]) -> int:
    return max(int(part.max(initial=-1)) for part in groups) + 1
