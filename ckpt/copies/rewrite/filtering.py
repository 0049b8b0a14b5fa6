"""``ckpt rewrite --where``: which operators a condition decides about, and about what.

Rows that belong together go together. Where an operator keeps all of a key in one row, each row is judged alone, by its
key and value. A join keeps rows of two sides and their counts, transformWithState variables, timers and TTL indexes:
there the columns of the grouping key decide about everything that the key has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from ckpt.copies.rewrite.condition import Condition, can_take, join_names, match_columns, parse_condition
from ckpt.copies.rewrite.dropping import Column, Dropping
from ckpt.copies.rewrite.stored_rows import is_single, list_key_columns
from ckpt.errors import UsageError
from ckpt.formats.operators import OperatorName
from ckpt.formats.rows.arrow import structs
from ckpt.formats.rows.errors import Undecodable
from ckpt.formats.types import struct_of
from ckpt.model import Operator
from ckpt.state.native.entries import NOT_AS_WRITTEN, Entries, flat_schema, flatten_batch, make_raw
from ckpt.state.native.store_files import UnitLayout, layout_of
from ckpt.state.reading.columns import Column as FlatColumn, Columns, columns_of as columns_of_unit, flat_columns
from ckpt.state.reading.reading import Chosen
from ckpt.state.reading.units import StateUnit


class Encoded(Protocol):
    """Rows of a store in one partition, as they are stored."""

    def __len__(self) -> int: ...

    def decode_entries(self, layout: UnitLayout, partition: int) -> Entries:
        """Keys and values, decoded."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows of one operator that are kept."""

    condition: Condition
    columns: Columns  # that it uses
    missing: tuple[str, ...]  # that it uses, and the operator does not have: then all rows are kept
    unit: StateUnit | None  # whose rows are judged one by one; None: keys are, with all they have
    layout: UnitLayout | None  # of the unit

    @property
    def applies(self) -> bool:
        """True if the condition decides about anything."""
        return not self.missing

    @property
    def of_keys(self) -> bool:
        """True if the condition decides about keys, with everything that is kept for them."""
        return self.applies and self.unit is None

    def find_left_out(self, rows: Encoded, key: Sequence[Column], partition: int) -> Any:
        """Tell of each row whether it is left out, as a boolean array of numpy; ``key`` is the grouping key.

        Raises Undecodable; CkptError where the condition has no result for a row.
        """
        if not self.applies:
            return np.zeros(len(rows), bool)
        if self.unit is None or self.layout is None:
            keys = structs([name for name, _, _ in key], [array for _, _, array in key], len(rows))
            batch = pa.RecordBatch.from_arrays([keys], names=["key"])
        else:
            try:
                batch = make_raw(self.unit, rows.decode_entries(self.layout, partition))
            except NOT_AS_WRITTEN as error:
                raise error if isinstance(error, Undecodable) else Undecodable(str(error)) from None
        return ~self.condition.holds(flatten_batch(self.columns, batch))


Leaving: TypeAlias = Dropping | Filter
"""What is left out of an operator."""


def make_filters(chosen: Chosen, where: str) -> dict[int, Filter]:
    """Return the filters of a condition, by operator.

    Raises UsageError where it is none, or none on the columns that an operator has; Undecodable where the files do not
    say which columns these are.
    """
    condition = parse_condition(where)
    there = {
        _label(operator): (operator, *_choose_columns(chosen, operator)) for operator in chosen.checkpoint.operators
    }
    filters = {
        operator.id: _make_filter(chosen, condition, label, unit, columns)
        for label, (operator, unit, columns) in there.items()
    }
    if not any(row_filter.applies for row_filter in filters.values()):
        names = (f"{label}: {join_names(column.name for column in columns)}" for label, (*_, columns) in there.items())
        raise UsageError(
            f"`where`: no operator has the columns {join_names(condition.names)} to judge by; there are "
            + ("; ".join(names) or "none")
        )
    return filters


def _label(operator: Operator) -> str:
    return f"operator {operator.id}" + (f" ({operator.name})" if operator.name else "")


def _choose_columns(chosen: Chosen, operator: Operator) -> tuple[StateUnit | None, tuple[FlatColumn, ...]]:
    """The unit whose rows are judged one by one, if that is so; and the columns to judge by."""
    unnamed = operator.name is None and any(is_single(operator, store) for store in operator.stores)
    if operator.name == OperatorName.LIMIT or unnamed:  # without its count a limit lets as many rows pass anew
        return None, ()
    units = [unit for unit in chosen.units if unit.operator == operator.id and not unit.shown_elsewhere]
    families = [family for store in operator.stores for family in store.column_families]
    if len(units) == len(operator.stores) == 1 and not families and not operator.variables:
        return units[0], columns_of_unit(units[0]).kept
    key = struct_of(list_key_columns(operator, operator.stores[0]))
    return None, flat_columns(struct_of([("key", key)])).kept


def _make_filter(
    chosen: Chosen, condition: Condition, label: str, unit: StateUnit | None, columns: Sequence[FlatColumn]
) -> Filter:
    """Apply the condition to one operator. Raises UsageError."""
    used = match_columns(condition.names, {column.name: column for column in columns})
    known = {name.lower() for name in used}
    missing = tuple(name for name in condition.names if name.lower() not in known)
    if not missing:
        for column in used.values():
            if not can_take(column.type):
                own = f"{column.name}, by its type: {column.type}"
                raise UsageError(f"`where`: for {label}: a condition cannot use {own}")
        condition.check(label, flat_schema(Columns(tuple(used.values()), ())))
    layout = layout_of(chosen, unit) if unit and not missing else None
    return Filter(condition, Columns(tuple(used.values()), ()), missing, unit, layout)
