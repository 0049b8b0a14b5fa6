"""Conditions that DuckDB hands to a table, as expressions of Arrow: which columns have to equal which values.

Arrow says an expression only as text. So the text is read, and the expression built from it again: a reading counts
only if both are equal, and nothing is left out of a result because a text was misread.
"""

import operator
import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_LEAF = re.compile(r'\(([^\s()"]+) (==|!=|<=|>=|<|>) (-?\d+|"[^"\\]*")\)|is_valid\(([^\s()"]+)\)')
_AND = " and "
_COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def find_equalities(condition: Any, schema: Any) -> dict[str, Any]:
    """The scalar that each column has to equal, as far as it is certain; none where the condition is not understood.

    Whole numbers and texts only: others are compared by DuckDB alone.
    """
    if condition is None:
        return {}
    text, equal = str(condition), dict[str, Any]()
    try:
        built, end = _build(text, 0, schema, equal)
        if end == len(text) and built.equals(condition):
            return equal
    except (ValueError, KeyError, RecursionError, pa.ArrowException):
        pass
    return {}


def _build(text: str, at: int, schema: Any, equal: dict[str, Any]) -> tuple[Any, int]:
    """Build the expression that begins at a place of the text; also where it ends. Raises ValueError."""
    leaf = _LEAF.match(text, at)
    if leaf is not None:
        name, compare, literal, valid = leaf.groups()
        if valid is not None:
            return pc.field(valid).is_valid(), leaf.end()
        kind = schema.field(name).type
        quoted = literal.startswith('"')
        if not (pa.types.is_string(kind) if quoted else pa.types.is_integer(kind)):
            raise ValueError(name)
        value = pa.scalar(literal[1:-1] if quoted else int(literal), kind)
        if compare == "==":
            equal[name] = value
        return _COMPARE[compare](pc.field(name), value), leaf.end()
    if not text.startswith("(", at):
        raise ValueError(text)
    left, end = _build(text, at + 1, schema, equal)
    if not text.startswith(_AND, end):
        raise ValueError(text)
    right, end = _build(text, end + len(_AND), schema, equal)
    if not text.startswith(")", end):
        raise ValueError(text)
    return left & right, end + 1
