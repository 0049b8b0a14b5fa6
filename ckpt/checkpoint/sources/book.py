"""The texts of offsets, such as why a source cannot begin or end there: ``words.toml``."""

from typing import Any

from ckpt.advice.book import Book

BOOK = Book("ckpt.checkpoint.sources", "words.toml", {})


def say(name: str, **parts: Any) -> str:
    """Say a text without calls."""
    return str(BOOK.text(name, **parts))
