"""Types as Spark's JSON has them, in the words of Spark SQL: for people, so very large ones are cut."""

from collections.abc import Sequence
from functools import partial

from ckpt.model import Json

_DEEPEST = 10  # how many types inside one another are shown
_FIELDS = 100  # and how many fields of one


def type_name(schema: Json) -> str:
    """A type as Spark's JSON has it, in the words of Spark SQL: ``key bigint, window struct<start timestamp>``."""
    match schema:
        case {"type": "struct", "fields": list(fields)}:
            return _fields(fields, _DEEPEST)
        case _:
            return sql_type(schema)


def _fields(fields: Sequence[Json], deepest: int) -> str:
    more = [f"and {len(fields) - _FIELDS:,} more"] if len(fields) > _FIELDS else []
    return ", ".join([*(_field(field, deepest) for field in fields[:_FIELDS]), *more])


def _field(field: Json, deepest: int) -> str:
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
            return f"struct<{_fields(fields, deepest - 1)}>"
        case {"type": "array", "elementType": element}:
            return f"array<{inner(element)}>"
        case {"type": "map", "keyType": key, "valueType": value}:
            return f"map<{inner(key)}, {inner(value)}>"
        case {"type": "udt", "sqlType": stored}:
            return inner(stored)
        case str(name):
            return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(name, name)
    return "?"
