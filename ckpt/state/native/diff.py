"""Compare two states: of two batches, or of two checkpoints. Read without Spark."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from ckpt.errors import UsageError
from ckpt.formats.rows.arrow import whole
from ckpt.model import Json
from ckpt.state.native import shapes
from ckpt.state.native.batches import columns_of, raw_batches
from ckpt.state.native.groups import groups_of, occurrences
from ckpt.state.native.json_values import plain
from ckpt.state.reading.choose import Part, RequestedPart
from ckpt.state.reading.columns import Columns
from ckpt.state.reading.moment import Moment
from ckpt.state.reading.reading import Chosen, Question, choose
from ckpt.state.reading.units import StateUnit, UnitKind

_BY_KEY = (UnitKind.KEY, UnitKind.DEDUPLICATION, UnitKind.STORE, UnitKind.VALUE, UnitKind.MAP)


class Change(StrEnum):
    """The kinds of change of a key, or of a row."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that is not the same: the columns of its key, and those of its value before and after."""

    change: Change
    key: dict[str, Json]
    before: dict[str, Json] | None
    after: dict[str, Json] | None


@dataclass(frozen=True, slots=True)
class UnitDiff:
    """The changes in a unit. Rows of lists, timers and sides of joins have no key: they are added or removed."""

    unit: StateUnit
    added: int
    removed: int
    changed: int
    rows: tuple[ChangedRow, ...]  # some of them


@dataclass(frozen=True, slots=True)
class StateDiff:
    """The changes between two states, unit by unit."""

    checkpoint: str  # as it was given
    other: str  # the checkpoint of the later state
    before: Moment
    after: Moment
    units: tuple[UnitDiff, ...]


def diff_state(
    path: str,
    other: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    from_batch: int | None = None,
    to_batch: int | None = None,
    limit: int = 20,
    **part: Unpack[Part],
) -> StateDiff:
    """Compare the state after two batches of a checkpoint, or of two checkpoints; every unit that fits.

    Works for every store and batch that can be read, also where no changelogs are kept. Both states of a unit are in
    memory at once.

    Args:
        path: A local path, or any URI that ``open_checkpoint`` opens.
        other: Another checkpoint; by default the same.
        storage_options: For the file systems of both.
        from_batch: The earlier batch, of ``path``; needed where there is no other checkpoint.
        to_batch: The later batch, of ``other``; by default the newest committed.
        limit: How many rows of each unit are given at most; all are counted.
        part: Which part of the state.

    Raises:
        StateDamaged, UsageError, CkptError: As of ``read_state_arrow``.

    >>> found = ckpt.diff_state("sample_checkpoints/aggregation-hdfs-4.2", from_batch=0, to_batch=9)
    >>> [(unit.added, unit.removed, unit.changed) for unit in found.units]
    [(0, 0, 7)]

    """
    if other is None and from_batch is None:
        raise UsageError("`from_batch`: which batch is it to be compared with?")
    if limit < 0:
        raise UsageError("`limit`: 0 or more")
    wanted = RequestedPart(**part)
    before = choose(Question(path, wanted, all_units=True, batch=from_batch), storage_options)
    after = choose(Question(other or path, wanted, all_units=True, batch=to_batch), storage_options)
    units = [_unit(before, one, after, two, limit) for one, two in _matched(before, after)]
    return StateDiff(path, other or path, before.moment, after.moment, tuple(units))


def _matched(before: Chosen, after: Chosen) -> list[tuple[StateUnit, StateUnit]]:
    """The units of both. Raises UsageError where one has a unit that the other lacks, or other columns."""
    there = {unit.label: unit for unit in after.units}
    missing = {unit.label for unit in before.units} ^ there.keys()
    if missing:
        raise UsageError(f"{after.checkpoint.uri}: only one of the two has {', '.join(sorted(missing))}")
    for unit in before.units:
        if shapes.flat_schema(columns_of(unit)) != shapes.flat_schema(columns_of(there[unit.label])):
            raise UsageError(f"{after.checkpoint.uri}: {unit.label} has other columns there")
    return [(unit, there[unit.label]) for unit in before.units]


def _unit(before: Chosen, one: StateUnit, after: Chosen, two: StateUnit, limit: int) -> UnitDiff:
    columns = columns_of(one)
    tables = [_table(before, one, columns), _table(after, two, columns)]
    both = pa.concat_tables(tables).combine_chunks()
    arrays = [column.combine_chunks() if both.num_rows else None for column in both.columns]
    if not both.num_rows:
        return UnitDiff(one, 0, 0, 0, ())
    keyed = one.kind in _BY_KEY
    is_key = [not keyed or column.path[0] in ("key", "user_map_key") for column in columns.kept]
    first = tables[0].num_rows
    groups = groups_of([array for array, key in zip(arrays, is_key, strict=True) if key], both.num_rows)
    if not keyed:  # equal rows are told apart by their number
        number = np.concatenate([occurrences(groups[:first]), occurrences(groups[first:])])
        groups = np.unique(np.stack([groups, number]), axis=1, return_inverse=True)[1].reshape(-1)
    values = groups_of([array for array, key in zip(arrays, is_key, strict=True) if not key], both.num_rows)
    old, new = _places(groups, 0, first), _places(groups, first, both.num_rows)
    there = (old >= 0) & (new >= 0)
    kinds = {
        Change.ADDED: np.flatnonzero(old < 0),
        Change.REMOVED: np.flatnonzero(new < 0),
        Change.CHANGED: np.flatnonzero(there)[values[old[there]] != values[new[there]]],
    }
    rows: list[ChangedRow] = []
    for change, found in kinds.items():
        some = found[: limit - len(rows)]
        rows += _rows(change, both, is_key, old[some], new[some])
    added, removed, changed = (len(kinds[change]) for change in Change)
    return UnitDiff(one, added, removed, changed, tuple(rows))


def _table(chosen: Chosen, unit: StateUnit, columns: Columns) -> Any:
    batches = [shapes.flat(columns, raw) for raw in raw_batches(chosen, unit)]
    return pa.Table.from_batches(batches, shapes.flat_schema(columns))


def _places(groups: Any, start: int, end: int) -> Any:
    """For each number the row that has it, among some rows; -1 for none."""
    found: Any = np.full(int(groups.max(initial=-1)) + 1, -1)
    found[groups[start:end]] = np.arange(start, end)
    return found


def _rows(change: Change, both: Any, is_key: list[bool], old: Any, new: Any) -> list[ChangedRow]:
    """The rows of some numbers, with what they were and what they are."""
    found = []
    for one, two in zip(_objects(both, old), _objects(both, new), strict=True):
        row = two or one or {}
        names = list(zip(row, is_key, strict=True))
        keys = [name for name, key in names if key]
        before, after = (
            {name: value for name, value in some.items() if name not in keys} if some else None for some in (one, two)
        )
        found.append(ChangedRow(change, {name: row[name] for name in keys}, before, after))
    return found


def _objects(both: Any, places: Any) -> list[dict[str, Json] | None]:
    """Rows as objects; None for a row that is not there."""
    some = both.take(whole(pa.int64(), np.maximum(places, 0)))
    cells = [plain(column.combine_chunks()) for column in some.columns]
    rows = [dict(zip(both.column_names, row, strict=True)) for row in zip(*cells, strict=True)]
    return [row if place >= 0 else None for row, place in zip(rows, places.tolist(), strict=True)]
