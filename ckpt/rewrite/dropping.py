"""Keys that are left out of a new checkpoint, with everything that an operator keeps for them.

A row is left out by its grouping key alone, so that what belongs together goes together: both sides of a join with
their counts, and variables, timers and TTL indexes of transformWithState.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ckpt.decode.types import arrow_type
from ckpt.errors import UsageError
from ckpt.formats.types import fields_of, named_fields
from ckpt.model import Json
from ckpt.native.lookup import typed

Key: TypeAlias = Mapping[str, str | None]
"""Columns of a grouping key and their values as text, as of ``show_state``; None is NULL."""
Column: TypeAlias = tuple[str, Json, Any]
"""Name, type in Spark's JSON, Arrow array."""

_PREFIX = "key_"  # of the flat shape


@dataclass(frozen=True, slots=True)
class Dropping:
    """Which rows of one operator are left out."""

    values: Mapping[tuple[str, ...], frozenset[tuple[Any, ...]]]  # by the names of the columns that have them

    def dropped(self, columns: Iterable[Column], rows: int) -> Any:
        """Whether each of some rows is left out, as a boolean array of numpy; other columns are passed over."""
        leaves = {name: array for name, _, array in _leaves(columns)} if self.values else {}
        found: Any = np.zeros(rows, bool)
        for names, wanted in self.values.items():
            there = zip(*(_comparable(leaves[name]) for name in names), strict=True)
            found |= np.fromiter(map(wanted.__contains__, there), bool, rows)
        return found


NOTHING = Dropping({})


def dropping_for(kinds: Iterable[tuple[str, Json]], keys: Iterable[Key]) -> Dropping:
    """Those of the keys that can be keys of an operator whose grouping key has these columns.

    Raises UsageError for a value that its column cannot have.
    """
    columns = dict(leaf_types(kinds))
    found: dict[tuple[str, ...], set[tuple[Any, ...]]] = {}
    for key in keys:
        named = [(known, text) for name, text in key.items() if (known := _known(name, columns))]
        if len(named) == len(key):
            values = tuple(_value(name, columns[name], text) for name, text in named)
            found.setdefault(tuple(name for name, _ in named), set()).add(values)
    return Dropping({names: frozenset(values) for names, values in found.items()})


def check_known(keys: Iterable[Key], operators: Mapping[str, Sequence[tuple[str, Json]]]) -> None:
    """Raise UsageError for a key that no operator can have; ``operators`` are labels and columns of grouping keys."""
    known = {label: dict(leaf_types(kinds)) for label, kinds in operators.items()}
    for key in keys:
        if not any(all(_known(name, columns) for name in key) for columns in known.values()):
            there = "; ".join(f"{label}: {', '.join(columns) or 'none'}" for label, columns in known.items())
            raise UsageError(f"`drop_keys`: no operator has the columns {', '.join(key)} in its key; there are {there}")


def leaf_types(kinds: Iterable[tuple[str, Json]]) -> Iterator[tuple[str, Json]]:
    """Names and types of columns; those in structs by their path, joined by ``_`` as in the flat shape."""
    for name, kind in kinds:
        if fields_of(kind):
            yield from leaf_types((f"{name}_{inner}", own) for inner, own in named_fields(kind))
        else:
            yield name, kind


def read_keys(path: str) -> list[Key]:
    """Keys from a file of JSON objects, one in a line. Raises UsageError, which names the line."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    found: list[Key] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line, parse_float=str, parse_int=str)
        except (ValueError, RecursionError):
            one = None
        if not isinstance(one, dict) or not one or any(isinstance(value, dict | list) for value in one.values()):
            raise UsageError(f'{path}: line {number} is no JSON object of columns and values, such as {{"key": 3}}')
        found.append({name: _text(value) for name, value in one.items()})
    if not found:
        raise UsageError(f"{path}: there is no key in it")
    return found


def _text(value: Any) -> str | None:
    return str(value).lower() if isinstance(value, bool) else value


def _known(name: str, columns: Mapping[str, Json]) -> str | None:
    """The column that is meant, with or without ``key_``."""
    return next((one for one in (name, name.removeprefix(_PREFIX)) if one in columns), None)


def _value(name: str, kind: Json, text: str | None) -> Any:
    return _comparable(pa.array([None if text is None else typed(name, kind, text)], arrow_type(kind)))[0]


def _comparable(array: Any) -> list[Any]:
    """Values of Python; times as numbers, for they may be outside of Python's years."""
    return list((array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array).to_pylist())


def _leaves(columns: Iterable[Column]) -> Iterator[Column]:
    for name, kind, array in columns:
        if fields_of(kind):
            inside = zip(named_fields(kind), array.flatten(), strict=True)
            yield from _leaves((f"{name}_{inner}", own, part) for (inner, own), part in inside)
        else:
            yield name, kind, array
