"""Pieces of Python and of Spark's DDL, safe whatever a checkpoint holds."""

import keyword
import re
from collections.abc import Callable, Iterable, Iterator

from ckpt.formats.types import named_fields
from ckpt.model import Json
from ckpt.texts import mask_secrets

_DDL = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}  # JSON's name and SQL's


def literal(text: str) -> str:
    """A string literal as ``ruff format`` leaves it: in double quotes where that needs no escape."""
    quoted = ascii(text) if not text.isprintable() else repr(text)
    return f'"{quoted[1:-1]}"' if quoted[0] == "'" and '"' not in quoted and "\\'" not in quoted else quoted


def plain(text: str) -> str:
    """Text that ends no comment and no docstring."""
    shown = "".join(char if char.isprintable() else "?" for char in mask_secrets(text))
    return shown.replace("\\", "/").replace('"', "'")


def quoted(name: str) -> str:
    """A name in Spark's DDL."""
    return "`" + name.replace("`", "``") + "`"


def simple(kind: Json) -> str:
    """A type as Spark's ``simpleString`` has it: ``struct<a:array<bigint>>``."""
    return _write_type(kind, str)


def ddl(kind: Json) -> str:
    """A type in Spark's DDL: the same, names quoted."""
    return _write_type(kind, quoted)


def columns(fields: Iterable[tuple[str, Json]]) -> str:
    """A schema in Spark's DDL."""
    return ", ".join(f"{quoted(name)} {ddl(kind)}" for name, kind in fields)


def _write_type(kind: Json, named: Callable[[str], str]) -> str:
    if not isinstance(kind, dict):
        return _DDL.get(str(kind), str(kind))
    match kind.get("type"):
        case "struct":
            return (
                "struct<"
                + ",".join(f"{named(name)}:{_write_type(inner, named)}" for name, inner in named_fields(kind))
                + ">"
            )
        case "array":
            return f"array<{_write_type(kind.get('elementType'), named)}>"
        case "map":
            return f"map<{_write_type(kind.get('keyType'), named)},{_write_type(kind.get('valueType'), named)}>"
        case "udt":
            return _write_type(kind.get("sqlType"), named)
    return str(kind.get("type"))


class Identifiers:
    """Attribute names for whatever variables are called, each once."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def of(self, name: str) -> str:
        """The name itself where Python allows it."""
        identifier = re.sub(r"\W", "_", name, flags=re.ASCII)
        identifier = (
            f"v_{identifier}" if not identifier or identifier[0].isdigit() or identifier.startswith("_") else identifier
        )
        free, number = identifier, 1
        while free in self._taken or keyword.iskeyword(free):
            number += 1
            free = f"{identifier}_{number}"
        self._taken.add(free)
        return free


def explode(opening: str, items: Iterable[str], closing: str, indent: int) -> Iterator[str]:
    """A call or collection with one item a line, which ``ruff format`` leaves alone."""
    blank = " " * indent
    yield f"{blank}{opening}"
    yield from (f"{blank}    {item}," for item in items)
    yield f"{blank}{closing}"
