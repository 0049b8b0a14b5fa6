"""Spark's types as it writes them in JSON (``DataType.json``): a name, or an object for a struct, an array or a map.

In the words of Spark SQL they are for people, so very large ones are cut.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from ckpt.formats.text import quoted
from ckpt.model import Json

_ATOMIC = re.compile(
    r"string( collate .+)?|(char|varchar)\(\d+\)|binary|boolean|byte|short|integer|long|float|double|date|timestamp"
    r"|timestamp_ntz|timestamp_ltz|void|null|variant|decimal(\(\d+, ?-?\d+\))?|interval.*|calendarinterval"
    r"|time(\(\d+\))?|(geometry|geography)(\(.*\))?"
)

_DEEPEST = 10  # how many types inside one another are shown
_MOST_FIELDS = 100  # and how many fields of one
_FIELDS = ({"name", "type"}, {"name", "nullable", "type"}, {"metadata", "name", "nullable", "type"})
"""Keys that a field of a StructType may have in JSON."""


def fields_of(kind: Json) -> list[Json] | None:
    """The fields of a StructType; None for anything else."""
    fields = kind.get("fields") if isinstance(kind, dict) else None
    return fields if isinstance(fields, list) else None


def named_fields(kind: Json) -> Iterator[tuple[str, Json]]:
    """The names and types of the fields of a StructType; nothing for anything else."""
    for index, field in enumerate(fields_of(kind) or ()):
        yield name_and_type(field)[0], type_at(kind, (index,))


def name_and_type(field: Json) -> tuple[str, str]:
    """Return the text by which fields are told apart."""
    if not isinstance(field, dict):
        return "", ""
    kind = field.get("type")
    return str(field.get("name")), f'"{kind}"' if isinstance(kind, str) else repr(kind)


def type_at(kind: Json, places: Iterable[int]) -> Json:
    """The type of a field of a field ..., by position; None where there is no such field."""
    for index in places:
        fields = fields_of(kind) or []
        field = fields[index] if index < len(fields) else None
        kind = field.get("type") if isinstance(field, dict) else None
    return kind


def type_named(kind: Json, name: str) -> Json:
    """The type of a field of a StructType; None where it has no such field."""
    return next((own for own_name, own in named_fields(kind) if own_name == name), None)


def struct_of(columns: Iterable[tuple[str, Json]]) -> Json:
    """A StructType of nullable columns."""
    fields: list[Json] = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
    return {"type": "struct", "fields": fields}


def array_of(kind: Json) -> Json:
    """An ArrayType."""
    return {"type": "array", "elementType": kind, "containsNull": True}


def map_of(key: Json, value: Json) -> Json:
    """A MapType."""
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def strange_type(kind: Json) -> str | None:
    """In words, the first part of a type that ``DataType.fromJson`` of no known Spark reads; None for none."""
    match kind:
        case str(name):
            return None if _ATOMIC.fullmatch(name) else f"Spark has no type {quoted(name)}"
        case {"type": "struct", "fields": list(fields), **others} if not others and all(map(_is_field, fields)):
            kinds = [field.get("type") for field in fields if isinstance(field, dict)]
        case {"type": "array", "elementType": element, "containsNull": bool(), **others} if not others:
            kinds = [element]
        case {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": bool(), **others} if not others:
            kinds = [key, value]
        case {"type": "udt"}:
            kinds = []
        case _:
            return "a type in it has missing or additional keys"
    return next((strange for inner in kinds if (strange := strange_type(inner)) is not None), None)


def _is_field(field: Json) -> bool:
    """Tell whether a value has what ``DataType.parseStructField`` looks for, and nothing else."""
    if not isinstance(field, dict) or field.keys() not in _FIELDS:
        return False
    named, nullable = isinstance(field["name"], str), isinstance(field.get("nullable", True), bool)
    return named and nullable and isinstance(field.get("metadata", {}), dict)


def repeated_field(kind: Json) -> str | None:
    """The name of a field that a struct inside a type has more than once, whatever its case; None where none has."""
    names, inner = [name for name, _ in named_fields(kind)], [own for _, own in named_fields(kind)]
    match kind:
        case {"type": "array", "elementType": element}:
            inner = [element]
        case {"type": "map", "keyType": key, "valueType": value}:
            inner = [key, value]
    folded = Counter(name.lower() for name in names)
    repeated = next((name for name in names if folded[name.lower()] > 1), None)
    return repeated or next((field for part in inner if (field := repeated_field(part)) is not None), None)


def type_name(schema: Json) -> str:
    """A type as Spark's JSON has it, in the words of Spark SQL: ``key bigint, window struct<start timestamp>``."""
    match schema:
        case {"type": "struct", "fields": list(fields)}:
            return _show_fields(fields, _DEEPEST)
        case _:
            return sql_type(schema)


def _show_fields(fields: Sequence[Json], deepest: int) -> str:
    more = [f"and {len(fields) - _MOST_FIELDS:,} more"] if len(fields) > _MOST_FIELDS else []
    return ", ".join([*(_show_field(field, deepest) for field in fields[:_MOST_FIELDS]), *more])


def _show_field(field: Json, deepest: int) -> str:
    match field:
        case {"name": str(name), "type": kind}:
            return f"{name} {sql_type(kind, deepest)}"
    return "?"


def sql_type(kind: Json, deepest: int = _DEEPEST) -> str:
    """The type of a column in the words of Spark SQL; what nests deeper than ``deepest`` types is left out."""
    if not deepest:
        return "..."
    inner = partial(sql_type, deepest=deepest - 1)
    match kind:
        case {"type": "struct", "fields": list(fields)}:
            return f"struct<{_show_fields(fields, deepest - 1)}>"
        case {"type": "array", "elementType": element}:
            return f"array<{inner(element)}>"
        case {"type": "map", "keyType": key, "valueType": value}:
            return f"map<{inner(key)}, {inner(value)}>"
        case {"type": "udt", "sqlType": stored}:
            return inner(stored)
        case str(name):
            return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(name, name)
    return "?"
