"""Joined rows of a join side: an outer join puts out those that were not when they expire.

Spark's reader leaves it out, so it is not in an export. It is known for rows that the old checkpoint has, and for those
that say so in a column ``matched``; it is never guessed.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ckpt.copies.fill.errors import Misfit
from ckpt.copies.fill.frames import MATCHED
from ckpt.formats.rows.unsafe_writer import rows_from
from ckpt.formats.types import named_fields
from ckpt.model import Json
from ckpt.state.native.batches import make_raw
from ckpt.state.native.entries import entries_of
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit

Joined: TypeAlias = dict[bytes, list[bool]]
"""Of each row of the old checkpoint whether it was joined, in the order of its numbers."""


def find_matches(
    chosen: Chosen,
    unit: StateUnit,
    columns: Sequence[Any],
    column: Any,
    only: int | None,
    joined: dict[str, Joined],
) -> Any:
    """For each row whether it was joined, as booleans without NULL. Raises Misfit where nothing says so.

    ``columns`` are keys and values, ``column`` is what the column ``matched`` says, or NULL; ``only`` is the old
    partition that has all of these keys, where there is one. ``joined`` keeps what was read, by unit.
    """
    if not column.null_count:
        return column
    matched = column.to_pylist()
    own = _encode_rows(unit, columns)
    if unit.label not in joined:
        joined[unit.label] = _read_joined(chosen, unit, only)
    every, known = joined[unit.label], dict[bytes, list[bool]]()
    counts = Counter(name for name, is_matched in zip(own, matched, strict=True) if is_matched is None)
    for row, name in enumerate(own):
        if matched[row] is None:
            flags = known.setdefault(name, [*every.get(name, ())])
            if len(set(flags)) == 1:
                matched[row] = flags[0]
            elif len(flags) == counts[name]:
                matched[row] = flags.pop(0)
                counts[name] -= 1
            else:
                why = "rows like it differ in it" if flags else "the checkpoint has no such row"
                raise Misfit(row, f"whether it was joined already is not known ({why}): add a column {MATCHED}")
    return pa.array(matched, pa.bool_())


def _read_joined(chosen: Chosen, unit: StateUnit, only: int | None) -> Joined:
    numbered: dict[bytes, list[tuple[int, bool]]] = {}
    for entries in entries_of(chosen, unit, only):
        names = _encode_rows(unit, make_raw(unit, entries).columns[:2])
        numbers, flags = entries.keys.flatten()[-1], entries.values.flatten()[-1]
        for name, number, flag in zip(names, np.asarray(numbers).tolist(), flags.to_pylist(), strict=True):
            numbered.setdefault(name, []).append((number, flag))
    return {name: [flag for _, flag in sorted(flags)] for name, flags in numbered.items()}


def _encode_rows(unit: StateUnit, columns: Sequence[Any]) -> list[bytes]:
    """Rows as bytes that are equal where keys and values are."""
    kinds: list[Json] = [kind for _, kind in named_fields(unit.schema)]
    keys, values = (rows_from(kind, column).to_list() for kind, column in zip(kinds, columns, strict=True))
    return [key + value for key, value in zip(keys, values, strict=True)]
