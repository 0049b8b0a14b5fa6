"""By which columns of a key an operator's rows are spread over partitions, store by store and family by family.

Measured: every key of all samples with operator metadata lies where this says (``tests/rewrite``).
"""

from collections.abc import Collection, Iterable
from typing import Any, TypeAlias

import pyarrow as pa

from ckpt.decode.spread import partitions_of
from ckpt.decode.trouble import Undecodable
from ckpt.formats.schemas import DEFAULT_COLUMN_FAMILY
from ckpt.formats.types import fields_of, named_fields
from ckpt.model import Json, Operator, Store

Path: TypeAlias = tuple[int, ...]
"""Places of a field in structs inside each other."""

_WHOLE_KEY = frozenset(
    {
        "applyInPandasWithState",
        "dedupe",
        "dedupeWithinWatermark",
        "flatMapGroupsWithState",
        "stateStoreSave",
    }
)
_VARIABLES = ("transformWithStateExec", "transformWithStateInPandasExec", "transformWithStateInPySparkExec")
_LIMIT = "globalLimit"


def is_single(operator: Operator, store: Store) -> bool:
    """Whether all rows are in partition 0, however many there are: of a limit, or of an aggregation without keys."""
    return operator.name == _LIMIT or not (store.column_families or fields_of(store.key_schema))


def spread_by(operator: str | None, store: str, family: str | None, key: Json, maps: Collection[str]) -> list[Path]:
    """The columns whose hash says in which partition a row is. Raises Undecodable where that is not known.

    Args:
        operator: The name that operator metadata records.
        store: The name of the store.
        family: The column family, where the store has any.
        key: The key schema, a StructType in Spark's JSON.
        maps: The names of the variables that are maps.

    """
    whole: list[Path] = [(place,) for place in range(len(fields_of(key) or ()))]
    name = family or DEFAULT_COLUMN_FAMILY
    match operator:
        case "symmetricHashJoin":
            stored = f"{store} {name}"
            if "keyWithIndexToValue" in stored:
                return whole[:-1]
            if "keyToNumValues" in stored:
                return whole
        case "sessionWindowStateStoreSaveExec":
            return whole[:-1]
        case _ if operator in _VARIABLES:
            return _of_variable(name, whole, maps)
        case _ if operator in _WHOLE_KEY:
            return whole
    raise Undecodable(
        f"ckpt does not know how {operator or 'an operator without metadata'} spreads the rows of {store}"
    )


def _of_variable(family: str, whole: list[Path], maps: Collection[str]) -> list[Path]:
    """Of a family of transformWithState: a variable, or what Spark keeps beside it."""
    if family.startswith("$ttl_"):
        return [(1, 0)] if family.removeprefix("$ttl_") in maps else [(1,)]
    if family.endswith("_timestampToKey"):
        return [(1,)]
    if family.endswith("_keyToTimestamp") or family in maps:
        return [(0,)]
    return whole


def partitions_for(kind: Json, keys: Any, paths: Iterable[Path], partitions: int) -> Any:
    """The partition of each key, as an int64 array; ``keys`` is an array of structs. Raises Undecodable."""
    columns = [_at(kind, keys, path) for path in paths]
    return partitions_of(columns, len(keys), partitions)


def _at(kind: Json, array: Any, path: Path) -> tuple[Json, Any]:
    for place in path:
        kind, array = list(named_fields(kind))[place][1], array.flatten()[place]
    return kind, array if not isinstance(array, pa.ChunkedArray) else array.combine_chunks()
