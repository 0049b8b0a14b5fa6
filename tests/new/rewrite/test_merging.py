"""Groups merged where no real query shows it: NULL, NaN, and sums that do not fit (real ones: ``columns.py``)."""

from dataclasses import replace
from decimal import Decimal
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ckpt.errors import Undecodable
from ckpt.new.evolve.origins import ColumnMerge
from ckpt.new.rewrite.merging import merge_columns
from ckpt.query.aggregates import MADE_OF, Merge, find_merge
from ckpt.query.description import DescribedAggregate, DescribedBuffer

LONGEST = 2**63 - 1


def merged(how: Merge, *columns: Any, starts: tuple[int, ...] = (0, 2)) -> list[list[Any]]:
    """Merge rows: the first two are a group, and so is the rest."""
    arrays = merge_columns(list(columns), np.array(starts), [ColumnMerge(how, 0, len(columns))])
    return [array.to_pylist() for array in arrays]


@pytest.mark.parametrize(
    ("how", "values", "expected"),
    [
        (Merge.SUM, [1, None, None, None], [1, None]),
        (Merge.COUNT, [1, 2, 0, 5], [3, 5]),
        (Merge.LEAST, [3, None, None, None], [3, None]),
        (Merge.GREATEST, [None, 3, 7, -7], [3, 7]),
        (Merge.BIT_AND, [6, 3, None, 5], [2, 5]),
        (Merge.BIT_OR, [6, 1, None, None], [7, None]),
        (Merge.BIT_XOR, [6, 3, 5, 5], [5, 0]),
        (Merge.ALIKE, [4, 4, 9, 9], [4, 9]),
    ],
)
def test_null_is_no_value(how: Merge, values: list[Any], expected: list[Any]) -> None:
    assert merged(how, pa.array(values, pa.int64())) == [expected]


def test_nan_is_greater_than_any_number() -> None:
    values = pa.array([1.0, nan, nan, nan])
    assert merged(Merge.LEAST, values)[0][0] == 1.0
    assert isnan(merged(Merge.LEAST, values)[0][1])
    assert isnan(merged(Merge.GREATEST, values)[0][0])
    assert merged(Merge.GREATEST, pa.array([-inf, None, None, None], pa.float64())) == [[-inf, None]]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.date32(), pa.bool_(), pa.decimal128(10, 2)])
def test_extremes_of_each_type(kind: Any) -> None:
    number: Any = {pa.string(): str, pa.binary(): lambda n: bytes([n]), pa.bool_(): bool}.get(kind, lambda n: n)
    values = pa.array([number(1), number(0), None, number(1)], kind)
    whole = values.to_pylist()
    assert merged(Merge.LEAST, values) == [[whole[1], whole[3]]]
    assert merged(Merge.GREATEST, values) == [[whole[0], whole[3]]]


def test_a_sum_that_does_not_fit_is_refused() -> None:
    with pytest.raises(Undecodable, match="do not fit their type"):
        merged(Merge.SUM, pa.array([LONGEST, 1, 0, 0]))
    with pytest.raises(Undecodable, match="do not fit their type"):
        merged(
            Merge.AVERAGE,
            pa.array([Decimal("9.9"), Decimal("9.9")], pa.decimal128(2, 1)),
            pa.array([1, 1]),
            starts=(0,),
        )


def test_decimals_that_have_overflowed_stay_so() -> None:
    """NULL of a sum that is not empty is an overflow; of one that is, no row."""
    sums = pa.array([None, Decimal("1.5"), None, Decimal("1.5")], pa.decimal128(20, 2))
    assert merged(Merge.SUM, sums, pa.array([True, False, False, False])) == [[Decimal("1.50"), None], [False, False]]
    assert merged(Merge.AVERAGE, sums, pa.array([0, 1, 3, 1])) == [[None, None], [1, 4]]


def test_moments_are_those_of_all_rows() -> None:
    rows = np.array([[1.5, 2.0], [4.0, -1.0], [8.25, 3.0], [0.5, 0.0], [2.0, 2.5]])
    parts = (rows[:2], rows[2:], rows[:0])

    def moments(part: Any) -> list[float]:
        away = part[:, 0] - part[:, 0].mean() if len(part) else part[:, 0]
        average = part[:, 0].mean() if len(part) else 0.0
        return [len(part), average, *((away**power).sum() for power in (2, 3, 4))]

    def comoments(part: Any) -> list[float]:
        averages = part.mean(axis=0) if len(part) else np.zeros(2)
        x, y = (part - averages).T
        return [len(part), *averages, (x * y).sum(), (x * x).sum(), (y * y).sum()]

    for how, compute in ((Merge.MOMENTS, moments), (Merge.COMOMENTS, comoments)):
        columns = [pa.array(column, pa.float64()) for column in zip(*map(compute, parts), strict=True)]
        result = [column[0] for column in merged(how, *columns, starts=(0,))]
        assert result == pytest.approx(compute(rows)), how


def test_what_is_not_known_is_not_merged() -> None:
    def aggregate(function: str, *kinds: Any, distinct: bool = False) -> DescribedAggregate:
        buffers = tuple(DescribedBuffer(str(number), kind, True) for number, kind in enumerate(kinds))
        return DescribedAggregate(function, f"{function}()", distinct, None, None, buffers)

    assert find_merge(aggregate("Sum", "long")) is Merge.SUM
    assert find_merge(aggregate("Sum", "interval day to second")) is None
    assert find_merge(aggregate("Max", {"type": "struct", "fields": []})) is None
    assert find_merge(aggregate("Max", "string")) is Merge.GREATEST
    assert find_merge(replace(aggregate("Max", "string"), result="string collate UTF8_LCASE")) is None
    assert find_merge(aggregate("Max", "string collate UNICODE_CI")) is None
    assert find_merge(aggregate("Count", "long", distinct=True)) is None
    assert find_merge(aggregate("RegrSlope", *["double"] * 7)) is None
    assert {function for parts in MADE_OF.values() for function, _ in parts} == {"Sum", "Count", "Average"}
