"""Words and advice that are written in a file, so that who edits a sentence changes nothing else.

A text is a template of ``words``. Advice is a list of steps; each is a table:

- ``{ run = ["repair", "CHECKPOINT", { deep = true }], why = TEXT }``: a call, with the names of ``Blank`` and ``Hole``;
  the last sentence of TEXT says what it is for, because the call is shown after it;
- ``{ start = TEXT }``: what a person does, a kind of ``Do``, perhaps with ``paths``, and ``line`` of another tool;
- ``{ steps = NAME }``: those of ``[steps]``, perhaps with the condition ``if``;

besides ``or = true`` where it is instead of the step before, ``before``, ``rows`` and ``writes``.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from typing import Any

from ckpt.advice.blanks import BATCH, CHECKPOINT, PATH, Hole
from ckpt.advice.calls import Call, Value, call
from ckpt.advice.steps import Advice, Do, Instruction, RowCost, RowsEffect, Step
from ckpt.advice.words import Code, Words, join, make_words, plain

Parts = Mapping[str, Any]
_NAMED: Mapping[str, Value] = {hole.value: hole for hole in Hole} | {
    CHECKPOINT.value: CHECKPOINT,
    "{path}": PATH,
    "{batch}": BATCH,
}


@dataclass(frozen=True)
class Book:
    """The texts of a file of a package, which is read once one of them is needed."""

    package: str
    file: str
    parts: Parts  # that every text may have, by name

    @cached_property
    def content(self) -> dict[str, Any]:
        """Return the tables of the file."""
        return tomllib.loads(files(self.package).joinpath(self.file).read_text(encoding="utf-8"))

    def text(self, name: str, /, **parts: Any) -> Words:
        """Return a text of ``[words]``."""
        return self.make_words(self.content["words"][name], parts)

    def advise(self, name: str, /, **parts: Any) -> Advice:
        """Return steps of ``[steps]``."""
        return self.make_advice(self.content["steps"][name], parts)

    def make_words(self, text: str, parts: Parts) -> Words:
        """Make a text with what is known where it is shown."""

        def find_part(name: str) -> Any:
            if name in parts or name in self.parts:
                return parts.get(name, self.parts.get(name))
            if name in self.content.get("code", ()):
                return Code(self.content["code"][name])
            if name in self.content.get("calls", ()):
                return self.make_call(self.content["calls"][name], parts)
            return self.make_words(self.content["words"][name], parts)

        return make_words(text, find_part)

    def make_advice(self, entries: Iterable[Parts], parts: Parts) -> Advice:
        """Make advice with what is known where it is given."""
        steps: list[Step] = []
        for step, instead in self._read_entries(entries, parts):
            if instead and steps:
                steps[-1] = steps[-1].or_(step)
            else:
                steps.append(step)
        return Advice(tuple(steps))

    def make_call(self, entry: list[Any], parts: Parts) -> Call:
        """Make a call of its name, its arguments and, in a table, its options."""
        name, *arguments = (_read_value(each, parts) for each in entry)
        options = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        return call(name, *arguments, **options)

    def _read_entries(self, entries: Iterable[Parts], parts: Parts) -> Iterator[tuple[Step, bool]]:
        """Yield each step, and whether it is instead of the one before."""
        for entry in entries:
            if "steps" in entry:
                inner = self._read_entries(self.content["steps"][entry["steps"]], parts)
                first, _ = next(inner)
                condition = self.make_words(entry.get("if", ""), parts)
                yield replace(first, what=_put_before(condition, first.what)), entry.get("or", False)
                yield from inner
            else:
                yield self._read_step(entry, parts), entry.get("or", False)

    def _read_step(self, entry: Parts, parts: Parts) -> Step:
        kind = next((kind for kind in Do if kind in entry), None)
        doing: Call | Instruction
        if kind is None:
            doing, cost = self.make_call(entry["run"], parts), RowCost.NONE
        else:
            of_files = ["{path}"] if kind in (Do.PUT_BACK, Do.DELETE, Do.MOVE) else []
            paths = tuple(_read_value(path, parts) for path in entry.get("paths", of_files))
            line = self.make_words(entry.get("line", ""), parts)
            doing, cost = Instruction(kind, paths, line), RowCost.UNKNOWN
        return Step(
            doing,
            self.make_words(entry["why" if kind is None else kind.value], parts),
            RowsEffect(RowCost(entry.get("rows", cost))),
            entry.get("writes", False),
            tuple(self.make_words(text, parts) for text in entry.get("before", ())),
        )


def _put_before(condition: Words, text: Words) -> Words:
    """Put a condition, or a sentence, before a sentence."""
    if not condition:
        return text
    if str(condition).endswith("."):
        return join((condition, text))
    first, *rest = text.parts
    begun = plain(first[:1].lower() + first[1:]) if isinstance(first, str) else Words((first,))
    return join((condition, begun + Words(tuple(rest))), ", ")


def _read_value(value: Any, parts: Parts) -> Any:
    match value:
        case dict():
            return {int(key) if key.isdigit() else key: _read_value(each, parts) for key, each in value.items()}
        case list():
            return tuple(_read_value(each, parts) for each in value)
        case str() if value in _NAMED:
            return _NAMED[value]
        case str() if value.startswith("{") and value[1:-1] in parts:
            return parts[value[1:-1]]
        case str() if "{" in value:
            return value.format_map(parts)
    return value
