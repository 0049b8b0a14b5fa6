"""The frame of initial state without Spark: one row for each grouping key, with all state of that key.

What the columns are is planned by ``reading.initial``; here the rows of every unit of an operator are brought
together, partition by partition.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ckpt.errors import LeftToSpark
from ckpt.formats.rows.arrow import fixed, lists, structs, whole
from ckpt.formats.rows.types import arrow_type
from ckpt.state.native.entries import Entries, entries_of, map_partitions, pick_field
from ckpt.state.native.groups import first_of_each, number_groups
from ckpt.state.reading.columns import Holds
from ckpt.state.reading.initial import InitialColumn, InitialShape
from ckpt.state.reading.reading import ChosenState
from ckpt.state.reading.units import StateUnit, UnitKind


@dataclass(slots=True)
class _Part:
    """The rows of one unit: for each column of the frame that is theirs its values, with their order."""

    keys: list[Any] = field(default_factory=list)  # structs of the key's columns
    held: dict[str, list[tuple[Any, list[Any]]]] = field(default_factory=lambda: defaultdict(list))


def read_initial_table(chosen: ChosenState, shape: InitialShape, jobs: int | None = None) -> Any:
    """All state of one operator, whose units ``chosen`` has; all of a key is in one partition.

    Raises what reading raises.
    """
    first = chosen.units[0]
    with closing(map_partitions(chosen, first, _read_partition, shape, jobs)) as tables:
        return pa.concat_tables([*tables] or _read_partition(chosen, first, shape, None))


def _read_partition(chosen: ChosenState, _: StateUnit, shape: InitialShape, partition: int | None) -> Iterator[Any]:
    parts = [_read_part(chosen, unit, shape, number, partition) for number, unit in enumerate(chosen.units)]
    columns, names = (*shape.keys, *shape.state), [key.name for key in shape.keys]
    empty = structs(names, [pa.nulls(0, arrow_type(key.type)) for key in shape.keys], 0)
    keys = pa.concat_arrays([key for part in parts for key in part.keys] or [empty])
    groups = number_groups(keys.flatten(), len(keys))
    first = first_of_each(groups)
    filled: dict[str, Any] = dict(zip(names, keys.take(whole(pa.int64(), first)).flatten(), strict=True))
    start = 0
    for number, part in enumerate(parts):
        own = groups[start : start + sum(map(len, part.keys))]
        start += len(own)
        for column in shape.state:
            if column.reading == number:
                filled[column.name] = _join_values(column, part, own, len(first))
    schema = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])
    yield pa.Table.from_arrays([filled[column.name] for column in columns], schema=schema)


def _read_part(chosen: ChosenState, unit: StateUnit, shape: InitialShape, number: int, partition: int | None) -> _Part:
    part = _Part()
    columns = [column for column in shape.state if column.reading == number]
    for entries in entries_of(chosen, unit, partition):
        row, element = _split_row(unit, entries)
        keys = [pick_field(row, key.places) for key in shape.keys]
        part.keys.append(structs([key.name for key in shape.keys], keys, len(entries.keys)))
        for column in columns:
            part.held[column.name].append(_hold_values(column, row, element, len(entries.keys)))
    return part


def _split_row(unit: StateUnit, entries: Entries) -> tuple[list[Any], list[Any]]:
    """The columns of a row as Spark gives it, and those of an element of a list or map."""
    match unit.kind:
        case UnitKind.LIST:
            return [entries.keys, entries.values], entries.values.flatten()
        case UnitKind.MAP:
            key, own = entries.keys.flatten()
            return [key, entries.values], [own, entries.values]
        case UnitKind.TIMERS:
            return entries.keys.flatten(), []
    return [entries.keys, entries.values], []


def _hold_values(column: InitialColumn, row: list[Any], element: list[Any], count: int) -> tuple[Any, list[Any]]:
    """Return each row's value of a column, and its place among the rows of its key."""
    match column.holds:
        case Holds.LIST:
            return _make_struct(column, element, count), []
        case Holds.MAP:
            return _make_struct(column, element, count), [element[0]]
        case Holds.TIMERS:
            timers = pick_field(row, column.places)
            return timers, [timers]
        case Holds.SESSIONS:
            held = _make_struct(column, row, count)
            return held, [held.flatten()[0]]
        case Holds.ROWS:
            return _make_struct(column, row, count), [row[0].flatten()[-1]]  # an index, or the time
    return pick_field(row, column.places), []


def _make_struct(column: InitialColumn, columns: list[Any], count: int) -> Any:
    parts = [pick_field(columns, inner.places) for inner in column.inner]
    return structs([inner.name for inner in column.inner], parts, count)


def _join_values(column: InitialColumn, part: _Part, groups: Any, count: int) -> Any:
    """Return each key's value of a column, from all its rows."""
    kind = arrow_type(column.type)
    if not part.held[column.name]:
        is_list = pa.types.is_list(kind)
        return lists(pa.nulls(0, kind.value_type), np.zeros(count, np.int64)) if is_list else pa.nulls(count, kind)
    values, orders = zip(*part.held[column.name], strict=True)
    held = pa.concat_arrays(values)
    if column.holds not in (Holds.LIST, Holds.MAP, Holds.TIMERS, Holds.SESSIONS, Holds.ROWS):
        return _pick_first(held, groups, count)
    sorted_by = map(pa.concat_arrays, zip(*orders, strict=True))
    ranks = [rank for array in sorted_by for rank in _rank_values(array, column.name)]
    order = np.lexsort((*reversed(ranks), groups))
    return lists(held.take(whole(pa.int64(), order)), np.bincount(groups, minlength=count))


def _pick_first(held: Any, groups: Any, count: int) -> Any:
    """The first value of each key that is not NULL."""
    there = np.flatnonzero(np.asarray(held.is_valid()))
    first: Any = np.full(count, -1)
    first[groups[there[::-1]]] = there[::-1]
    return held.take(fixed(pa.int64(), first, first < 0))


def _rank_values(array: Any, name: str) -> Iterator[Any]:
    """Numbers that compare as values do, for all that is in a column; NULL comes first, as in Spark."""
    import pyarrow.compute as pc  # not at the top: a look at state needs none of it

    if pa.types.is_struct(array.type):
        yield np.asarray(array.is_valid()).astype(np.int64)
        for inner in array.flatten():
            yield from _rank_values(inner, name)
    elif pa.types.is_null(array.type):
        return
    elif pa.types.is_nested(array.type):
        raise LeftToSpark(f"ckpt does not know how Spark orders {name}, whose keys contain arrays or maps")
    else:
        array = array.cast(pa.int8()) if pa.types.is_boolean(array.type) else array
        ranks: Any = np.zeros(len(array), np.int64)
        ranks[np.asarray(array.is_valid())] = np.asarray(pc.rank(array.drop_null(), tiebreaker="dense"))
        yield ranks
