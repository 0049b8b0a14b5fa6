"""Columns of groups that have become one group, merged as Spark's aggregate functions merge their buffers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ckpt.errors import Undecodable
from ckpt.formats.operators import OperatorName
from ckpt.formats.rows.arrow import lists, structs
from ckpt.formats.rows.unsafe import VERSION, rows_of, structs_of
from ckpt.formats.rows.unsafe_writer import rows_from
from ckpt.formats.types import struct_of
from ckpt.model import Json, Operator
from ckpt.new.evolve.origins import ColumnMerge
from ckpt.query.aggregates import Merge

_DEDUPLICATIONS = (OperatorName.DEDUPLICATION, OperatorName.DEDUPLICATION_WITHIN_WATERMARK)
_REGISTER_BITS, _REGISTERS_IN_A_WORD = 6, 10  # ``HyperLogLogPlusPlusHelper``
_BITS = {Merge.BIT_AND: np.bitwise_and, Merge.BIT_OR: np.bitwise_or, Merge.BIT_XOR: np.bitwise_xor}


def feeds_another(operator: Operator, operators: Sequence[Operator]) -> bool:
    """Tell whether a deduplication passes its rows to another operator, which has each query's row of a shared key."""
    return len(operators) > 1 and operator.name in _DEDUPLICATIONS


def merge_columns(columns: Sequence[pa.Array], starts: np.ndarray, merges: Sequence[ColumnMerge]) -> list[pa.Array]:
    """Merge the rows of each group, which lie together from one of ``starts`` to the next; columns are Arrow arrays.

    Raises Undecodable where a sum does not fit its type.
    """
    groups = _Groups(starts, len(columns[0]) if columns else 0)
    merged: list[pa.Array] = []
    for merge in merges:
        own = columns[merge.first : merge.first + merge.count]
        if merge.how in (Merge.LIST, Merge.SET):
            merged.append(groups.merge_lists(own[0], merge.element, distinct=merge.how is Merge.SET))
        else:
            merged += groups.merge(merge.how, own)
    return merged


class _Groups:
    """Groups of rows that lie together."""

    def __init__(self, starts: np.ndarray, count: int) -> None:
        self.starts = starts
        sizes: Any = np.diff(np.append(starts, count))
        self.numbers: Any = np.repeat(np.arange(len(starts)), sizes)

    def merge(self, how: Merge, columns: Sequence[pa.Array]) -> list[pa.Array]:
        match how:
            case Merge.COUNT:
                return [self._add(column) for column in columns]
            case Merge.SUM:
                return self._merge_sums(*columns)
            case Merge.AVERAGE:
                return [_where(self._any(columns[0].is_null()), self._add(columns[0])), self._add(columns[1])]
            case Merge.LEAST | Merge.GREATEST:
                return [self._find_extreme(column, greatest=how is Merge.GREATEST) for column in columns]
            case Merge.BIT_AND | Merge.BIT_OR | Merge.BIT_XOR:
                neutral = -1 if how is Merge.BIT_AND else 0
                return [self._reduce(column, _BITS[how], neutral) for column in columns]
            case Merge.MOMENTS:
                return self._merge_moments([_floats(column) for column in columns])
            case Merge.COMOMENTS:
                return self._merge_comoments([_floats(column) for column in columns])
            case Merge.REGISTERS:
                return [self._merge_registers(column) for column in columns]
        return [column.take(pa.array(self.starts)) for column in columns]

    def _any(self, mask: Any) -> Any:
        return np.logical_or.reduceat(np.asarray(mask), self.starts)

    def _reduce(self, column: pa.Array, function: Any, neutral: Any) -> pa.Array:
        """NULL is no value; a group without one has NULL."""
        values = np.asarray(column.fill_null(neutral))
        return _where(~self._any(column.is_valid()), pa.array(function.reduceat(values, self.starts), column.type))

    def _add(self, column: pa.Array) -> pa.Array:
        if pa.types.is_decimal(column.type):
            table = pa.table({"group": self.numbers, "value": column}).group_by("group", use_threads=False)
            sums = table.aggregate([("value", "sum")])["value_sum"].combine_chunks()
            about = np.asarray(column.cast(pa.float64()).fill_null(0.0))
            self._check_room(about, 10.0 ** (column.type.precision - column.type.scale))
            return sums.cast(column.type)
        if pa.types.is_integer(column.type):
            self._check_room(np.asarray(column.fill_null(0)).astype(np.float64), 2.0**63)
        return self._reduce(column, np.add, 0)

    def _check_room(self, about: Any, limit: float) -> None:
        if (np.abs(np.add.reduceat(about, self.starts)) >= limit * (1 - 1e-9)).any():
            raise Undecodable("sums of merged groups do not fit their type")

    def _merge_sums(self, sums: pa.Array, are_empty: pa.Array | None = None) -> list[pa.Array]:
        merged = self._add(sums)
        if are_empty is None:
            return [merged]
        empty = np.asarray(are_empty)
        overflowed = self._any(np.asarray(sums.is_null()) & ~empty)
        return [_where(overflowed, merged), pa.array(np.logical_and.reduceat(empty, self.starts))]

    def _find_extreme(self, column: pa.Array, *, greatest: bool) -> pa.Array:
        if pa.types.is_floating(column.type):  # NaN is greater than any number
            return self._reduce(column, np.maximum if greatest else np.fmin, -np.inf if greatest else np.nan)
        order = "descending" if greatest else "ascending"
        table = pa.table({"group": self.numbers, "value": column})
        rows = pc.sort_indices(table, sort_keys=[("group", "ascending"), ("value", order)])  # NULL last
        return column.take(rows.take(pa.array(self.starts)))

    def _total(self, values: Any) -> Any:
        return np.add.reduceat(values, self.starts)

    def _center(self, counts: Any, averages: Any) -> tuple[Any, Any]:
        """The average of each group, and how far from it that of each row is."""
        total = self._total(counts)
        weighted = self._total(np.where(counts > 0, counts * averages, 0.0))
        average = np.divide(weighted, total, out=np.zeros_like(total), where=total > 0)
        return average, np.where(counts > 0, averages - average[self.numbers], 0.0)

    def _merge_moments(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        counts, averages, *moments = columns
        average, away = self._center(counts, averages)
        terms: list[Callable[[], Any]] = [
            lambda: moments[0] + counts * away**2,
            lambda: moments[1] + 3 * away * moments[0] + counts * away**3,
            lambda: moments[2] + 4 * away * moments[1] + 6 * away**2 * moments[0] + counts * away**4,
        ]
        merged = [self._total(term()) for term in terms[: len(moments)]]
        return [pa.array(values) for values in (self._total(counts), average, *merged)]

    def _merge_comoments(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        counts, *averages = columns[:3]
        (average_x, away_x), (average_y, away_y) = (self._center(counts, own) for own in averages)
        pairs = ((away_x, away_y), (away_x, away_x), (away_y, away_y))
        merged = [self._total(own + counts * a * b) for own, (a, b) in zip(columns[3:], pairs, strict=False)]
        return [pa.array(values) for values in (self._total(counts), average_x, average_y, *merged)]

    def merge_lists(self, column: pa.Array, element: Json, *, distinct: bool) -> pa.Array:
        """Join arrays of elements, each serialized as a row with one column (``Collect.serialize``)."""
        schema = struct_of([("buf", {"type": "array", "elementType": element, "containsNull": True})])
        rows = rows_of([VERSION + value for value in column.to_pylist()])
        (arrays,) = structs_of(schema, rows, "buf").flatten()
        owners: Any = np.repeat(self.numbers, np.asarray(pc.list_value_length(arrays)))
        elements = arrays.flatten()
        if distinct:
            table = pa.table({"group": owners, "value": elements}).group_by(["group", "value"], use_threads=False)
            different = table.aggregate([]).sort_by("group").combine_chunks()
            owners, elements = np.asarray(different["group"]), different["value"].combine_chunks()
        joined = lists(elements, np.bincount(owners, minlength=len(self.starts)))
        written = rows_from(schema, structs(["buf"], [joined], len(self.starts)))
        return pa.array(written.to_list(), column.type)

    def _merge_registers(self, column: pa.Array) -> pa.Array:
        words = np.asarray(column.fill_null(0)).view(np.uint64)
        merged: Any = np.zeros(len(self.starts), np.uint64)
        for register in range(_REGISTERS_IN_A_WORD):
            shift = np.uint64(register * _REGISTER_BITS)
            values = (words >> shift) & np.uint64((1 << _REGISTER_BITS) - 1)
            merged |= np.maximum.reduceat(values, self.starts) << shift
        return pa.array(merged.view(np.int64))


def _floats(column: pa.Array) -> Any:
    return np.asarray(column.fill_null(0.0))


def _where(are_null: Any, column: pa.Array) -> pa.Array:
    """A column that is NULL in some places."""
    return pc.if_else(pa.array(are_null), pa.scalar(None, column.type), column)
