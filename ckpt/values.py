"""Values that calls return: with a short ``repr``, a page as their ``str``, and HTML in a notebook."""

from collections.abc import Callable, Mapping, Sized
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from ckpt.model import Json
from ckpt.texts import mask_secrets

_LEADS_TO_CHECKPOINT = ("checkpoint", "inspection", "handoff")  # fields of a record of one checkpoint
_LONGEST, _MOST = 60, 200  # characters of one text in a repr, and of all: several values fit on a screen


class Renderers(NamedTuple):
    """Who shows values: pages are made above the library, which knows no terminal."""

    text: Callable[[object], str]
    html: Callable[[object], str | None]
    document: Callable[[object], dict[str, Json]]


class Record:
    """A dataclass with a short ``repr``, and a JSON document."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Give each dataclass the short form, which it would override otherwise."""
        super().__init_subclass__()
        cls.__repr__ = Record.__repr__  # type: ignore[method-assign]

    def to_dict(self) -> dict[str, Json]:
        """Return the JSON of the contract: what the command of the call prints with ``-o json``, or a part of that."""
        return show_document(self)

    def __repr__(self) -> str:
        """One line: the first facts that are short, and how many there are of the others."""
        facts = (_show_fact(field, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]
        text = ", ".join(fact for fact in facts if fact)
        return f"{type(self).__name__}({text if len(text) <= _MOST else f'{text[:_MOST]}…'})"


class Value(Record):
    """A value that a call returns."""

    __slots__ = ()
    renderers: ClassVar[Callable[[], Renderers | None]] = lambda: None  # handed in by ``ckpt/__init__.py``

    def __str__(self) -> str:
        """Return the page that the command of the call prints, in the words of the library."""
        return show_text(self)

    def _repr_html_(self) -> str | None:
        """Return the page as a part of a notebook; None if the extra ``html`` is not installed."""
        return show_html(self)


def show_text(value: object) -> str:
    """Return the page of a value; its short form where nobody makes pages."""
    renderers = Value.renderers()
    return repr(value) if renderers is None else renderers.text(value)


def show_html(value: object) -> str | None:
    """Return the page of a value as a part of a notebook; None where nobody makes pages, or not of this value."""
    renderers = Value.renderers()
    return None if renderers is None else renderers.html(value)


def show_document(value: object) -> dict[str, Json]:
    """Return the JSON document of a value. Raises LookupError where nobody makes documents."""
    renderers = Value.renderers()
    if renderers is None:
        raise LookupError("the entry point of ckpt.renderers is not installed")
    return renderers.document(value)


def _show_fact(field: Field[object], value: object) -> str:
    """Show a field and its value, if that is short and not the default one."""
    if value is None or (field.default is not MISSING and value == field.default):
        return ""
    match value:
        case Enum():
            return f"{field.name}={value.value!r}"
        case bool() | int() | float():
            return f"{field.name}={value}"
        case str():
            text = mask_secrets(value)
            return f"{field.name}={text if len(text) <= _LONGEST else f'{text[: _LONGEST - 1]}…'!r}"
        case Record() if not isinstance(value, Value):
            return f"{field.name}={getattr(value, 'code', value)!r}"  # of a diagnosis
        case tuple() | list() | Mapping() if isinstance(value, Sized) and value:
            return f"{field.name}=[{len(value)}]"
    while value is not None and not hasattr(value, "uri"):
        value = next((getattr(value, name) for name in _LEADS_TO_CHECKPOINT if hasattr(value, name)), None)
    uri = getattr(value, "uri", None)
    return _show_fact(field, uri) if isinstance(uri, str) else ""


def parse_record(kind: Any, value: Any) -> Any:
    """Make a dataclass of a type from what ``json.loads`` found; keys that are no fields are left out.

    Raises KeyError for a field without a default that is missing, ValueError for a value of another type than declared.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return parse_record(inner[0], value)
    if origin in (Union, UnionType):
        return _parse_either(inner, value)
    if kind is Any or (origin is Literal and value in inner):
        return value
    if origin is tuple and isinstance(value, list):
        many = inner[1:] == (Ellipsis,)
        return tuple(parse_record(*pair) for pair in zip(inner[:1] * len(value) if many else inner, value, strict=True))
    if origin in (dict, list) and isinstance(value, origin):
        return value
    if origin is Mapping and isinstance(value, dict):
        return {key: parse_record(inner[1], each) for key, each in value.items()}
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
        hints = _find_hints(kind)
        names = [
            field.name
            for field in fields(kind)
            if field.name.rstrip("_") in value or field.default is field.default_factory is MISSING
        ]
        return kind(**{name: parse_record(hints[name], value[name.rstrip("_")]) for name in names})
    if isinstance(kind, type) and (type(value) is kind or (issubclass(kind, str) and isinstance(value, str))):
        return kind(value) if kind is not type(None) else None
    raise ValueError(f"{value!r:.40} is not one of {kind}")


@cache
def _find_hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _parse_either(kinds: tuple[Any, ...], value: Any) -> Any:
    for kind in kinds:
        with suppress(ValueError):
            return parse_record(kind, value)
    raise ValueError(f"{value!r:.40} has no declared type")
