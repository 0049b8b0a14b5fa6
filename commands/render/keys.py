"""Objects of JSON documents, each declared once: keys, types, meanings and where a value comes from."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

Object = TypeVar("Object", bound="Keys")
of = attrgetter
ForPeople = Annotated[str, "for people; its words are not fixed"]
Sentences = tuple[Annotated[str, "for people; their words are not fixed"], ...]
Span = Annotated[tuple[int, int], "`[from, to]`"]


def itself(record: object) -> object:
    """Return the record: its own attributes are the keys of an object inside the document."""
    return record


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Keys:
    """An object of a document: a frozen dataclass with a field for each key, in their order.

    A field is ``Annotated`` with its type, with one line that says what it means, and with a function that finds its
    value in a record which has no attribute of this name. The tables of ``docs/contract.md`` come from this.
    """

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


def derive(keys: type[Object], record: object, **others: object) -> Object:
    """The object for a record, with the objects inside it; ``others`` are values, or records of objects, by key."""
    origins = _origins(keys)  # type: ignore[arg-type]  # every class is hashable
    return keys(
        **{
            name: _derive(inner, others[name] if name in others else find(record), many=many)
            for name, find, inner, many in origins
        }
    )


@cache
def _origins(keys: type[Keys]) -> tuple[tuple[str, Any, type[Keys] | None, bool], ...]:
    """For each key how its value is found, the class of the objects in it, and whether it has many of them."""
    hints = get_type_hints(keys, include_extras=True)
    notes = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return tuple(
        (name, next(filter(callable, notes[name]), of(name)), _inner(hint), _is_many(hint))
        for name, hint in hints.items()
    )


def _is_many(hint: Any) -> bool:
    return get_origin(hint) is tuple or any(map(_is_many, get_args(hint)))


def _inner(hint: Any) -> type[Keys] | None:
    if isinstance(hint, type) and issubclass(hint, Keys):
        return hint
    return next(filter(None, map(_inner, get_args(hint))), None)


def _derive(keys: type[Keys] | None, value: Any, *, many: bool) -> Any:
    if keys is None or value is None or isinstance(value, Keys):
        return value
    return tuple(_derive(keys, each, many=False) for each in value) if many else derive(keys, value)


def as_json(value: Any) -> dict[str, Any]:
    """The object for a dataclass or a mapping: the ``default`` of ``json.dumps``. Raises TypeError for others."""
    if isinstance(value, Mapping):
        return dict(value)
    return {field.name.rstrip("_"): getattr(value, field.name) for field in fields(value)}


def parse(keys: type[Object], value: object) -> Object:
    """The object that ``json.loads`` found in a document: ``derive`` backwards. Undeclared keys are left out.

    A key that older documents lack has a default. Raises KeyError for another key that is missing, ValueError for a
    value of another type than declared.
    """
    return cast(Object, _parse(keys, value))


def _parse(kind: Any, value: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _parse(inner[0], value)
    if origin in (Union, UnionType):
        return _parse_either(inner, value)
    if kind is Any or (origin is Literal and value in inner):
        return value
    if origin is tuple and isinstance(value, list):
        many = inner[1:] == (Ellipsis,)
        return tuple(_parse(*pair) for pair in zip(inner[:1] * len(value) if many else inner, value, strict=True))
    if origin in (dict, list) and isinstance(value, origin):
        return value
    if origin is Mapping and isinstance(value, dict):
        return {key: _parse(inner[1], each) for key, each in value.items()}
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
        hints = get_type_hints(kind, include_extras=True)
        names = [field.name for field in fields(kind) if field.default is MISSING or field.name.rstrip("_") in value]
        return kind(**{name: _parse(hints[name], value[name.rstrip("_")]) for name in names})
    if isinstance(kind, type) and (type(value) is kind or (issubclass(kind, str) and isinstance(value, str))):
        return kind(value) if kind is not type(None) else None
    raise ValueError(f"{value!r:.40} is none of {kind}")


def _parse_either(kinds: tuple[Any, ...], value: Any) -> Any:
    for kind in kinds:
        with suppress(ValueError):
            return _parse(kind, value)
    raise ValueError(f"{value!r:.40} is of no declared type")
