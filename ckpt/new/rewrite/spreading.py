"""By which columns of a key an operator's rows are spread over partitions, store by store and family by family.

Measured: every key of all samples with operator metadata lies where this says (``tests/new/rewrite``).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ckpt.checkpoint.state.rewritable import is_single, recognise_operator
from ckpt.errors import Undecodable
from ckpt.formats.operators import BY_WHOLE_KEY, TRANSFORM_WITH_STATE, OperatorName
from ckpt.formats.rows.partitions import partitions_of
from ckpt.formats.schemas import DEFAULT_COLUMN_FAMILY
from ckpt.formats.statefiles import JOIN_COUNTS, JOIN_ROWS, TIMED_KEYS, TIMED_ROWS
from ckpt.formats.types import named_fields
from ckpt.model import Json, Operator, Store

Column: TypeAlias = tuple[str, Json, pa.Array]
"""Name, type in Spark's JSON, values."""


@dataclass(frozen=True, slots=True)
class GroupingKey:
    """The part of a stored key that is the key of the operator: the first columns of a struct in it."""

    at: tuple[int, ...]  # the places of the struct in structs inside each other; () is the key itself
    count: int | None = None  # None: all of its columns

    @property
    def is_whole(self) -> bool:
        """True if it is all of the stored key."""
        return not self.at and self.count is None

    def kinds(self, kind: Json) -> list[tuple[str, Json]]:
        """Names and types of its columns; ``kind`` is the type of the stored key."""
        for ordinal in self.at:
            kind = list(named_fields(kind))[ordinal][1]
        return list(named_fields(kind))[: self.count]

    def take_columns(self, kind: Json, keys: pa.StructArray) -> list[Column]:
        """Return the columns of the part."""
        for ordinal in self.at:
            keys = keys.flatten()[ordinal]
        return [(name, own, part) for (name, own), part in zip(self.kinds(kind), keys.flatten(), strict=False)]


_MAP = "MapState"
_WHOLE, _WITHOUT_LAST = GroupingKey(()), GroupingKey((), -1)  # of a session its start, of a join's row index or time


def find_grouping(operator: Operator, store: Store, family: str | None) -> GroupingKey:
    """The columns whose hash says in which partition a row of a store or family is. Raises Undecodable if unknown."""
    name = family or DEFAULT_COLUMN_FAMILY
    match recognise_operator(operator):
        case OperatorName.JOIN:
            stored = f"{store.name} {name}"
            if any(own in stored for own in (JOIN_ROWS, TIMED_ROWS, TIMED_KEYS)):
                return _WITHOUT_LAST
            if JOIN_COUNTS in stored:
                return _WHOLE
        case OperatorName.SESSIONS:
            return _WITHOUT_LAST
        case _ if operator.name in TRANSFORM_WITH_STATE:
            return _find_variable_key(name, [own.name for own in operator.variables if own.kind == _MAP])
        case _ if operator.name in BY_WHOLE_KEY or not operator.has_metadata:
            return _WHOLE
    raise Undecodable(f"ckpt does not know how {operator.name} partitions the rows of {store.name}")


def _find_variable_key(family: str, maps: Collection[str]) -> GroupingKey:
    """Of a family of transformWithState: a variable, or what Spark keeps beside it."""
    if family.startswith("$ttl_"):
        return GroupingKey((1, 0) if family.removeprefix("$ttl_") in maps else (1,))
    if family.endswith("_timestampToKey"):
        return GroupingKey((1,))
    if family.endswith("_keyToTimestamp") or family in maps:
        return GroupingKey((0,))
    return _WHOLE


def list_key_columns(operator: Operator, store: Store) -> list[tuple[str, Json]]:
    """Names and types of an operator's grouping key, as one of its stores has them. Raises Undecodable."""
    if is_single(operator, store):
        return []
    named = [family for family in store.column_families if family.name != DEFAULT_COLUMN_FAMILY]
    name, key = (named[0].name, named[0].key_schema) if named else (None, store.key_schema)
    return find_grouping(operator, store, name).kinds(key)


def hash_rows(columns: Iterable[Column], rows: int, partitions: int) -> np.ndarray:
    """The partition of each row, as an int64 array, by the columns of its grouping key. Raises Undecodable."""
    return partitions_of(((kind, array) for _, kind, array in columns), rows, partitions)
