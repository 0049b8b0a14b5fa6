"""Objects of JSON documents, each declared once: keys, types, meanings and where a value comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, TypeVar, cast, dataclass_transform, get_args, get_origin, get_type_hints

from ckpt.advice import Words
from ckpt.values import parse_record

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


def as_json(value: Any) -> Any:
    """The object for a dataclass or a mapping: the ``default`` of ``json.dumps``. Raises TypeError for others."""
    if isinstance(value, Words):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    return {field.name.rstrip("_"): getattr(value, field.name) for field in fields(value)}


def parse(keys: type[Object], value: object) -> Object:
    """The object that ``json.loads`` found in a document: ``derive`` backwards. Undeclared keys are left out.

    A key that older documents lack has a default. Raises KeyError for another key that is missing, ValueError for a
    value of another type than declared.
    """
    return cast(Object, parse_record(keys, value))
