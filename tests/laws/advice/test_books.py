"""Books of words: whoever edits a sentence changes nothing else, and the code finds what it asks for."""

import re
from functools import cache
from string import Formatter

import pytest

from ckpt.advice import Advice
from tests.laws.advice.books import BOOKS, Entry, all_entries, all_texts, all_uses


@cache
def entries() -> dict[tuple[str, str], Entry]:
    return {(entry.table, entry.name): entry for entry in all_entries()}


@pytest.mark.slow
def test_each_entry_that_the_code_asks_for_is_there_and_gets_its_parts() -> None:
    wrong = []
    for use in all_uses():
        entry = entries().get((use.table, use.name))
        if entry is None:
            wrong.append(f"{use.where}: no book has {use.name} in [{use.table}]")
        elif use.parts is not None and not entry.asks <= use.parts:
            wrong.append(f"{use.where}: {use.name} also needs {', '.join(sorted(entry.asks - use.parts))}")
    assert wrong == []
    assert len(all_uses()) > 10


@pytest.mark.slow
def test_each_entry_is_used() -> None:
    texts = all_texts()
    inside = {name for book in BOOKS.values() for name in _names_in(book.content)}
    assert [key for key in entries() if key[1] not in inside and not _is_in(key[1], texts)] == []


def _is_in(name: str, texts: set[str]) -> bool:
    """Tell whether the code has a name, whole or as a beginning with an end."""
    return name in texts or any(name[:at] in texts and name[at:] in texts for at in range(3, len(name) - 2))


def _names_in(content: object) -> set[str]:
    """The names that entries of a book have for other entries."""
    match content:
        case dict():
            named = {str(content["steps"])} if isinstance(content.get("steps"), str) else set()
            return named.union(*map(_names_in, content.values())) if content else named
        case list():
            return set().union(*map(_names_in, content)) if content else set()
        case str():
            return {name for _, name, _, _ in _parse(content) if name}
    return set()


def _parse(text: str) -> list[tuple[str, str | None, str | None, str | None]]:
    try:
        return [*Formatter().parse(text)]
    except ValueError:  # a message of Spark
        return []


def test_a_sentence_holds_no_command_that_is_typed_into_it() -> None:
    typed = re.compile(r"`|(?<![\w{-])--[a-z]|\bckpt (?:[a-z-]+ )?CHECKPOINT")
    wrong = []
    for entry in entries().values():
        texts = [step.what for step in entry.made.all_steps()] if isinstance(entry.made, Advice) else [entry.made]
        for text in texts:
            wrong += [f"{entry.name}: {part}" for part in text.parts if isinstance(part, str) and typed.search(part)]
    assert wrong == []
