"""Pieces of Python and of Spark's DDL, safe whatever a checkpoint holds."""

import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any

from ckpt.formats.types import named_fields, sql_type
from ckpt.model import Json
from ckpt.texts import mask_secrets

_GAP = re.compile(r"<<(\w+)>>")


def fill_code(template: str, values: Mapping[str, Any]) -> str:
    """Fill a template of ``templates`` with values.

    ``<<NAME>>`` is a value, ``% lines NAME`` the lines of one. Lines after ``% if NAME`` or ``% if not NAME``, up to
    ``% else`` or ``% end``, are written where that value is true.
    """
    source = files(__package__).joinpath("templates", template).read_text(encoding="utf-8")
    return "".join(f"{line}\n" for line in _fill_lines(source.splitlines(), values))


def _fill_lines(lines: Iterable[str], values: Mapping[str, Any]) -> Iterator[str]:
    written = [True]  # what the ``if``s around a line say, the outermost first
    for line in lines:
        match line.split() if line.startswith("%") else ():
            case ["%", "if", *negated, name]:
                written.append(written[-1] and bool(values[name]) is not bool(negated))
            case ["%", "else"]:
                written[-1] = written[-2] and not written[-1]
            case ["%", "end"]:
                written.pop()
            case ["%", "lines", name]:
                yield from values[name] if written[-1] else ()
            case _ if written[-1]:
                yield _GAP.sub(lambda gap: str(values[gap[1]]), line)


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
        return sql_type(str(kind))
    match kind.get("type"):
        case "struct":
            fields = ",".join(f"{named(name)}:{_write_type(inner, named)}" for name, inner in named_fields(kind))
            return f"struct<{fields}>"
        case "array":
            return f"array<{_write_type(kind.get('elementType'), named)}>"
        case "map":
            return f"map<{_write_type(kind.get('keyType'), named)},{_write_type(kind.get('valueType'), named)}>"
        case "udt":
            return _write_type(kind.get("sqlType"), named)
    return str(kind.get("type"))


def choose_identifiers(names: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """Choose an attribute for each variable, whatever it is called: its name where Python allows it, each once."""
    used, chosen = set(taken), {}
    for name in names:
        identifier = re.sub(r"\W", "_", name, flags=re.ASCII)
        if not identifier or identifier[0].isdigit() or identifier.startswith("_"):
            identifier = f"v_{identifier}"
        free, number = identifier, 1
        while free in used or keyword.iskeyword(free):
            number += 1
            free = f"{identifier}_{number}"
        used.add(free)
        chosen[name] = free
    return chosen


def explode(opening: str, items: Iterable[str], closing: str, indent: int) -> Iterator[str]:
    """A call or collection with one item a line, which ``ruff format`` leaves alone."""
    blank = " " * indent
    yield f"{blank}{opening}"
    yield from (f"{blank}    {item}," for item in items)
    yield f"{blank}{closing}"
