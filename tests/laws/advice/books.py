"""The books of ckpt, in which words and advice are written: what each entry needs, and what the code asks for."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from ckpt.advice import Advice, Words
from ckpt.advice.book import Book
from tests.support.places import ROOT


def all_books() -> dict[str, Book]:
    books: dict[str, Book] = {}
    for module in sorted((*(ROOT / "ckpt").rglob("*.py"), *(ROOT / "commands").rglob("*.py"))):
        if "Book(" in module.read_text(encoding="utf-8") and module.name != "advice/book.py":
            name = ".".join(module.relative_to(ROOT).with_suffix("").parts)
            for value in vars(import_module(name)).values():
                if isinstance(value, Book) and (value.package, value.file) not in {
                    (b.package, b.file) for b in books.values()
                }:
                    books[name] = value
    return books


BOOKS = all_books()


class Parts(Mapping[str, Any]):
    """Any part that an entry asks for, and a list of those."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        known = (self._book.parts, self._book.content.get("words", {}), self._book.content.get("calls", {}))
        if any(name in names for names in (*known, self._book.content.get("code", {}), _STANDARD)):
            raise KeyError(name)
        self.asked.add(name)
        return _CHOICES.get(name, "5")

    def __contains__(self, name: object) -> bool:
        try:
            self[str(name)]
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.asked)

    def __len__(self) -> int:
        return len(self.asked)


_CHOICES = {"changelog": "on"}
"""Parts that are one of a few words."""
_STANDARD = ("checkpoint", "path", "batch", "fields")


class Entry(NamedTuple):
    """An entry of a book, made with a 5 for each part that it asks for."""

    module: str
    table: str
    name: str
    made: Words | Advice
    asks: frozenset[str]


def all_entries() -> Iterator[Entry]:
    for module, book in BOOKS.items():
        for name, text in book.content.get("words", {}).items():
            parts = Parts(book)
            made = book.make_words(text, parts)
            yield Entry(module, "words", name, made, frozenset(parts.asked))
        for name, steps in book.content.get("steps", {}).items():
            parts = Parts(book)
            advice = book.make_advice(steps, parts)
            yield Entry(module, "steps", name, advice, frozenset(parts.asked))


class Use(NamedTuple):
    """A place in the code that asks a book for an entry."""

    where: str
    table: str
    name: str
    parts: frozenset[str] | None  # None: some of them are not written out


@cache
def _read_modules() -> tuple[list[Use], set[str]]:
    """Every use in the code, and every string of it."""
    uses: list[Use] = []
    texts = set[str]()
    for folder in ("ckpt", "commands"):
        for module in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and _asks(node.func):
                    uses += _read(f"{module.relative_to(ROOT)}:{node.lineno}", node)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.add(node.value)
    return uses, texts


def all_uses() -> list[Use]:
    """Every place in the code that asks a book."""
    return _read_modules()[0]


def _asks(called: ast.expr) -> bool:
    if isinstance(called, ast.Attribute):
        return called.attr in ("text", "advise") and ast.unparse(called.value).endswith("BOOK")
    return isinstance(called, ast.Name) and called.id == "say"


def _read(where: str, node: ast.Call) -> Iterator[Use]:
    choices = [node.args[0]] if not isinstance(node.args[0], ast.IfExp) else [node.args[0].body, node.args[0].orelse]
    starred = any(keyword.arg is None for keyword in node.keywords)
    parts = None if starred else frozenset(keyword.arg for keyword in node.keywords if keyword.arg is not None)
    table = "steps" if isinstance(node.func, ast.Attribute) and node.func.attr == "advise" else "words"
    for each in choices:
        if isinstance(each, ast.Constant):
            yield Use(where, table, str(each.value), parts)


def all_texts() -> set[str]:
    """Every string of the code, in which the names of entries are, and every beginning and end of an f-string."""
    return _read_modules()[1]
