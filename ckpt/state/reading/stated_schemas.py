"""Schemas of state that keeps none, stated in a file: Spark before 3.1 wrote no state schema.

The file is a ``query.json`` of ``describe_query``, or a JSON object by operator and store: ``{"0": {"default": {"key":
{"user": "string"}, "value": {"count": "long"}}}}``, columns in the order of Spark with types as Spark writes them in
JSON. Of a join it has the rows of each side: ``{"0": {"left": {...}, "right": {...}}}``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ckpt import settings
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.errors import UsageError, one_line
from ckpt.formats.operators import AGGREGATIONS, OperatorName
from ckpt.formats.statefiles import DEFAULT_STORE, JOIN_COUNTS, JOIN_ROWS, SIDES
from ckpt.formats.types import fields_of, named_fields, strange_type, struct_of
from ckpt.model import Json, Operator, Store
from ckpt.state.book import BOOK
from ckpt.storage.local import read_text

_FORMATS = (settings.AGGREGATION_FORMAT, settings.GROUPS_FORMAT, settings.JOIN_FORMAT)


@dataclass(frozen=True, slots=True)
class StatedStore:
    """The schema of one store: StructTypes in Spark's JSON."""

    operator: int
    name: str
    key: Json
    value: Json
    query_operator: str | None = None  # of a query, whose state formats may be newer than those of the checkpoint
    in_format_1: frozenset[str] = frozenset()  # settings of state formats under which the query was planned


def read_stated_schemas(path: str) -> tuple[StatedStore, ...]:
    """Read the file. Raises UsageError."""

    def refuse(why: str) -> UsageError:
        return UsageError.of("{--schema=}: {why}", schema=path, why=one_line(why))

    try:
        document = json.loads(read_text(path))
    except OSError as error:
        raise refuse(error.strerror or str(error)) from None
    except (ValueError, RecursionError):
        raise refuse("it is not JSON") from None
    try:
        stores = tuple(_list_query(document) if "operators" in document else _list_stores(document))
    except (AttributeError, KeyError, TypeError, ValueError):
        stores = ()
    if not stores:
        example = '{"0": {"default": {"key": {"user": "string"}, "value": {"count": "long"}}}}'
        raise refuse(f"it is neither a query.json nor schemas by operator and store, such as {example}")
    for store in stores:
        strange = strange_type(store.key) or strange_type(store.value)
        if strange is not None:
            raise refuse(f"operator {store.operator}, {store.name}: {strange}")
    return stores


def _list_stores(document: Mapping[str, Mapping[str, Mapping[str, Json]]]) -> Iterator[StatedStore]:
    for operator, stores in document.items():
        for name, schemas in stores.items():
            key, value = _make_struct(schemas["key"]), _make_struct(schemas["value"])
            if name in SIDES:
                indexed = struct_of([*named_fields(key), ("index", "long")])
                yield StatedStore(int(operator), f"{name}-{JOIN_ROWS}", indexed, value)
                name, value = f"{name}-{JOIN_COUNTS}", struct_of([("value", "long")])
            yield StatedStore(int(operator), name, key, value)


def _make_struct(columns: Json) -> Json:
    if fields_of(columns) is not None:
        return columns
    if not isinstance(columns, dict):
        raise TypeError
    return struct_of(columns.items())


def _list_query(document: Json) -> Iterator[StatedStore]:
    from ckpt.query.description import parse_query  # not at the top: state of Spark since 3.1 has its schemas

    query = parse_query(document)
    old = frozenset(name for name in _FORMATS if query.settings.get(name) == "1")
    for number, operator in enumerate(query.operators or ()):
        for store in operator.stores:
            if len(store.families) == 1:
                (family,) = store.families
                yield StatedStore(number, store.name, family.key, family.value, operator.name, old)


def with_stated_schemas(checkpoint: Checkpoint, stated: tuple[StatedStore, ...]) -> Checkpoint:
    """A checkpoint with the schemas of stores that keep none. Raises UsageError for a store that has its own."""
    if checkpoint.state is None:
        return checkpoint
    schemas = {(store.operator, store.name): store for store in stated}
    operators = tuple(
        replace(
            operator,
            stores=tuple(
                _put(checkpoint, operator, own, schemas.get((operator.id, own.name))) for own in operator.stores
            ),
        )
        for operator in checkpoint.state.operators
    )
    return replace(checkpoint, state=replace(checkpoint.state, operators=operators))


def _put(checkpoint: Checkpoint, operator: Operator, store: Store, stated: StatedStore | None) -> Store:
    if stated is None:
        return store
    if store.key_schema is not None or store.column_families:
        where = f"operator {operator.id}" + ("" if store.name == DEFAULT_STORE else f", {store.name}")
        raise UsageError(BOOK.text("read_own_schema", uri=checkpoint.uri, where=where))
    value = _in_its_format(checkpoint.conf, stated) if stated.query_operator else stated.value
    return replace(store, key_schema=stated.key, value_schema=value)


def _in_its_format(recorded: Mapping[str, str], stated: StatedStore) -> Json:
    """The value as state format 1 keeps it, which is that of Spark where none is recorded.

    Aggregations repeat the key, joins lack whether a row matched, and (flat)MapGroupsWithState has the fields of the
    state side by side (``StateManagerImplV1`` of ``FlatMapGroupsWithStateExecHelper``).
    """
    values = fields_of(stated.value) or []
    old = {name for name in _FORMATS if recorded.get(name, "1") == "1"} - stated.in_format_1
    match stated.query_operator:
        case OperatorName.JOIN if JOIN_ROWS in stated.name and settings.JOIN_FORMAT in old:
            values = values[:-1]
        case name if name in AGGREGATIONS and settings.AGGREGATION_FORMAT in old:
            values = [*(fields_of(stated.key) or ()), *values]
        case OperatorName.GROUPS | OperatorName.GROUPS_IN_PANDAS if settings.GROUPS_FORMAT in old:
            kept = (kind for _, kind in named_fields(stated.value))
            values = [*(fields_of(next(kept, None)) or ()), *values[1:]]
    return {"type": "struct", "fields": values}
