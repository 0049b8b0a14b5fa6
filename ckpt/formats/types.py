"""Spark's types as it writes them in JSON (``DataType.json``): a name, or an object for a struct, an array or a map."""

from collections.abc import Iterable, Iterator

from ckpt.model import Json


def fields_of(kind: Json) -> list[Json] | None:
    """The fields of a StructType; None for anything else."""
    fields = kind.get("fields") if isinstance(kind, dict) else None
    return fields if isinstance(fields, list) else None


def named_fields(kind: Json) -> Iterator[tuple[str, Json]]:
    """The names and types of the fields of a StructType; nothing for anything else."""
    for place, field in enumerate(fields_of(kind) or ()):
        yield name_and_type(field)[0], type_at(kind, (place,))


def name_and_type(field: Json) -> tuple[str, str]:
    """What distinguishes two fields, as text that can be compared."""
    if not isinstance(field, dict):
        return "", ""
    kind = field.get("type")
    return str(field.get("name")), f'"{kind}"' if isinstance(kind, str) else repr(kind)


def type_at(kind: Json, places: Iterable[int]) -> Json:
    """The type of a field of a field ..., by position; None where there is no such field."""
    for place in places:
        fields = fields_of(kind) or []
        field = fields[place] if place < len(fields) else None
        kind = field.get("type") if isinstance(field, dict) else None
    return kind


def type_named(kind: Json, name: str) -> Json:
    """The type of a field of a StructType; None where it has no such field."""
    for field in fields_of(kind) or ():
        if isinstance(field, dict) and field.get("name") == name:
            return field.get("type")
    return None


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
