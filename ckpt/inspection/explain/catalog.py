"""The known errors, as ``catalog.toml`` declares them."""

import json
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

from ckpt.inspection.explain.phrases import Phrase

CLASSES = "classes.json"
"""Beside the catalog: each error class that it names, with the versions of Spark, or of a connector, that have it."""


@dataclass(frozen=True, slots=True)
class KnownError:
    """One error that Spark or a source reports, and what it means for a checkpoint."""

    id: str
    title: str  # a sentence without a full stop
    system: str  # who says it: spark, rocksdb, kafka, delta, ...
    says: tuple[str, ...]  # words of its message; ``{}`` is any text in between, ``{n}`` a number
    cause: str
    cure: str  # what to do; commands in backquotes, CHECKPOINT for the location
    since: str  # the versions that say it
    codes: tuple[str, ...]  # the findings that show it in a checkpoint
    source: str  # where this is from
    sample: str  # how it looks
    classes: tuple[str, ...] = ()  # error classes that stand for it
    frames: tuple[str, ...] = ()  # one of these is in the stack, where the text has one
    bare: bool = True  # without a stack it is matched too
    broad: bool = False  # of many causes: a narrower one beside it comes first
    command: str | None = None  # of ckpt, which helps

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """The marks of an error in a line: its classes, as Spark writes them in front of a message, and its words."""
        prefixes = [f"[{name}{end}" for name in self.classes for end in ("]", "." * ("." not in name)) if end]
        return tuple(map(Phrase, (*prefixes, *self.says)))


@cache
def catalog() -> tuple[KnownError, ...]:
    """Return all known errors, in the order of the file.

    >>> from ckpt.inspection.explain import catalog
    >>> catalog()[0].id, catalog()[0].codes
    ('batch-does-not-exist', ('CKPT201', 'CKPT202'))
    """
    document = tomllib.loads(_read_text_beside("catalog.toml"))
    words = {f"{{{name}}}": text for name, text in document["words"].items()}
    return tuple(_make_error(entry, words) for entry in document["error"])


@cache
def versions_of(error_class: str) -> tuple[str, ...]:
    """The versions that have an error class, oldest first, as ``4.0`` or ``delta 4.4.0``."""
    return tuple(json.loads(_read_text_beside(CLASSES))[error_class]["versions"])


def _make_error(entry: dict[str, Any], words: dict[str, str]) -> KnownError:
    keys: dict[str, Any] = {"says": ()} | {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    for name, text in words.items():
        keys["cure"] = keys["cure"].replace(name, text)
    unknown = keys.keys() - {field.name for field in fields(KnownError)}
    if unknown:
        raise ValueError(f"catalog.toml: {keys['id']} has the unknown key {min(unknown)}")
    return KnownError(**keys)


def _read_text_beside(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
