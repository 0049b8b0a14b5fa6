"""Every call that ckpt can show: those that are declared, and those that are written out anywhere in the code."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from ckpt.advice import Advice, Blank, Call, Hole, Known, Option, Words
from ckpt.advice.calls import Value
from ckpt.inspection.explain.catalog import known_texts
from ckpt.restart.diagnoses import all_diagnoses
from tests.laws.advice.books import all_entries
from tests.support.places import ROOT

FILLED = {
    Hole.NEW: "/data/new",
    Hole.COPY: "/data/copy",
    Hole.ID: "11111111-2222-3333-4444-555555555555",
    Hole.N: 5,
    Hole.URI: "/data/table",
    Hole.OUTPUT: "/data/output",
    Hole.VERSION: "3",
    Hole.SOURCE: "0",
    Hole.JSON: '{"orders":{"0":1}}',
    Hole.OFFSETS: '{"orders":{"0":1}}',
}
"""What a person may put for a hole; any other is a word as it is."""


Node = TypeVar("Node", bound=ast.expr | ast.stmt)


class Written(NamedTuple):
    """A call that is written out in the code, as far as it can be read there."""

    where: str
    name: str
    arguments: int | None  # None: how many is not written out
    options: tuple[str, ...]


def declared_calls() -> Iterator[tuple[str, Call]]:
    """Yield the calls of diagnoses and of the catalogue, each with where it is from."""
    for diagnosis in all_diagnoses():
        yield from ((diagnosis.code, each) for each in _calls_in(diagnosis.meaning))
        yield from ((diagnosis.code, each) for each in _calls_of(diagnosis.advice))
    for entry in all_entries():
        made = entry.made
        yield from ((entry.name, each) for each in (_calls_of(made) if isinstance(made, Advice) else _calls_in(made)))
    for error in known_texts():
        yield from ((error.id, each) for each in (*_calls_in(error.cause), *_calls_of(error.cure)))


def _calls_of(advice: Advice | None) -> Iterator[Call]:
    for step in advice.all_steps() if advice else ():
        yield from (each for text in (step.what, *step.before) for each in _calls_in(text))
        if step.call is not None:
            yield step.call


def _calls_in(text: Words) -> Iterator[Call]:
    return (part for part in text.parts if isinstance(part, Call))


def declared_options() -> Iterator[tuple[str, Option]]:
    """Yield the options that diagnoses and the catalogue speak of."""
    for diagnosis in all_diagnoses():
        yield from ((diagnosis.code, part) for part in diagnosis.meaning.parts if isinstance(part, Option))
        for step in diagnosis.advice.all_steps() if diagnosis.advice else ():
            yield from ((diagnosis.code, part) for part in step.what.parts if isinstance(part, Option))


def fill(call: Call) -> Call:
    """A call as a person types it."""
    known = Known("/data/cp", ("offsets/5",), files={hole: str(FILLED.get(hole, hole.value)) for hole in Hole})
    filled = call.fill(known)
    return Call(filled.name, filled.arguments, tuple((name, _close(value)) for name, value in filled.options))


def _close(value: Value) -> Value:
    return 5 if value is Blank.BATCH else value


def written_calls() -> Iterator[Written]:
    """Yield each ``call(...)`` in the code of ckpt."""
    for where, node in _find_all_calls():
        named = isinstance(node.func, ast.Name) and node.func.id == "call" and bool(node.args)
        if named and isinstance(node.args[0], ast.Constant):
            yield _read(where, node)


def _find_all_calls() -> Iterator[tuple[str, ast.Call]]:
    yield from _find_all(ast.Call)


def _find_all(*kinds: type[Node]) -> Iterator[tuple[str, Node]]:
    for folder in ("ckpt", "commands"):
        for module in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
                if isinstance(node, kinds):
                    yield f"{module.relative_to(ROOT)}:{node.lineno}", node


def written_in_errors() -> Iterator[tuple[str, str]]:
    """Yield each string that is written out where an error is raised or made, or a plan refused, with where it is."""
    for where, node in _find_all(ast.Raise, ast.Call):
        if not isinstance(node, ast.Call) or _MAKES_ERRORS.search(ast.unparse(node.func)):
            texts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
            yield from ((where, text) for text in texts if isinstance(text, str))


_MAKES_ERRORS = re.compile(r"(Error|NoWay|Refused|Damaged|[._]refus\w+)(\.of)?$")


def _read(where: str, node: ast.Call) -> Written:
    name, *places = node.args
    assert isinstance(name, ast.Constant)
    starred = any(isinstance(argument, ast.Starred) for argument in places)
    options = tuple(keyword.arg for keyword in node.keywords if keyword.arg is not None)
    return Written(where, str(name.value), None if starred else len(places), options)


def written_templates() -> Iterator[tuple[str, ast.Call]]:
    """Yield each ``words(...)`` in the code of ckpt, and each error that is made of a template: ``UsageError.of``."""
    for where, node in _find_all_calls():
        of_words = isinstance(node.func, ast.Name) and node.func.id == "words"
        of_error = isinstance(node.func, ast.Attribute) and node.func.attr == "of" and "Error" in ast.unparse(node.func)
        if (of_words or of_error) and not where.startswith("ckpt/errors.py"):
            yield where, node
