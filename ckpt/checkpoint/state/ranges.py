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


def common(one: Ranges, other: Ranges) -> Ranges:
    """What two sets have in common."""
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(one) and j < len(other):
        first, last = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if first <= last:
            found.append((first, last))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def shifted(ranges: Ranges, by: int) -> Ranges:
    """Add ``by`` to every number."""
    return tuple((first + by, last + by) for first, last in ranges)


def within(ranges: Ranges, number: int) -> bool:
    """Whether a number is in one of them."""
    place = bisect_right(ranges, number, key=lambda span: span[0])
    return place > 0 and number <= ranges[place - 1][1]
