"""Objects of JSON documents: the keys that repeat a field of a record of the library are declared there."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from importlib import import_module
from inspect import get_annotations
from operator import attrgetter
from typing import Annotated, Any, ClassVar, TypeVar, cast, dataclass_transform, get_args, get_origin, get_type_hints

from ckpt.advice import Words
from ckpt.values import parse_record

Object = TypeVar("Object", bound="Keys")
of = attrgetter
ForPeople = Annotated[str, "for people; the wording may change"]
Sentences = tuple[Annotated[str, "for people; the wording may change"], ...]
Span = Annotated[tuple[int, int], "`[from, to]`"]


def itself(record: object) -> object:
    """Return the record: its own attributes are the keys of an object inside the document."""
    return record


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Keys:
    """An object of a document: the type of each key, in their order.

    A key has its type, ``Annotated`` with a function that finds its value in a record which has no attribute of this
    name. The tables of ``docs/contract.md`` come from this; ``docs/generate/keys.toml`` says what the keys mean.

    ``class Name(Keys, record=Record, keys="a b c")`` has these keys in this order; those that it does not declare are
    fields and properties of the record, with their types and meanings, or keys of the class that it extends, which are
    moved. ``"module:Record"`` is imported when needed.
    """

    _source: ClassVar[tuple[type | str | None, list[str]]]

    def __init_subclass__(cls, record: type | str | None = None, keys: str = "") -> None:
        cls._source = record, keys.split()


def is_object(kind: Any) -> bool:
    """Tell whether a type stands for an object: declared as keys, or a record all of whose fields are keys."""
    return isinstance(kind, type) and kind is not Words and (issubclass(kind, Keys) or is_dataclass(kind))


def key_types(keys: type) -> dict[str, Any]:
    """The types of an object's keys with their notes, in the order of its JSON."""
    if not issubclass(keys, Keys):
        return get_type_hints(keys, include_extras=True)
    hints: dict[str, Any] = {}
    for base in reversed(keys.__mro__):
        if issubclass(base, Keys) and base is not Keys:
            own = _own_types(base)
            record, names = base._source
            for name in names:
                inherited = hints.pop(name, None)
                hints[name] = own[name] if name in own else inherited or _type_in(record, name)
            hints |= own
    return hints


def _own_types(kind: type, only: str | None = None) -> dict[str, Any]:
    """The types of the fields that a class declares itself, or of one of them."""
    own = {name: hint for name, hint in get_annotations(kind).items() if only in (None, name)}
    alone = type(kind.__name__, (), {"__annotations__": own})
    return get_type_hints(alone, vars(sys.modules[kind.__module__]), include_extras=True)


def _type_in(record: type | str | None, name: str) -> Any:
    """The type of a field or property of a record."""
    if isinstance(record, str):
        module, _, kind = record.partition(":")
        return _type_in(getattr(import_module(module), kind), name)
    for base in record.__mro__ if record else ():
        named = vars(base).get(name)
        if isinstance(named, property | cached_property):
            getter = named.fget if isinstance(named, property) else named.func
            return get_type_hints(getter, include_extras=True)["return"]
        if name in get_annotations(base):
            return _own_types(base, name)[name]
    raise AttributeError(f"{record} has no {name}")


def derive(keys: type[Keys], record: object, /, **others: object) -> dict[str, Any]:
    """The object for a record, with the objects inside it; ``others`` are values, or records of objects, by key."""
    return {
        name.rstrip("_"): _derive(inner, others[name] if name in others else find(record), many=many)
        for name, find, inner, many in _origins(keys)  # type: ignore[arg-type]  # every class is hashable
    }


@cache
def _origins(keys: type[Keys]) -> tuple[tuple[str, Any, type[Keys] | None, bool], ...]:
    """For each key how its value is found, the class of the objects in it, and whether it has many of them."""
    return tuple(
        (
            name,
            next(filter(callable, getattr(hint, "__metadata__", ())), of(name)),
            next(_list_inner(hint), None),
            _is_many(hint),
        )
        for name, hint in key_types(keys).items()
    )


def _is_many(hint: Any) -> bool:
    return get_origin(hint) is tuple or any(map(_is_many, get_args(hint)))


def _list_inner(hint: Any) -> Iterator[type[Keys]]:
    if isinstance(hint, type) and issubclass(hint, Keys):
        yield hint
    for inner in get_args(hint):
        yield from _list_inner(inner)


def _derive(keys: type[Keys] | None, value: Any, *, many: bool) -> Any:
    if keys is None or value is None or isinstance(value, dict):
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
    _make_records(keys)  # type: ignore[arg-type]
    return cast(Object, parse_record(keys, value))


@cache
def _make_records(keys: type[Keys]) -> None:
    """Make dataclasses of an object and those in it, which are none until a document is read."""
    for base in reversed(keys.__mro__):
        if issubclass(base, Keys) and base is not Keys:
            for hint in _own_types(base).values():
                for inner in _list_inner(hint):
                    _make_records(inner)  # type: ignore[arg-type]
            if "__dataclass_fields__" not in vars(base):
                dataclass(frozen=True, kw_only=True)(base)
