"""Compare two states: of two batches, or of two checkpoints. Read without Spark."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from operator import attrgetter
from os import fspath
from typing import Annotated, Any, Unpack

import numpy as np
import pyarrow as pa

from ckpt.checkpoint.times import BatchOrTime
from ckpt.errors import UsageError
from ckpt.formats.rows.arrow import whole
from ckpt.model import Json, Location
from ckpt.processes import Processes, Runner
from ckpt.state.book import BOOK
from ckpt.state.native.entries import batches_of, flat_schema, map_partitions, open_unit
from ckpt.state.native.groups import number_groups, number_occurrences
from ckpt.state.native.json_values import make_objects
from ckpt.state.native.store_files import find_store_files, layout_of
from ckpt.state.reading.choose import Part, RequestedPart
from ckpt.state.reading.columns import columns_of
from ckpt.state.reading.reading import ChosenState, Moment, StateRequest, choose
from ckpt.state.reading.units import StateUnit
from ckpt.values import Value


class Change(StrEnum):
    """The kinds of change of a key, or of a row."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that is not the same: the columns of its key, and those of its value before and after."""

    change: Change
    key: Annotated[
        dict[str, Json], "the columns of the key, as in `rows` of `ckpt state show`; without a key, all columns"
    ]
    before: Annotated[dict[str, Json] | None, "the other columns in the earlier state, or null"]
    after: Annotated[dict[str, Json] | None, "the other columns in the later state, or null"]


@dataclass(frozen=True, slots=True)
class UnitDiff:
    """The changes in a unit. Rows of lists, timers and sides of joins have no key: they are added or removed."""

    unit: StateUnit
    added: Annotated[int, "keys, or rows, that only the later state has"]
    removed: Annotated[int, "that only the earlier state has"]
    changed: Annotated[int, "keys with another value"]
    rows: Annotated[tuple[ChangedRow, ...], "some of them"]


@dataclass(frozen=True, slots=True)
class StateDiff(Value):
    """The changes between two states, unit by unit."""

    checkpoint: str  # as it was given
    other: str  # the checkpoint of the later state
    before: Moment
    after: Moment
    units: tuple[UnitDiff, ...]


def state_diff(
    checkpoint: Location,
    other: Location | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    from_batch: BatchOrTime | None = None,
    to_batch: BatchOrTime | None = None,
    limit: int = 20,
    jobs: int | None = None,
    engine: Runner | None = None,
    **part: Unpack[Part],
) -> StateDiff:
    """Compare the state after two batches of a checkpoint, or of two checkpoints; every unit that fits.

    Works for every store and batch that can be read, also where no changelogs are kept. Both states of a partition are
    in memory at once; of a unit, where the two have other partitions.

    Args:
        checkpoint: A path, any URI that ``open_checkpoint`` opens, or a ``Checkpoint``.
        other: Another checkpoint; by default the same.
        storage_options: For the file systems of both.
        from_batch: The earlier batch, of ``checkpoint``; by default the newest readable one before ``to_batch``, and of
            another checkpoint the newest committed.
        to_batch: The later batch, of ``other``; by default the newest committed.
        limit: Return at most this many rows per unit; all are counted.
        jobs: How many processes read large state at a time; by default one per core.
        engine: By default processes on this machine compare; ``ckpt.types.Executors()`` uses Spark's.
        part: The part of the state.

    Raises:
        StateDamaged, UsageError, CkptError: As for ``read_state_arrow``.

    >>> found = ckpt.state_diff("sample_checkpoints/aggregation-hdfs-4.2", from_batch=0, to_batch=9)
    >>> [(unit.added, unit.removed, unit.changed) for unit in found.units]
    [(0, 0, 7)]
    """
    path, later = fspath(checkpoint), fspath(checkpoint if other is None else other)
    if limit < 0:
        raise UsageError.of("{--limit} must be at least 0")
    wanted = RequestedPart(**part)
    after = choose(StateRequest(later, wanted, all_units=True, batch=to_batch), storage_options)
    earlier = _find_batch_before(after) if other is None and from_batch is None else from_batch
    before = choose(StateRequest(path, wanted, all_units=True, batch=earlier), storage_options)
    units = []
    for old, new in _match_units(before, after):
        what = after, new, limit
        if _list_partitions(before, old) == _list_partitions(after, new):
            parts = [*map_partitions(before, old, _diff_partition, what, jobs, engine)]
        else:
            run = (engine or Processes(1)).run(open_unit, (_diff_partition, before, old, what), [None])
            parts = [diff for _, diff in run]
        units.append(_join_diffs(old, parts, limit))
    return StateDiff(path, later, before.moment, after.moment, tuple(units))


def _find_batch_before(after: ChosenState) -> int:
    """Find the newest batch before the later one whose state can be read. Raises UsageError where there is none."""
    later = after.moment.batch
    newest = [
        max((min(last, later - 1) for first, last in unit.readable_batches if first < later), default=-1)
        for unit in after.units
    ]
    if min(newest, default=-1) < 0:
        raise UsageError(BOOK.text("diff_nothing_before", uri=after.checkpoint.uri, later=later))
    return min(newest)


def _match_units(before: ChosenState, after: ChosenState) -> list[tuple[StateUnit, StateUnit]]:
    """The units of both. Raises UsageError where one has a unit that the other lacks, or other columns."""
    there = {unit.label: unit for unit in after.units}
    missing = {unit.label for unit in before.units} ^ there.keys()
    if missing:
        raise UsageError(f"{after.checkpoint.uri}: only one of the two has {', '.join(sorted(missing))}")
    for unit in before.units:
        if flat_schema(columns_of(unit)) != flat_schema(columns_of(there[unit.label])):
            raise UsageError(f"{after.checkpoint.uri}: {unit.label} has other columns there")
    return [(unit, there[unit.label]) for unit in before.units]


def _list_partitions(chosen: ChosenState, unit: StateUnit) -> list[int]:
    store = layout_of(chosen, unit).store
    return [files.place.partition for files in find_store_files(chosen, unit.operator, store)]


def _join_diffs(unit: StateUnit, parts: Sequence[UnitDiff], limit: int) -> UnitDiff:
    """The changes in all partitions: rows by their kind, then by partition."""
    added, removed, changed = (sum(map(attrgetter(change), parts)) for change in Change)
    rows = (row for change in Change for part in parts for row in part.rows if row.change is change)
    return UnitDiff(unit, added, removed, changed, tuple(islice(rows, limit)))


def _diff_partition(
    before: ChosenState, unit: StateUnit, what: tuple[ChosenState, StateUnit, int], partition: int | None
) -> Iterator[UnitDiff]:
    """Compare one partition of the earlier state with that of the later one, or all at once."""
    after, later_unit, limit = what
    columns = columns_of(unit)
    tables = [
        pa.Table.from_batches(batches_of(*state, columns, partition), flat_schema(columns))
        for state in ((before, unit), (after, later_unit))
    ]
    both = pa.concat_tables(tables)
    if not both.num_rows:
        return
    arrays = [column.combine_chunks() for column in both.columns]
    keyed = unit.has_key
    is_key = [not keyed or column.of_key for column in columns.kept]
    first = tables[0].num_rows
    groups = number_groups([array for array, key in zip(arrays, is_key, strict=True) if key], both.num_rows)
    if not keyed:  # equal rows are told apart by their number
        number = np.concatenate([number_occurrences(groups[:first]), number_occurrences(groups[first:])])
        groups = np.unique(np.stack([groups, number]), axis=1, return_inverse=True)[1].reshape(-1)
    values = number_groups([array for array, key in zip(arrays, is_key, strict=True) if not key], both.num_rows)
    old, new = _place_groups(groups, 0, first), _place_groups(groups, first, both.num_rows)
    there = (old >= 0) & (new >= 0)
    kinds = {
        Change.ADDED: np.flatnonzero(old < 0),
        Change.REMOVED: np.flatnonzero(new < 0),
        Change.CHANGED: np.flatnonzero(there)[values[old[there]] != values[new[there]]],
    }
    rows: list[ChangedRow] = []
    for change, numbers in kinds.items():
        shown = numbers[:limit]
        rows += _list_changed_rows(change, both, is_key, old[shown], new[shown])
    added, removed, changed = (len(kinds[change]) for change in Change)
    yield UnitDiff(unit, added, removed, changed, tuple(rows))


def _place_groups(groups: Any, start: int, end: int) -> Any:
    """For each number the row that has it, among some rows; -1 for none."""
    places: Any = np.full(int(groups.max(initial=-1)) + 1, -1)
    places[groups[start:end]] = np.arange(start, end)
    return places


def _list_changed_rows(change: Change, both: Any, is_key: list[bool], old: Any, new: Any) -> list[ChangedRow]:
    """Changed rows at the given positions, with their values before and after."""
    changed = []
    for pair in zip(_make_objects(both, old), _make_objects(both, new), strict=True):
        row = pair[1] or pair[0] or {}
        keys = [name for name, key in zip(row, is_key, strict=True) if key]
        before, after = (side and {name: value for name, value in side.items() if name not in keys} for side in pair)
        changed.append(ChangedRow(change, {name: row[name] for name in keys}, before, after))
    return changed


def _make_objects(both: Any, places: Any) -> list[dict[str, Json] | None]:
    """Rows as objects; None for a row that is not there."""
    rows = make_objects(both.take(whole(pa.int64(), np.maximum(places, 0))))
    return [row if index >= 0 else None for row, index in zip(rows, places.tolist(), strict=True)]
