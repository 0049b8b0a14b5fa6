"""A call of the library as a value: the same name and arguments are a command line."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ckpt.advice.blanks import Blank, Hole, Known

Value: TypeAlias = (
    str | int | bool | float | Hole | Blank | tuple["Value", ...] | Mapping[str, "Value"] | Mapping[int, "Value"]
)
"""A value of an argument. Mappings and tuples become an option that is given several times."""

PLANS_FOR_A_SINK = frozenset(("repair", "repair_async", "rewind", "skip", "preflight", "offsets_set"))
"""Calls that are made for the sink that was asked about."""
READS_EVERY_BYTE = frozenset(("inspect", "preflight", "repair", "rewind", "skip"))
"""Calls that judge the checkpoint again, and read every byte where that was asked for."""
COMPARES_QUERIES = frozenset(("evolve",))
"""Calls that say more if they know the old query: where nobody has named its description, they do without."""


class TextPart(ABC):
    """A part of a text that is not plain."""

    __slots__ = ()

    @abstractmethod
    def spell(self, speech: "Speech") -> str:
        """Write it for a shell or in Python."""

    def fill(self, known: Known) -> "TextPart":
        """Return it with what is known: most are the same everywhere."""
        return self


@dataclass(frozen=True, slots=True)
class Call(TextPart):
    """A public call and its arguments, such as ``offsets_set(CHECKPOINT, source=0)``.

    ``name`` is that of the call in Python. An argument has the same name there and, with ``-`` for ``_``, as an option.
    """

    name: str
    arguments: tuple[Value, ...] = ()  # without a name: the checkpoint first, NEW second
    options: tuple[tuple[str, Value], ...] = ()

    def __hash__(self) -> int:  # values may be mappings
        return hash((self.name, *(name for name, _ in self.options)))

    def but(self, **options: "Value | None") -> "Call":
        """Return the call with other options; None leaves one out."""
        kept = dict(self.options) | options
        return replace(self, options=tuple((name, value) for name, value in kept.items() if value is not None))

    def fill(self, known: Known) -> "Call":
        """Return the call for one checkpoint, for the sink that was asked about and as deep as it was asked."""
        deep = bool(self.arguments) and known.deep and self.name in READS_EVERY_BYTE
        options: dict[str, Value] = {"deep": True} if deep else {}
        options |= {name: _fill(value, known) for name, value in self.options}
        if self.arguments and known.sink is not None and self.name in PLANS_FOR_A_SINK:
            options.setdefault("sink", known.sink)
        if options.get("sources") is True and known.source_options:
            options.setdefault("source_options", known.source_options)
        if self.name in COMPARES_QUERIES and "to" in options and Hole.OLD_QUERY in known.files:
            options.setdefault("from_query", known.files[Hole.OLD_QUERY])
        return Call(self.name, tuple(_fill(value, known) for value in self.arguments), tuple(options.items()))

    @property
    def complete(self) -> bool:
        """True if a program can make the call: all of its words are known."""
        values = (*self.arguments, *(value for _, value in self.options))
        return bool(self.arguments) and not any(isinstance(value, Hole | Blank) for value in _flatten(values))

    def spell(self, speech: "Speech") -> str:
        """Write the call for a shell or in Python."""
        return speech.call(self)


@dataclass(frozen=True, slots=True)
class Speech:
    """How calls and their arguments are written: for a shell, or in Python."""

    call: Callable[[Call], str]
    option: "Callable[[str, Value | None], str]"
    fields: str  # where everything is that a page leaves out
    page: str  # where a page has most of it


def call(name: str, *arguments: Value, **options: Value) -> Call:
    """Name a call with its arguments."""
    return Call(name, arguments, tuple(options.items()))


def _fill(value: Value, known: Known) -> Value:
    match value:
        case Blank():
            return known.name(value) or value
        case Hole():
            return known.files.get(value, value)
        case tuple():
            return tuple(_fill(each, known) for each in value)
        case Mapping():
            return {name: _fill(each, known) for name, each in value.items()}  # type: ignore[return-value]
    return value


def _flatten(values: tuple[Value, ...]) -> Iterator[Value]:
    for value in values:
        match value:
            case tuple():
                yield from _flatten(value)
            case Mapping():
                yield from _flatten(tuple(value.values()))
            case _:
                yield value
