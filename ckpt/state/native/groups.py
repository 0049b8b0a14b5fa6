"""Rows that are equal in some columns, by number: NULL is a value like any other."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa


def number_groups(columns: Iterable[Any], rows: int) -> Any:
    """For each row a number from 0 on, the same for rows that are equal in all columns."""
    groups: Any = np.zeros(rows, np.int64)
    for column in columns:
        for codes in _codes(column):
            _, groups = np.unique(groups * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    return groups


def first_of_each(groups: Any) -> Any:
    """For each number the first row that has it."""
    return np.unique(groups, return_index=True)[1]


def number_occurrences(groups: Any) -> Any:
    """For each row how many before it have its number."""
    order = np.argsort(groups, kind="stable")
    begins: Any = np.flatnonzero(np.diff(groups[order], prepend=-1))
    sizes: Any = np.diff(np.append(begins, len(groups)))
    numbers: Any = np.empty(len(groups), np.int64)
    numbers[order] = np.arange(len(groups)) - np.repeat(begins, sizes)
    return numbers


def _codes(array: Any) -> Iterator[Any]:
    """Numbers that are equal where values are, for all that is in a column."""
    if pa.types.is_struct(array.type):
        yield np.asarray(array.is_null()).astype(np.int64)
        for inner in array.flatten():
            yield from _codes(inner)
    elif pa.types.is_null(array.type):
        return
    elif pa.types.is_nested(array.type) or pa.types.is_interval(array.type):
        known: dict[str, int] = {}
        yield np.array([known.setdefault(repr(value), len(known)) for value in array.to_pylist()], np.int64)
    else:
        codes = array.dictionary_encode(null_encoding="encode").indices
        yield np.asarray(codes).astype(np.int64)
