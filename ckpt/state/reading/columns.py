"""The columns of the flat shape: every leaf of what Spark gives, under a name that is readable, unique and stable.

A name is the path to the leaf, joined by ``_``: ``key_window_start``, ``value_count``. It depends on nothing but the
schema: where two leaves would share a name (two ``sum`` aggregations do), the later ones end in ``_2``, ``_3`` ...
Arrays and maps are leaves.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ckpt.formats.operators import TTL
from ckpt.formats.types import fields_of, named_fields
from ckpt.model import Json
from ckpt.state.reading.units import StateUnit, UnitKind

PARTITION = "partition_id"
_NOT_IN_NAMES = re.compile(r"[\s,;{}()=.`\x00-\x1f\x7f]+")  # what Parquet, Delta or SQL would have quoted or refuse
_EVENT_TIME = "__event_time"
_NO_FIELDS = "struct<>"
_NEVER_NULL = (("window", ["start", "end"]), ("session_window", ["start", "end"]))
BLURRED = "whether it is NULL or a struct of NULLs: its columns are NULL for both"


class Shape(StrEnum):
    """The forms of the rows of an export."""

    RAW = "raw"  # as Spark's reader gives them
    FLAT = "flat"  # one column for each leaf
    INITIAL_STATE = "initial-state"  # one row for each grouping key


class Holds(StrEnum):
    """The meanings of a column of initial state."""

    KEY = "key"  # part of the grouping key
    BUFFER = "buffer"  # of an aggregation
    STATE = "state"  # of mapGroupsWithState and its kin
    TIMEOUT = "timeout"  # of the same: ms since 1970, -1 for none
    EXPIRY = "expiry"  # of the column before it, in ms since 1970; of a deduplication in microseconds
    VALUE = "value"  # a value variable of transformWithState: a struct, NULL for a key that has none
    LIST = "list"  # a list variable: an array of structs, in the order of the list
    MAP = "map"  # a map variable: an array of structs {key, value}, ordered by key where keys have an order
    TIMERS = "timers"  # an array of ms since 1970, ascending
    SESSIONS = "sessions"  # an array of structs {start, end, buffers ...}, ordered by start
    ROWS = "rows"  # that a join side buffers: an array of structs, in the order in which Spark keeps them


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an export."""

    name: str
    path: tuple[str, ...]  # where Spark gives it: ("key", "window", "start")
    places: tuple[int, ...]  # the same by position, for names may repeat
    type: Json  # as Spark writes types in JSON
    holds: Holds | None = None  # in initial state

    @property
    def of_key(self) -> bool:
        """True of the grouping key, and of a map's own."""
        return self.path[0] in ("key", "user_map_key")


@dataclass(frozen=True, slots=True)
class Dropped:
    """A leaf that is not exported, and why."""

    path: tuple[str, ...]
    why: str
    places: tuple[int, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Columns:
    """How a frame is flattened."""

    kept: tuple[Column, ...]
    dropped: tuple[Dropped, ...]


def flat_columns(schema: Json, *, partition_id: bool = False, only_keys: bool = False) -> Columns:
    """The leaves of a StructType (Spark's JSON) as columns.

    ``only_keys`` leaves out the value (see ``UnitKind.DEDUPLICATION``); ``partition_id`` keeps Spark's column.
    """
    kept: list[Column] = []
    dropped: list[Dropped] = []
    names = Names()
    for leaf in list_leaves(schema, only_keys=only_keys):
        if isinstance(leaf, Dropped):
            dropped.append(leaf)
        elif leaf.path != (PARTITION,) or partition_id:
            kept.append(replace(leaf, name=names.free(leaf.path)))
    return Columns(tuple(kept), tuple(dropped))


def list_leaves(
    schema: Json, path: tuple[str, ...] = (), places: tuple[int, ...] = (), *, only_keys: bool = False
) -> Iterator[Column | Dropped]:
    """The leaves of a StructType under their own names, or why they are left out; then what they do not tell."""
    for leaf in walk_leaves(schema, path, places):
        why = explain_left_out(leaf, only_keys)
        yield leaf if why is None else Dropped(leaf.path, why, leaf.places)
    for own_path, own_places in find_blurred(schema, path, places):
        if not (only_keys and own_path[0] == "value"):
            yield Dropped(own_path, BLURRED, own_places)


def columns_of(unit: StateUnit, schema: Json = None, *, partition_id: bool = False) -> Columns:
    """The flat columns of a unit: of the schema that Spark gave, or of what the files say."""
    if schema is None:
        partition: Json = {"name": PARTITION, "type": "integer", "nullable": True, "metadata": {}}
        schema = {"type": "struct", "fields": [*(fields_of(unit.schema) or []), partition]}
    return flat_columns(schema, partition_id=partition_id, only_keys=unit.kind is UnitKind.DEDUPLICATION)


def top_columns(schema: Json, path: tuple[str, ...] = (), places: tuple[int, ...] = ()) -> tuple[Column, ...]:
    """The fields of a StructType (Spark's JSON), each as it is."""
    fields = enumerate(named_fields(schema))
    return tuple(Column(name, (*path, name), (*places, ordinal), kind) for ordinal, (name, kind) in fields)


def walk_leaves(schema: Json, path: tuple[str, ...] = (), places: tuple[int, ...] = ()) -> Iterator[Column]:
    """Every field that is not a struct, of a StructType and of all structs in it."""
    for column in top_columns(schema, path, places):
        if fields_of(column.type):
            yield from walk_leaves(column.type, column.path, column.places)
        else:
            yield column


def find_blurred(
    schema: Json, path: tuple[str, ...] = (), places: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Path and positions of structs below key and value of which the leaves do not tell NULL from a struct of NULLs.

    A window is never NULL, though Spark 4.3 records it as nullable; nor is a value that has a time to live.
    """
    columns = top_columns(schema, path, places)
    never = any(column.name == TTL for column in columns)
    for column, own in zip(columns, fields_of(schema) or (), strict=True):
        inner = [name for name, _ in named_fields(column.type)]
        if path and not never and (column.name, inner) not in _NEVER_NULL and all_may_be_null(own):
            yield column.path, column.places
        yield from find_blurred(column.type, column.path, column.places)


def all_may_be_null(field: Json) -> bool:
    """Tell whether a struct may be NULL, and may have NULL in all its leaves without being it."""
    if not isinstance(field, dict) or field.get("nullable") is False:
        return False
    fields = fields_of(field.get("type"))
    return bool(fields) and all(
        not isinstance(inner, dict)
        or (all_may_be_null(inner) if fields_of(inner.get("type")) else inner.get("nullable") is not False)
        for inner in fields or ()
    )


def explain_left_out(leaf: Column, only_keys: bool = False) -> str | None:
    """Why a leaf is not exported."""
    if only_keys and leaf.path[0] == "value":
        return "Spark before 3.5 recorded columns here that its rows do not have"
    if holds_void(leaf.type):
        return "void: it contains nothing, and no file format stores it"
    if leaf.path == ("key", _EVENT_TIME):
        return "Spark's reader does not decode it; the time is among the values"
    return None


class Names:
    """Names for columns, each given once; Spark ignores case."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """Begin with names that are taken already."""
        self._taken = {name.lower(): 1 for name in taken}  # and up to which number it is

    def free(self, path: Iterable[str]) -> str:
        """The path as a name, or the first of ``name_2``, ``name_3`` ... that is not taken; then it is."""
        name = free = _NOT_IN_NAMES.sub("_", "_".join(path))
        number = self._taken.get(name.lower(), 1)
        while free.lower() in self._taken:
            number += 1
            free = f"{name}_{number}"
        self._taken[name.lower()] = number
        self._taken.setdefault(free.lower(), 1)
        return free


def holds_void(kind: Json) -> bool:
    """Tell whether a type is void, has void inside, or is a struct without fields."""
    return not {"void", "null", _NO_FIELDS}.isdisjoint(type_names(kind))


def type_names(kind: Json) -> Iterator[str]:
    """The names of a type and of all types inside it: ``array``, ``struct``, ``bigint`` ...; Spark's JSON names."""
    if isinstance(kind, str):
        yield kind
    elif isinstance(kind, dict):
        name = str(kind.get("type"))
        yield _NO_FIELDS if name == "struct" and not kind.get("fields") else name
        inner = [kind.get(key) for key in ("elementType", "keyType", "valueType", "sqlType")]
        for part in (*inner, *(own for _, own in named_fields(kind))):
            yield from type_names(part)
