"""Sets of versions or batches as sorted, inclusive ranges."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]


def ranges_of(numbers: Iterable[int]) -> Ranges:
    """Put sorted numbers together into ranges."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return tuple(ranges)


def intersect(first_set: Ranges, second_set: Ranges) -> Ranges:
    """Return the numbers that are in both sets."""
    shared: list[tuple[int, int]] = []
    i = j = 0
    while i < len(first_set) and j < len(second_set):
        first, last = max(first_set[i][0], second_set[j][0]), min(first_set[i][1], second_set[j][1])
        if first <= last:
            shared.append((first, last))
        if first_set[i][1] < second_set[j][1]:
            i += 1
        else:
            j += 1
    return tuple(shared)


def shift_ranges(ranges: Ranges, by: int) -> Ranges:
    """Add ``by`` to every number."""
    return tuple((first + by, last + by) for first, last in ranges)


def contains(ranges: Ranges, number: int) -> bool:
    """Tell whether a number is in one of the ranges."""
    index = bisect_right(ranges, number, key=lambda span: span[0])
    return index > 0 and number <= ranges[index - 1][1]
