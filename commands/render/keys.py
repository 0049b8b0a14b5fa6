"""JSON of a document: a key for each field of a dataclass, in their order.

A field is annotated with its type and with one line that says what it means; the tables of ``docs/contract.md`` come
from these annotations.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

Keys = TypeVar("Keys")


def as_json(value: Any) -> dict[str, Any]:
    """The object for a dataclass or a mapping: the ``default`` of ``json.dumps``. Raises TypeError for others."""
    if isinstance(value, Mapping):
        return dict(value)
    return {field.name.rstrip("_"): getattr(value, field.name) for field in fields(value)}


def copied(keys: type[Keys], record: object, **others: object) -> Keys:
    """The keys of a record: its attributes of the same name, and ``others`` by name."""
    names = [field.name for field in fields(keys) if field.name not in others]  # type: ignore[arg-type]  # a dataclass
    return keys(**others, **{name: getattr(record, name) for name in names})
